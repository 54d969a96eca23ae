#!/bin/bash
# Runs the expectations of the analysis: as many files at once as there are processors, or the one file that is named.
# A file says only whether it is good, or all that it found.
set -euo pipefail
cd "$(dirname "$0")/.."

run='testthat::test_file(commandArgs(TRUE), reporter = "summary", stop_on_failure = TRUE)'

if [ "$#" = 0 ]; then
    # The largest first, so that no processor waits long for the last one.
    find analysis/tests/testthat -name 'test-*.R' -printf '%s %p\n' | sort -rn | cut -d ' ' -f 2- |
        xargs -P "$(nproc)" -n 1 scripts/test-r.sh
elif said=$(Rscript -e "$run" "$1" 2>&1); then
    echo "$(basename "$1"): good"
else
    printf '%s: failed\n%s\n' "$1" "$said" >&2
    if [[ $said == *"no package called"*testthat* || $said == *"Rscript: command not found"* ]]; then
        echo "what tests need is missing; this installs it: make setup-test" >&2
    fi
    exit 1
fi

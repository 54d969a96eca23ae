#!/bin/bash
# Runs the expectations of the analysis in R: scripts/test-r.sh FOLDER of analysis/tests…
set -euo pipefail
cd "$(dirname "$0")/.."

# Functions that run for a moment are not worth compiling.
export R_ENABLE_JIT=0
if ! Rscript -e 'quit(status = !requireNamespace("testthat", quietly = TRUE))' 2>/dev/null; then
    echo "what tests need is missing; this installs it: make setup-test" >&2
    exit 1
fi
for folder in "$@"; do
    Rscript -e 'testthat::test_dir(commandArgs(TRUE), reporter = "summary", stop_on_failure = TRUE)' "analysis/tests/$folder"
done

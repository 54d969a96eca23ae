#!/bin/bash
# Runs the expectations of the analysis, or those that are named: scripts/test-r.sh [FOLDER | FILE…]
set -euo pipefail
cd "$(dirname "$0")/.."

# Functions that run for a moment are not worth compiling.
export R_ENABLE_JIT=0
if ! Rscript -e 'quit(status = !requireNamespace("testthat", quietly = TRUE))' 2>/dev/null; then
    echo "what tests need is missing; this installs it: make setup-test" >&2
    exit 1
fi
exec Rscript scripts/test.R "$@"

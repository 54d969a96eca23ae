#!/bin/bash
# Checks the style of everything: Python, shell, Snakemake and R.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t shell < <(git ls-files '*.sh' .ci/run)
# R takes as long as all other checks together, and runs at the same time.
Rscript scripts/lint.R &
r=$!
# R's own children would outlive it.
trap '{ pkill -P "$r"; kill "$r"; } 2>/dev/null || true' EXIT
.venv/bin/ruff format --check --quiet .
.venv/bin/ruff check --quiet .
.venv/bin/mypy
.venv/bin/mypy --strict --explicit-package-bases --exclude kit/load/ \
    workloads/kit workloads/*/parse.py
.venv/bin/lint-imports --no-cache >/dev/null || .venv/bin/lint-imports --no-cache
shellcheck "${shell[@]}"
# Under pipefail a program fails, at random, if its reader stops reading before it stops printing.
if git grep -nE '\| *grep -[a-zA-Z]*q' -- "${shell[@]}"; then
    echo "lint: read all that a command prints, then look in it: [[ \$(command) == *text* ]]" >&2
    exit 1
fi
.venv/bin/shfmt --diff "${shell[@]}"
.venv/bin/snakefmt --check Snakefile rules
.venv/bin/python -m snakemake --lint
wait "$r"
echo "lint: good"

#!/bin/bash
# Checks the style of everything: Python, shell, Snakemake and R.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t shell < <(git ls-files '*.sh' .ci/run)
.venv/bin/ruff format --check --quiet .
.venv/bin/ruff check --quiet .
.venv/bin/mypy
shellcheck "${shell[@]}"
.venv/bin/snakefmt --check Snakefile rules
.venv/bin/snakemake --lint
Rscript scripts/lint.R
echo "lint: good"

#!/bin/bash
# Builds the documentation site of docs/: scripts/site.sh [FOLDER] (site).  Installs what that needs first; the build
# itself asks no network, and a broken link fails it.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv-site
stamp=$(sha256sum requirements-site.txt | cut -c -32)
if ! grep -qs "$stamp" "$venv/strata-stamp"; then
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        echo "site: Python cannot make an environment here; on Debian python3-venv is what it needs" >&2
        exit 1
    fi
    echo "site: installing what builds it into $venv" >&2
    python3 -m venv --clear "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement requirements-site.txt
    echo "$stamp" >"$venv/strata-stamp"
fi
# MkDocs counts as warnings what it would print: all of it is asked for, and what only tells is left out.
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --strict --clean --site-dir "$(realpath -m "${1:-site}")" \
    2> >(grep -v '^INFO' >&2)

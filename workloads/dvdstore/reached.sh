#!/bin/bash
# Ends with 0 once the pages of each shop are served.  Usage: reached.sh ADDRESS PORT,PORT…
set -euo pipefail

IFS=, read -r -a ports <<<"$2"
for port in "${ports[@]}"; do
    /opt/strata/bin/reach "$1" "$port"
done

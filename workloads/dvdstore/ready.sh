#!/bin/bash
# Ends with 0 once the database of each shop takes connections.  Usage: ready.sh PORT,PORT…
set -euo pipefail

# shellcheck source=workloads/dvdstore/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/postgresql.sh
source "${0%/*}/../common/sourced/postgresql.sh"

IFS=, read -r -a ports <<<"$1"
for shop in "${!ports[@]}"; do
    "${as_postgres[@]}" pg_isready --quiet --host="$home/$shop" --dbname="$database" --username=shop
done

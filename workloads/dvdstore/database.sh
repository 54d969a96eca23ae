#!/bin/bash
# The database server of each shop, in the foreground.  Usage: database.sh PORT,PORT… BUFFER_BYTES
# The ports are those of the shops' pages: they only say how many shops there are.
set -euo pipefail

# shellcheck source=workloads/dvdstore/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/postgresql.sh
source "${0%/*}/../common/sourced/postgresql.sh"
# shellcheck source=workloads/common/sourced/stand.sh
source "${0%/*}/../common/sourced/stand.sh"

IFS=, read -r -a ports <<<"$1"
bin=$(postgres_programs)
standing=()
for shop in "${!ports[@]}"; do
    database_options "$home/$shop" "$2" 200
    "${as_postgres[@]}" "$bin/postgres" "${options[@]}" &
    standing+=($!)
done
# Asked to end at once, without waiting for connections.
stand INT

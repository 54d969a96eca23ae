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
buffer_bytes=$2 bin=$(postgres_programs)
serve() {
    database_options "$home/$1" "$buffer_bytes" 200
    exec "${as_postgres[@]}" "$bin/postgres" "${options[@]}"
}

# Asked to end at once, without waiting for connections.
stand_each "${#ports[@]}" INT

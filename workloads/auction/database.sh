#!/bin/bash
# The database server, in the foreground.  Usage: database.sh BUFFER_BYTES PROCESSES
set -euo pipefail

# shellcheck source=workloads/auction/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/postgresql.sh
source "${0%/*}/../common/sourced/postgresql.sh"
# shellcheck source=workloads/common/sourced/stand.sh
source "${0%/*}/../common/sourced/stand.sh"

buffer_bytes=$1 processes=$2

serve() {
    # Each process of the application keeps eight connections.
    database_options "$store" "$buffer_bytes" "$((8 * processes + 20))"
    exec "${as_postgres[@]}" "$(postgres_programs)/postgres" "${options[@]}"
}

# Asked to end at once, without waiting for connections.
stand_each 1 INT

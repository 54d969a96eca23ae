#!/bin/bash
# The database servers, one for each instance, in the foreground.  The first act of each is to give the application
# an account with the cell's password.
# Usage: database.sh WEB_PORTS BUFFER_BYTES LOG_BYTES ADDRESS DATABASE_PORTS ROLES
# In a system of their own they listen at the address and the ports, else at sockets alone.
set -euo pipefail

# shellcheck source=workloads/cloudstone/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/mariadb.sh
source "${0%/*}/../common/sourced/mariadb.sh"

IFS=, read -ra ports <<<"$1"
buffer_bytes=$2 log_bytes=$3 address=$4 roles=$6 from=localhost
IFS=, read -ra database_ports <<<"$5"
! is_apart "$roles" || from=%

serve() {
    local folder=$home/$1/mysql
    cell_options "$folder" "$buffer_bytes" "$log_bytes"
    options+=(--max-connections=256 --table-open-cache=400)
    if is_apart "$roles"; then
        options+=(--skip-networking=OFF --skip-name-resolve --bind-address="$address" --port="${database_ports[$1]}")
    fi
    run_database "$folder" "$user" "$from" "$schema" "SELECT, INSERT, UPDATE, DELETE"
}

stand_each "${#ports[@]}" TERM

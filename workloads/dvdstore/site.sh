#!/bin/bash
# Makes the shops' data, and runs their servers in the foreground, one for each shop.
# Usage: site.sh data SIZE SEED BUFFER_BYTES     makes the database that every shop starts with
#        site.sh prepare PORTS                   unpacks it for each shop
#        site.sh database PORTS BUFFER_BYTES     runs PostgreSQL
#        site.sh web ADDRESS PORTS USERS         runs Apache
#        site.sh ready PORTS                     succeeds once all databases answer
# PORTS and USERS are lists with commas; every shop has a port.
set -euo pipefail

# shellcheck source=workloads/common/sourced/site.sh
source "${0%/*}/../common/sourced/site.sh"
# shellcheck source=workloads/common/sourced/postgresql.sh
source "${0%/*}/../common/sourced/postgresql.sh"

# Makes the database that every shop starts with, in /data/prepared.
# Usage: make_shop_data SIZE SEED BUFFER_BYTES      (SIZE: small, medium or large)
make_shop_data() {
    local size=$1 seed=$2 buffer_bytes=$3
    make_database shop "$buffer_bytes" "$size" "$seed"
}

# Unpacks the database for the shop of each port.  Usage: prepare_shops PORTS
prepare_shops() {
    local ports
    IFS=, read -ra ports <<<"$1"
    prepare_sites "${#ports[@]}" web
}

# Runs PostgreSQL for each shop, in the foreground.
# Usage: serve_shop_databases PORTS BUFFER_BYTES
serve_shop_databases() {
    # Each process of Apache keeps one connection.
    local ports buffer_bytes=$2 connections=200
    IFS=, read -ra ports <<<"$1"
    serve_databases "${#ports[@]}" "$buffer_bytes" "$connections"
}

# Runs Apache for each shop, with a process for each of the largest number of USERS, and four more.
# apache.conf reads the variables SHOP_….
# Usage: serve_pages ADDRESS PORTS USERS
serve_pages() {
    local users php ports address=$1
    IFS=, read -ra ports <<<"$2"
    IFS=, read -ra users <<<"$3"
    mapfile -t users < <(printf '%s\n' "${users[@]}" | sort -n)
    php=(/usr/lib/apache2/modules/libphp*.so)
    export SHOP_PROCESSES=$((users[-1] + 4)) SHOP_PHP=${php[-1]} SHOP_KEY
    # The key with which the shop signs its cookies.
    SHOP_KEY=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    # Standard output and Apache's log (/dev/stderr) become one file, to which both append.
    exec >>/dev/stderr 2>&1
    # Runs Apache for a shop, in place of the process.  Usage: serve NUMBER
    serve() {
        export SHOP_FOLDER=$home/$1 SHOP_LISTEN=$address:${ports[$1]}
        # In a session of its own: at its end Apache signals its whole process group.
        exec setsid apache2 -f "$programs/apache.conf" -DFOREGROUND
    }
    supervise_each "${#ports[@]}" TERM
}

# Succeeds if all databases answer; Strata repeats the check until they do.
# Usage: check_databases PORTS
check_databases() {
    local ports
    IFS=, read -ra ports <<<"$1"
    databases_ready "${#ports[@]}"
}

declare -A functions=(
    [data]=make_shop_data [prepare]=prepare_shops [database]=serve_shop_databases
    [web]=serve_pages [ready]=check_databases
)
"${functions[$1]}" "${@:2}"

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

# Makes the database that every shop starts with.  Usage: data SIZE SEED BUFFER_BYTES
data() {
    make_database shop "$3" "$1" "$2"
}

# Unpacks the database for each shop.  Usage: prepare PORTS
prepare() {
    IFS=, read -ra ports <<<"$1"
    prepare_sites "${#ports[@]}" web
}

# Runs PostgreSQL.  Usage: database PORTS BUFFER_BYTES
database() {
    IFS=, read -ra ports <<<"$1"
    serve_databases "${#ports[@]}" "$2" 200
}

# Runs Apache, with a process for each of the largest number of USERS, and four more.
# Usage: web ADDRESS PORTS USERS
web() {
    local users php
    address=$1
    IFS=, read -ra ports <<<"$2"
    IFS=, read -ra users <<<"$3"
    mapfile -t users < <(printf '%s\n' "${users[@]}" | sort -n)
    php=(/usr/lib/apache2/modules/libphp*.so)
    export SHOP_PROCESSES=$((users[-1] + 4)) SHOP_PHP=${php[-1]} SHOP_KEY
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

# Succeeds once all databases answer.  Usage: ready PORTS
ready() {
    IFS=, read -ra ports <<<"$1"
    databases_ready "${#ports[@]}"
}

"$@"

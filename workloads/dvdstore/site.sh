#!/bin/bash
# The shops' data, and their servers in the foreground, one for each shop.
# Usage: site.sh data SIZE SEED BUFFER_BYTES     makes the database that every shop starts with
#        site.sh prepare PORTS                   unpacks it for each shop
#        site.sh database PORTS BUFFER_BYTES
#        site.sh web ADDRESS PORTS USERS         with a process for each of the most USERS, and four
#        site.sh ready PORTS                     succeeds once all databases answer
set -euo pipefail

# shellcheck source=workloads/common/sourced/site.sh
source "${0%/*}/../common/sourced/site.sh"
# shellcheck source=workloads/common/sourced/postgresql.sh
source "${0%/*}/../common/sourced/postgresql.sh"

data() {
    make_database shop "$3" "$1" "$2"
}

prepare() {
    IFS=, read -ra ports <<<"$1"
    prepare_sites "${#ports[@]}" web
}

database() {
    IFS=, read -ra ports <<<"$1"
    serve_databases "${#ports[@]}" "$2" 200
}

# Apache.
web() {
    local users php
    address=$1
    IFS=, read -ra ports <<<"$2"
    IFS=, read -ra users <<<"$3"
    mapfile -t users < <(printf '%s\n' "${users[@]}" | sort -n)
    php=(/usr/lib/apache2/modules/libphp*.so)
    export SHOP_PROCESSES=$((users[-1] + 4)) SHOP_PHP=${php[-1]} SHOP_KEY
    SHOP_KEY=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    # Apache's log and this script's output are one file, to which both append.
    exec >>/dev/stderr 2>&1
    serve() {
        export SHOP_FOLDER=$home/$1 SHOP_LISTEN=$address:${ports[$1]}
        # In a session of its own: at its end it signals its whole group, not only its children.
        exec setsid apache2 -f "$programs/apache.conf" -DFOREGROUND
    }
    stand_each "${#ports[@]}" TERM
}

ready() {
    IFS=, read -ra ports <<<"$1"
    databases_ready "${#ports[@]}"
}

"$@"

#!/bin/bash
# The shops' data, and their servers in the foreground, one for each shop.
# Usage: site.sh data SIZE SEED BUFFER_BYTES     makes the database that every shop of a cell starts with
#        site.sh prepare PORTS                   unpacks it for each shop, in place of what an earlier cell may have left
#        site.sh database PORTS BUFFER_BYTES
#        site.sh web ADDRESS PORTS USERS         a process for every user of the point with most of them, and four more
#        site.sh ready database PORTS | web ADDRESS PORTS
#                                                ends with 0 once all of them can be reached
# PORTS, those of the pages, and USERS, of each point, have commas between them.
set -euo pipefail

# shellcheck source=workloads/common/sourced/postgresql.sh
source "${0%/*}/../common/sourced/postgresql.sh"
# shellcheck source=workloads/common/sourced/stand.sh
source "${0%/*}/../common/sourced/stand.sh"

# A shop has its own folder, by its number from 0.
home=/data/dvdstore

data() {
    make_database "$home/0" shop shop "$3" \
        "'$1', $2, :'rows', (SELECT count(*) FROM orders), sum(stock) FROM inventory" "$1" "$2"
}

prepare() {
    local ports shop
    IFS=, read -r -a ports <<<"$1"
    rm -rf -- "$home"
    for shop in "${!ports[@]}"; do
        unpack_database "$home/$shop" www-data
        mkdir "$home/$shop/web"
    done
    # So that nothing of it is still to be written while something is measured.
    sync -f "$home"
}

database() {
    IFS=, read -r -a ports <<<"$1"
    buffer_bytes=$2
    serve() {
        database_options "$home/$1" "$buffer_bytes" 200
        exec "${as_postgres[@]}" "$(postgres_programs)/postgres" "${options[@]}"
    }
    # Asked to end at once, without waiting for connections.
    stand_each "${#ports[@]}" INT
}

# Apache.
web() {
    local users count php most=0
    address=$1
    IFS=, read -r -a ports <<<"$2"
    IFS=, read -r -a users <<<"$3"
    for count in "${users[@]}"; do
        most=$((count > most ? count : most))
    done
    php=(/usr/lib/apache2/modules/libphp*.so)
    export SHOP_PROCESSES=$((most + 4)) SHOP_PHP=${php[-1]} SHOP_KEY
    SHOP_KEY=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    # What the servers log and what is said here are one file, to which all append.
    exec >>/dev/stderr 2>&1
    serve() {
        export SHOP_FOLDER=$home/$1 SHOP_LISTEN=$address:${ports[$1]}
        # In a session of its own: where it ends, it sends the signal to all of its group, not only to its children.
        exec setsid apache2 -f /opt/strata/workloads/dvdstore/apache.conf -DFOREGROUND
    }
    stand_each "${#ports[@]}" TERM
}

ready() {
    local ports shop
    IFS=, read -r -a ports <<<"${!#}"
    for shop in "${!ports[@]}"; do
        case $1 in
        database) "${as_postgres[@]}" pg_isready --quiet --host="$home/$shop" --dbname=shop --username=shop ;;
        web) /opt/strata/bin/reach "$2" "${ports[shop]}" ;;
        esac
    done
}

"$@"

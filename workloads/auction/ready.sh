#!/bin/bash
# Ends with 0 once a server answers.
# Usage: ready.sh database | ready.sh broker PORTS | ready.sh application PROCESSES | ready.sh web ADDRESS PORT
set -euo pipefail

# shellcheck source=workloads/auction/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/postgresql.sh
source "${0%/*}/../common/sourced/postgresql.sh"

case $1 in
database)
    "${as_postgres[@]}" pg_isready --quiet --host="$store" --dbname=postgres
    ;;
broker)
    /opt/strata/bin/reach 127.0.0.1 "${2%%,*}"
    ;;
application)
    # A process makes its socket once it has reached database and broker.
    for ((number = 0; number < $2; number++)); do
        [ -S "$home/site/$number" ]
    done
    ;;
web)
    exec 3<>"/dev/tcp/$2/$3"
    printf 'GET /api/books HTTP/1.0\r\nHost: auction\r\n\r\n' >&3
    read -r -t 10 answer <&3
    [[ $answer == HTTP/1.?\ 200* ]]
    ;;
*)
    echo "ready.sh: what is $1?" >&2
    exit 2
    ;;
esac

#!/bin/bash
# Ends with 0 once every instance of a server answers.
# Usage: ready.sh database PORTS | ready.sh php PORTS | ready.sh http PATH ADDRESS PORTS
set -euo pipefail

# shellcheck source=workloads/cloudstone/common.sh
source "${0%/*}/common.sh"

case $1 in
database)
    IFS=, read -ra ports <<<"$2"
    for number in "${!ports[@]}"; do
        mariadb-admin --no-defaults --skip-ssl --socket="$home/$number/mysql/socket" ping >/dev/null
    done
    ;;
php)
    IFS=, read -ra ports <<<"$2"
    for number in "${!ports[@]}"; do
        [ -S "$home/$number/php" ]
    done
    ;;
http)
    IFS=, read -ra ports <<<"$4"
    for port in "${ports[@]}"; do
        exec 3<>"/dev/tcp/$3/$port"
        printf 'GET %s HTTP/1.0\r\n\r\n' "$2" >&3
        read -r -t 10 answer <&3
        [[ $answer == HTTP/1.?\ 200* ]]
        exec 3>&-
    done
    ;;
*)
    echo "ready.sh: what is $1?" >&2
    exit 2
    ;;
esac

#!/bin/bash
# Makes the database that every cell starts with, and packs it into /data/prepared.
# Usage: data.sh ROWS BUFFER_BYTES LOG_BYTES
set -euo pipefail

# shellcheck source=workloads/mysql/options.sh
source "${0%/*}/options.sh"

rows=$1
server_options "$2" "$3"
rm -rf -- "$home" /data/prepared
begin_database "$home"
ask_new --execute="CREATE DATABASE $schema"
# One seed for all: the same rows in every image.
sysbench oltp_read_write --db-driver=mysql --mysql-socket="$home/socket" --mysql-user=root \
    --mysql-db="$schema" --tables=1 --table-size="$rows" \
    --rand-type=special --rand-seed=1 prepare
ask_new --execute="ANALYZE TABLE $schema.sbtest1"
found=$(ask_new --execute="SELECT COUNT(*) FROM $schema.sbtest1")
if [ "$found" != "$rows" ]; then
    echo "the table has $found rows, not $rows" >&2
    exit 1
fi
pack_database "$home"

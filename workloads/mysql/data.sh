#!/bin/bash
# Makes the database that every cell starts with, and packs it into /data/prepared.
# Usage: data.sh ROWS BUFFER_BYTES LOG_BYTES
# The server listens on a socket only, which lets root in without a password, and ends slowly: all is purged and written, so that the copies of the
# files start alike and have nothing to catch up on.
set -euo pipefail

# shellcheck source=workloads/mysql/options.sh
source "${0%/*}/options.sh"

rows=$1
server_options "$2" "$3"
rm -rf -- "$home" /data/prepared
mkdir -p "$home/data" "$home/tmp"
# The server is not root.
chmod a+x "${home%/*}"
chown -R mysql: "$home"
# --cross-bootstrap: the tables do not name the machine that they were made on.
mariadb-install-db --no-defaults --cross-bootstrap --skip-test-db "${options[@]}"

mariadbd --no-defaults "${options[@]}" --skip-networking --innodb-fast-shutdown=0 &
server=$!
trap 'kill "$server"' EXIT
at_socket=(--no-defaults --socket="$home/socket" --skip-ssl)
until mariadb-admin "${at_socket[@]}" ping >/dev/null 2>&1; do
    kill -0 "$server"
    sleep 0.1
done
mariadb "${at_socket[@]}" --execute="CREATE DATABASE $schema"
# One seed for all: the same rows in every image.
sysbench oltp_read_write --db-driver=mysql --mysql-socket="$home/socket" --mysql-user=root \
    --mysql-db="$schema" --tables=1 --table-size="$rows" \
    --rand-type=special --rand-seed=1 prepare
mariadb "${at_socket[@]}" --execute="ANALYZE TABLE $schema.sbtest1"
found=$(mariadb "${at_socket[@]}" --skip-column-names --execute="SELECT COUNT(*) FROM $schema.sbtest1")
if [ "$found" != "$rows" ]; then
    echo "the table has $found rows, not $rows" >&2
    exit 1
fi
mariadb-admin "${at_socket[@]}" shutdown
trap - EXIT
wait "$server"

# Fast rather than small: what is small at smoke scale is so anyway, and at paper scale the time counts.
tar -C "${home%/*}" --create --sparse --numeric-owner --exclude=ibtmp1 "${home##*/}" | gzip -1 >/data/prepared.part
mv -- /data/prepared.part /data/prepared
rm -rf -- "$home"

#!/bin/bash
# Makes the database and the files that every cell starts with, checks them, and packs them into /data/prepared.
# Usage: data.sh USERS BUFFER_BYTES LOG_BYTES SEED
set -euo pipefail

# shellcheck source=workloads/cloudstone/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/cloudstone/options.sh
source "${0%/*}/options.sh"

made=$home/made mysql=$home/mysql
database_options "$mysql" "$2" "$3"
rm -rf -- "$home" /data/prepared
mkdir -p "$mysql/data" "$mysql/tmp"
# The servers are not root.
chmod a+x "${home%/*}"
python3 -B "$programs/load.py" "$made" "$1" "$4"
chown -R mysql: "$mysql"
# --cross-bootstrap: the tables do not name the machine that they were made on.
mariadb-install-db --no-defaults --cross-bootstrap --skip-test-db "${options[@]}"

mariadbd --no-defaults "${options[@]}" --innodb-fast-shutdown=0 &
server=$!
trap 'kill "$server"' EXIT
at_socket=(--no-defaults --socket="$mysql/socket" --skip-ssl)
until mariadb-admin "${at_socket[@]}" ping >/dev/null 2>&1; do
    kill -0 "$server"
    sleep 0.1
done
at_socket+=(--local-infile --batch --skip-column-names)
mariadb "${at_socket[@]}" --execute="CREATE DATABASE $schema"
mariadb "${at_socket[@]}" "$schema" <"$programs/schema.sql"
mariadb "${at_socket[@]}" "$schema" <"$made/load.sql"
# What is in the tables is what was made: as many rows, of the same content.
mariadb "${at_socket[@]}" "$schema" <"$made/count.sql" | diff "$made/counted" - >&2
mariadb "${at_socket[@]}" "$schema" --execute="ANALYZE TABLE $(cut -f 1 "$made/counted" | paste -sd ,)"
mariadb-admin --no-defaults --socket="$mysql/socket" --skip-ssl shutdown
trap - EXIT
wait "$server"

mv -- "$made/files" "$home/files"
chown -R www-data: "$home/files"
rm -rf -- "$made"
tar -C "$home" --create --sparse --numeric-owner --exclude=ibtmp1 . | gzip -1 >/data/prepared.part
mv -- /data/prepared.part /data/prepared
rm -rf -- "$home"

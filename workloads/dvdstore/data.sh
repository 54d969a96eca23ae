#!/bin/bash
# Makes the shop's database, which every shop of a cell starts with, and packs it into /data/prepared.
# Usage: data.sh SIZE SEED BUFFER_BYTES
set -euo pipefail

# shellcheck source=workloads/dvdstore/common.sh
source "${0%/*}/common.sh"

own=${0%/*} size=$1 seed=$2
folder=$home/0
bin=$(programs)
rm -rf -- "$home" /data/prepared
mkdir -p "$folder/database" "$folder/rows"
chmod a+x "${home%/*}"
chown -R postgres: "$folder"
"${as_postgres[@]}" "$bin/initdb" --pgdata="$folder/database" --username=postgres --auth=peer --locale=C --encoding=UTF8 \
    --no-sync >/dev/null
# The pages' processes are the web server's, and may only be the account of the pages.
cat >"$folder/database/pg_hba.conf" <<END
local all postgres peer
local $database shop peer map=pages
END
echo 'pages www-data shop' >"$folder/database/pg_ident.conf"

database_options "$folder" "$3"
# What is lost by a crash here is made again.
"${as_postgres[@]}" "$bin/postgres" "${options[@]}" -c fsync=off &
server=$!
trap 'kill "$server"' EXIT
ask() {
    "${as_postgres[@]}" psql --quiet --no-psqlrc --host="$folder" --set=ON_ERROR_STOP=1 --no-align --tuples-only "$@"
}
until "${as_postgres[@]}" pg_isready --quiet --host="$folder"; do
    kill -0 "$server"
    sleep 0.1
done
ask --command="CREATE DATABASE $database" postgres
ask --file=- "$database" <"$own/schema.sql"

/usr/bin/python3 -B "$own/data_set.py" "$size" "$seed" "$folder/rows" >"$folder/rows/list"
while read -r table _ _; do
    ask --command="\\copy $table from stdin" "$database" <"$folder/rows/$table"
done <"$folder/rows/list"
ask --file=- "$database" <"$own/indexes.sql" >/dev/null
ask --file=- "$database" <"$own/procedures.sql"

# What is in the tables must be what was made, row by row.
while read -r table count digest; do
    case $table in
    inventory) key=product ;;
    orderlines | cust_hist) key='order_id, line' ;;
    *) key=id ;;
    esac
    there=$(ask --command="SELECT count(*) FROM $table" "$database")
    copied=$(ask --command="\\copy (SELECT * FROM $table ORDER BY $key) to stdout" "$database" | sha256sum)
    if [ "$there" != "$count" ] || [ "${copied%% *}" != "$digest" ]; then
        echo "table $table has $there rows of $count, or others than those that were made" >&2
        exit 1
    fi
done <"$folder/rows/list"
checksum=$(sha256sum <"$folder/rows/list")
ask --command="INSERT INTO data_set SELECT '$size', $seed, '${checksum%% *}', (SELECT count(*) FROM orders), sum(stock) FROM inventory" \
    "$database"
rm -rf -- "$folder/rows"
ask --command='VACUUM (ANALYZE, FREEZE)' "$database"
ask --command=CHECKPOINT "$database"
kill -INT "$server"
trap - EXIT
wait "$server"

# Fast rather than small.
tar -C "$folder" --create --sparse --numeric-owner database | gzip -1 >/data/prepared.part
mv -- /data/prepared.part /data/prepared
rm -rf -- "$home"

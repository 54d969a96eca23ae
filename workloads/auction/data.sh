#!/bin/bash
# Makes the database that every cell starts with, and packs it into /data/prepared.
# Usage: data.sh MOST_USERS SEED BUFFER_BYTES
set -euo pipefail

# shellcheck source=workloads/auction/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/postgresql.sh
source "${0%/*}/../common/sourced/postgresql.sh"

users=$1 seed=$2
rm -rf -- "$home" /data/prepared
# The servers are not root.
chmod a+x "${home%/*}"
begin_database "$store" "$database" auction "$3"
ask --file=- <"$programs/schema.sql"
/usr/bin/python3 -B "$programs/data_set.py" "$users" "$seed" "$rows" >"$rows/list"
copy_rows
ask --file=- <"$programs/indexes.sql" >/dev/null
ask --file=- <"$programs/procedures.sql"

# The first column is the key of each table.
key_of() {
    echo 1
}
check_rows key_of
ask --command="INSERT INTO data_set SELECT $users, $seed, '$(rows_checksum)', sum(balance) FROM people"
pack_database
rm -rf -- "$home"

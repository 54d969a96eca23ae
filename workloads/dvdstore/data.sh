#!/bin/bash
# Makes the shop's database, which every shop of a cell starts with, and packs it into /data/prepared.
# Usage: data.sh SIZE SEED BUFFER_BYTES
set -euo pipefail

# shellcheck source=workloads/dvdstore/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/postgresql.sh
source "${0%/*}/../common/sourced/postgresql.sh"

own=${0%/*} size=$1 seed=$2
rm -rf -- "$home" /data/prepared
# The servers are not root.
chmod a+x "${home%/*}"
begin_database "$home/0" "$database" shop "$3"
ask --file=- <"$own/schema.sql"
/usr/bin/python3 -B "$own/data_set.py" "$size" "$seed" "$rows" >"$rows/list"
copy_rows
ask --file=- <"$own/indexes.sql" >/dev/null
ask --file=- <"$own/procedures.sql"

key_of() {
    case $1 in
    inventory) echo product ;;
    orderlines | cust_hist) echo 'order_id, line' ;;
    *) echo id ;;
    esac
}
check_rows key_of
ask --command="INSERT INTO data_set SELECT '$size', $seed, '$(rows_checksum)', (SELECT count(*) FROM orders),
    sum(stock) FROM inventory"
pack_database
rm -rf -- "$home"

#!/bin/bash
# Makes the database and the files that every cell starts with, checks them, and packs them into /data/prepared.
# Usage: data.sh USERS BUFFER_BYTES LOG_BYTES SEED
set -euo pipefail

# shellcheck source=workloads/cloudstone/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/mariadb.sh
source "${0%/*}/../common/sourced/mariadb.sh"

made=$home/made
cell_options "$home/mysql" "$2" "$3"
rm -rf -- "$home" /data/prepared
mkdir -p "$home"
python3 -B "$programs/load.py" "$made" "$1" "$4"
begin_database "$home/mysql"
ask_new --execute="CREATE DATABASE $schema"
ask_new "$schema" <"$programs/schema.sql"
ask_new --local-infile "$schema" <"$made/load.sql"
# What is in the tables is what was made: as many rows, of the same content.
ask_new "$schema" <"$made/count.sql" | diff "$made/counted" - >&2
ask_new "$schema" --execute="ANALYZE TABLE $(cut -f 1 "$made/counted" | paste -sd ,)"
mv -- "$made/files" "$home/files"
chown -R www-data: "$home/files"
rm -rf -- "$made"
pack_database "$home"

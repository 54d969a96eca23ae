# shellcheck shell=bash
# Sourced by scripts whose data are made once for an image, and unpacked in every cell.

# Waits until a command succeeds, without a limit of time.  If the server's process ends before, the
# script ends: kill fails then, and scripts that source this file run under `set -e`.
# Usage: wait_for_server PROCESS COMMAND…
wait_for_server() {
    local process=$1
    until "${@:2}" >/dev/null 2>&1; do
        kill -0 "$process"
        sleep 0.1
    done
}

# Fills the tables of a new database with the rows that data_set.py writes into FOLDER; it prints
# the tables' names in the order in which they are filled.  Uses `load_table TABLE FILE` and
# `dump_table TABLE` of mariadb.sh or postgresql.sh.
# Usage: fill_tables FOLDER WORD…      (further arguments of data_set.py)
# No local variable may be called `folder`: query_new of postgresql.sh would take it for its own.
fill_tables() {
    local rows=$1 tables table
    tables=$(/usr/bin/python3 -B "${0%/*}/data_set.py" "$@")
    for table in $tables; do
        load_table "$table" "$rows/$table"
        # The table must hold exactly the rows of the file.
        dump_table "$table" | sort | cmp - <(sort "$rows/$table")
    done
}

# Packs a folder into /data/prepared, which Strata keeps and gives to every cell's system, and
# removes the folder.  Usage: pack_data FOLDER
pack_data() {
    # Fast rather than small.  ibtmp1 holds MariaDB's temporary tables, which its start makes anew.
    tar -C "$1" --create --sparse --numeric-owner --exclude=ibtmp1 . | gzip -1 >/data/prepared.part
    mv -- /data/prepared.part /data/prepared
    rm -rf -- "$1"
}

# Unpacks /data/prepared into a folder; an earlier cell's folder is removed.
# Usage: unpack_data FOLDER
unpack_data() {
    rm -rf -- "$1"
    mkdir -p "$1"
    tar -C "$1" --extract --gzip --preserve-permissions --numeric-owner --file=/data/prepared
    # The servers are not root.
    chmod a+x /data "${1%/*}" "$1"
}

# shellcheck shell=bash
# Sourced by workloads with databases in PostgreSQL: who runs a server, its options, and how the data of an image are
# made, checked and packed.  A database has a folder, with its files in `database` and its socket beside these.

# What runs a command as the user of the packages: PostgreSQL refuses to be run by root.
as_postgres=(setpriv --reuid=postgres --regid=postgres --clear-groups --)

# The folder with PostgreSQL's programs: that of the newest version, and there is but one.
postgres_programs() {
    local found=(/usr/lib/postgresql/*/bin)
    echo "${found[-1]}"
}

# The options of a server.  Durability is the server's default and is said all the same: a commit is on the disk, in the
# sense of fdatasync, before it is answered.  Usage: database_options FOLDER BUFFER_BYTES CONNECTIONS
# Sets the array `options`.
database_options() {
    # shellcheck disable=SC2034  # the scripts that source this use it, too
    options=(
        -D "$1/database"
        -c "unix_socket_directories=$1"
        # What asks it is on the same system: nothing listens on the network.
        -c listen_addresses=
        -c fsync=on -c synchronous_commit=on -c full_page_writes=on -c wal_sync_method=fdatasync
        -c "shared_buffers=$(($2 / 1024))kB"
        -c "max_connections=$3"
        # What depends on the packages that lie beside the server, or on what the machine has to spare.
        -c jit=off -c huge_pages=off
        -c timezone=UTC -c log_timezone=UTC -c lc_messages=C -c "log_line_prefix=%m [%p] "
    )
}

# Asks a new database.  Usage: ask OPTION… of psql
ask() {
    "${as_postgres[@]}" psql --quiet --no-psqlrc --host="$folder" --set=ON_ERROR_STOP=1 --no-align --tuples-only \
        --dbname="$database" "$@"
}

# Makes the database that every cell starts with, and packs it into /data/prepared.  Beside the calling script are
# schema.sql, data_set.py, which writes the rows, indexes.sql and procedures.sql.  At the socket postgres is who asks,
# and ACCOUNT whoever gets there, which in a cell unpack_database decides: who asks some sandbox could not tell.
# Usage: make_database FOLDER DATABASE ACCOUNT BUFFER_BYTES NOTE WORD…
# NOTE: what is selected into the table data_set; :'rows' in it is the checksum of all rows.
# data_set.py WORD… FOLDER writes a file for each table, and prints of each its name, the number of its rows, their
# SHA-256, and by which columns they are in order.
make_database() {
    local own=${0%/*} note=$5 buffer_bytes=$4 account=$3 bin table count digest key copied there
    folder=$1 database=$2
    shift 5
    bin=$(postgres_programs)
    rm -rf -- "$folder" /data/prepared
    mkdir -p "$folder"/{database,rows}
    # The server is not root.
    chmod a+x /data "${folder%/*}"
    chown -R postgres: "$folder"
    chmod 700 "$folder"
    "${as_postgres[@]}" "$bin/initdb" --pgdata="$folder/database" --username=postgres --auth=peer --locale=C \
        --encoding=UTF8 --no-sync >/dev/null
    printf 'local all postgres peer\nlocal %s %s trust\n' "$database" "$account" >"$folder/database/pg_hba.conf"
    database_options "$folder" "$buffer_bytes" 20
    # What is lost by a crash here is made again.
    "${as_postgres[@]}" "$bin/postgres" "${options[@]}" -c fsync=off &
    server=$!
    trap 'kill "$server"' EXIT
    until "${as_postgres[@]}" pg_isready --quiet --host="$folder"; do
        kill -0 "$server"
        sleep 0.1
    done
    "${as_postgres[@]}" "$bin/createdb" --host="$folder" "$database"
    ask --file=- <"$own/schema.sql"
    /usr/bin/python3 -B "$own/data_set.py" "$@" "$folder/rows" >"$folder/list"
    while read -r table _; do
        ask --command="\\copy $table from stdin" <"$folder/rows/$table"
    done <"$folder/list"
    ask --file=- <"$own/indexes.sql" >/dev/null
    ask --file=- <"$own/procedures.sql"
    # The tables hold what was made, row by row.
    while read -r table count digest key; do
        copied=$(ask --command="\\copy (SELECT * FROM $table ORDER BY $key) to stdout" | sha256sum)
        there=$(ask --command="SELECT count(*) FROM $table")
        if [ "$there" != "$count" ] || [ "${copied%% *}" != "$digest" ]; then
            echo "table $table has $there rows of $count, or others than those that were made" >&2
            exit 1
        fi
    done <"$folder/list"
    copied=$(sha256sum <"$folder/list")
    ask --set=rows="${copied%% *}" --file=- <<<"INSERT INTO data_set SELECT $note;"
    ask --command='VACUUM (ANALYZE, FREEZE)'
    ask --command=CHECKPOINT
    kill -INT "$server"
    trap - EXIT
    wait "$server"
    # Fast rather than small.
    tar -C "$folder" --create --sparse --numeric-owner database | gzip -1 >/data/prepared.part
    mv -- /data/prepared.part /data/prepared
    rm -rf -- "$folder"
}

# Unpacks it in place of what an earlier cell may have left.  Its socket can be reached by the server and by one group
# alone, whose users may be ACCOUNT.  Usage: unpack_database FOLDER GROUP
unpack_database() {
    rm -rf -- "$1"
    mkdir -p "$1"
    tar -C "$1" --extract --gzip --preserve-permissions --numeric-owner --file=/data/prepared
    chmod a+x /data "${1%/*}"
    chown "postgres:$2" "$1"
    chmod 710 "$1"
}

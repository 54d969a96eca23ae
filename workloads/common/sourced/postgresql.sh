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

# Lets the socket of a folder be reached by the server and by one group alone, whose users may be the account that has
# been let in (begin_database).  Usage: close_socket FOLDER GROUP
close_socket() {
    chown "postgres:$2" "$1"
    chmod 710 "$1"
}

# Starts the server of a new database, and a folder for rows in its own.  At the socket postgres is who asks, and
# ACCOUNT whoever gets there, which in a cell close_socket decides: who asks is what some sandbox could not tell.
# Usage: begin_database FOLDER DATABASE ACCOUNT BUFFER_BYTES
# Sets `folder`, `database`, `rows` and `server`, which the next ones use.
begin_database() {
    local bin
    folder=$1 database=$2 rows=$1/rows
    bin=$(postgres_programs)
    mkdir -p "$folder/database" "$rows"
    chown -R postgres: "$folder"
    chmod 700 "$folder"
    "${as_postgres[@]}" "$bin/initdb" --pgdata="$folder/database" --username=postgres --auth=peer --locale=C \
        --encoding=UTF8 --no-sync >/dev/null
    printf 'local all postgres peer\nlocal %s %s trust\n' "$database" "$3" >"$folder/database/pg_hba.conf"
    database_options "$folder" "$4" 20
    # What is lost by a crash here is made again.
    "${as_postgres[@]}" "$bin/postgres" "${options[@]}" -c fsync=off &
    server=$!
    trap 'kill "$server"' EXIT
    until "${as_postgres[@]}" pg_isready --quiet --host="$folder"; do
        kill -0 "$server"
        sleep 0.1
    done
    "${as_postgres[@]}" "$bin/createdb" --host="$folder" "$database"
}

# Asks the new database.  Usage: ask OPTION… of psql
ask() {
    "${as_postgres[@]}" psql --quiet --no-psqlrc --host="$folder" --set=ON_ERROR_STOP=1 --no-align --tuples-only \
        --dbname="$database" "$@"
}

# Copies rows into the tables.  $rows has a file for each table, and `list`: table, number of rows and their SHA-256.
copy_rows() {
    local table
    while read -r table _ _; do
        ask --command="\\copy $table from stdin" <"$rows/$table"
    done <"$rows/list"
}

# Fails unless the tables hold what was made, row by row.  Usage: check_rows ORDER
# ORDER is a command that says of a table by which columns its rows were made in order.
check_rows() {
    local table count digest copied there
    while read -r table count digest; do
        copied=$(ask --command="\\copy (SELECT * FROM $table ORDER BY $("$1" "$table")) to stdout" | sha256sum)
        there=$(ask --command="SELECT count(*) FROM $table")
        if [ "$there" != "$count" ] || [ "${copied%% *}" != "$digest" ]; then
            echo "table $table has $there rows of $count, or others than those that were made" >&2
            exit 1
        fi
    done <"$rows/list"
}

# The checksum of all rows.
rows_checksum() {
    local found
    found=$(sha256sum <"$rows/list")
    echo "${found%% *}"
}

# Ends the server, and packs the database into /data/prepared.
pack_database() {
    rm -rf -- "$rows"
    ask --command='VACUUM (ANALYZE, FREEZE)'
    ask --command=CHECKPOINT
    kill -INT "$server"
    trap - EXIT
    wait "$server"
    # Fast rather than small.
    tar -C "$folder" --create --sparse --numeric-owner database | gzip -1 >/data/prepared.part
    mv -- /data/prepared.part /data/prepared
}

# Unpacks what pack_database has packed.  Usage: unpack_database FOLDER
unpack_database() {
    mkdir -p "$1"
    tar -C "$1" --extract --gzip --preserve-permissions --numeric-owner --file=/data/prepared
}

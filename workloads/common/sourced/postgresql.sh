# shellcheck shell=bash
# Sourced, after site.sh, by applications with databases in PostgreSQL: the servers, their options,
# and how the data of an image are made, checked and packed.  A database has a folder, with its
# socket and, in `database`, its files.

# Runs a command as the packages' user: PostgreSQL refuses to be run by root.
as_postgres=(setpriv --reuid=postgres --regid=postgres --clear-groups --)

# The folder with PostgreSQL's programs.
postgres_programs() {
    local folders=(/usr/lib/postgresql/*/bin)
    echo "${folders[-1]}"
}

# The options of a server.  Durability is the default, and still explicit: a commit is on the disk,
# in the sense of fdatasync, before it is answered.
# Usage: database_options FOLDER BUFFER_BYTES CONNECTIONS; sets the array `options`
database_options() {
    # shellcheck disable=SC2034  # the scripts that source this use it, too
    options=(
        -D "$1/database"
        -c "unix_socket_directories=$1"
        # Its clients are on the same system: nothing listens on the network.
        -c listen_addresses=
        -c fsync=on -c synchronous_commit=on -c full_page_writes=on
        -c wal_sync_method=fdatasync
        -c "shared_buffers=$(($2 / 1024))kB"
        -c "max_connections=$3"
        # These would depend on other packages, or on the machine.
        -c jit=off -c huge_pages=off
        -c timezone=UTC -c log_timezone=UTC -c lc_messages=C
        -c "log_line_prefix=%m [%p] "
    )
}

# Sends SQL to a new database.  Usage: ask OPTION… of psql
ask() {
    "${as_postgres[@]}" psql --quiet --no-psqlrc --host="$folder" --set=ON_ERROR_STOP=1 \
        --no-align --tuples-only --dbname="$database" "$@"
}

# Makes the database that every cell starts with, and packs it into /data/prepared.  The folder of
# the calling script has schema.sql, data_set.py, which writes the rows, indexes.sql and
# procedures.sql.  In a cell the account of the database's name needs no password at the socket,
# since some sandbox could not tell which user connects.
# Usage: make_database DATABASE BUFFER_BYTES WORD…    (arguments of data_set.py, after the folder)
make_database() {
    local own=${0%/*} buffer_bytes=$2 bin table
    # shellcheck disable=SC2154  # of site.sh
    folder=$home/made database=$1
    shift 2
    bin=$(postgres_programs)
    rm -rf -- "$folder" /data/prepared
    mkdir -p "$folder"/{database,rows}
    # The server is not root.
    chmod a+x /data "$home"
    chown -R postgres: "$folder"
    chmod 700 "$folder"
    "${as_postgres[@]}" "$bin/initdb" --pgdata="$folder/database" --username=postgres --auth=peer \
        --locale=C --encoding=UTF8 --no-sync >/dev/null
    printf 'local all postgres peer\nlocal %s %s trust\n' "$database" "$database" \
        >"$folder/database/pg_hba.conf"
    database_options "$folder" "$buffer_bytes" 20
    # After a crash all is made again.
    "${as_postgres[@]}" "$bin/postgres" "${options[@]}" -c fsync=off &
    server=$!
    trap 'kill "$server"' EXIT
    until "${as_postgres[@]}" pg_isready --quiet --host="$folder"; do
        kill -0 "$server"
        sleep 0.1
    done
    "${as_postgres[@]}" "$bin/createdb" --host="$folder" "$database"
    ask --file=- <"$own/schema.sql"
    for table in $(/usr/bin/python3 -B "$own/data_set.py" "$folder/rows" "$@"); do
        ask --command="\\copy $table from stdin" <"$folder/rows/$table"
        # The table holds the rows that were made.
        ask --command="\\copy $table to stdout" | sort | cmp - <(sort "$folder/rows/$table")
    done
    ask --file=- <"$own/indexes.sql" >/dev/null
    ask --file=- <"$own/procedures.sql"
    ask --command='VACUUM (ANALYZE, FREEZE)'
    ask --command=CHECKPOINT
    kill -INT "$server"
    trap - EXIT
    wait "$server"
    # Fast rather than small.
    tar -C "$folder" --create --sparse --numeric-owner database | gzip -1 >/data/prepared.part
    mv -- /data/prepared.part /data/prepared
    rm -rf -- "$home"
}

# Unpacks it in place of what an earlier cell may have left.  Only the server and the web server's
# group reach its socket.  Usage: unpack_database FOLDER
unpack_database() {
    rm -rf -- "$1"
    mkdir -p "$1"
    tar -C "$1" --extract --gzip --preserve-permissions --numeric-owner --file=/data/prepared
    chmod a+x /data "${1%/*}"
    chown postgres:www-data "$1"
    chmod 710 "$1"
}

# Runs a server for each site.  Usage: serve_databases COUNT BUFFER_BYTES CONNECTIONS
serve_databases() {
    buffer_bytes=$2 connections=$3
    # shellcheck disable=SC2317  # stand_each calls it
    serve() {
        database_options "$home/$1" "$buffer_bytes" "$connections"
        exec "${as_postgres[@]}" "$(postgres_programs)/postgres" "${options[@]}"
    }
    # INT: at once, without waiting for connections to end.
    stand_each "$1" INT
}

# Succeeds once the servers of all sites answer.  Usage: databases_ready COUNT
databases_ready() {
    local number
    for ((number = 0; number < $1; number++)); do
        "${as_postgres[@]}" pg_isready --quiet --host="$home/$number"
    done
}

# shellcheck shell=bash
# Sourced, after site.sh, by applications with databases in PostgreSQL: the servers, their options,
# and the making of the data.  A database is a folder with a socket, and with the files in
# `database`.

# shellcheck source=workloads/common/sourced/data.sh
source "${BASH_SOURCE[0]%/*}/data.sh"

# Stands before a command that runs as PostgreSQL's user: the server refuses to run as root.
as_postgres=(setpriv --reuid=postgres --regid=postgres --clear-groups --)

# Prints the folder with PostgreSQL's programs, of the newest version that is installed.
find_program_folder() {
    # Sorted as texts: all versions in question have two digits.
    local folders=(/usr/lib/postgresql/*/bin)
    echo "${folders[-1]}"
}

# Sets the array `options` to the options of a server.  Durability is the default, and still
# explicit: a commit is on the disk, by fdatasync, before it is answered.
# Usage: set_database_options FOLDER BUFFER_BYTES CONNECTIONS
set_database_options() {
    # shellcheck disable=SC2034  # the scripts that source this file use it, too
    options=(
        -D "$1/database"
        -c "unix_socket_directories=$1"
        # Its clients are on the same system: nothing listens on the network.
        -c listen_addresses=
        -c fsync=on -c synchronous_commit=on -c full_page_writes=on
        -c wal_sync_method=fdatasync
        -c "shared_buffers=$(($2 / 1024))kB"
        -c "max_connections=$3"
        # Otherwise these would follow from other packages, or from the machine.
        -c jit=off -c huge_pages=off
        -c timezone=UTC -c log_timezone=UTC -c lc_messages=C
        -c "log_line_prefix=%m [%p] "
    )
}

# Sends SQL to the new database, which start_new_database names in `folder` and `database`.
# Usage: query_new OPTION…      (of psql)
query_new() {
    "${as_postgres[@]}" psql --quiet --no-psqlrc --host="$folder" --set=ON_ERROR_STOP=1 \
        --no-align --tuples-only --dbname="$database" "$@"
}

# Loads the rows of a file, which rows.py wrote, into a table of the new database.
# Usage: load_table TABLE FILE
load_table() {
    query_new --command="\\copy $1 from stdin" <"$2"
}

# Prints the rows of a table of the new database, as in a file of rows: fill_tables compares both.
# Usage: dump_table TABLE
dump_table() {
    query_new --command="\\copy $1 to stdout"
}

# Makes a new database, and starts its server at a socket, where the account of the database's name
# needs no password.  Sets `server`, its process, and `folder` and `database` for query_new.  The
# server ends by stop_new_database, or with the script.  Removes FOLDER and /data/prepared first.
# Usage: start_new_database FOLDER DATABASE BUFFER_BYTES
start_new_database() {
    local buffer_bytes=$3 bin
    folder=$1 database=$2
    bin=$(find_program_folder)
    rm -rf -- "$folder" /data/prepared
    mkdir -p "$folder/database"
    # The server is not root.
    chmod a+x /data "${folder%/*}"
    chown -R postgres: "$folder"
    chmod 700 "$folder"
    "${as_postgres[@]}" "$bin/initdb" --pgdata="$folder/database" --username=postgres --auth=peer \
        --locale=C --encoding=UTF8 --no-sync >/dev/null
    printf 'local all postgres peer\nlocal %s %s trust\n' "$database" "$database" \
        >"$folder/database/pg_hba.conf"
    # 20 connections are more than the making of the data takes.
    set_database_options "$folder" "$buffer_bytes" 20
    # Without fsync: after a crash the database is made again.
    "${as_postgres[@]}" "$bin/postgres" "${options[@]}" -c fsync=off &
    server=$!
    trap 'kill "$server"' EXIT
    wait_for_server "$server" "${as_postgres[@]}" pg_isready --quiet --host="$folder"
    "${as_postgres[@]}" "$bin/createdb" --host="$folder" "$database"
}

# Ends the server of the new database, once all is on the disk.
stop_new_database() {
    query_new --command='VACUUM (ANALYZE, FREEZE)'
    query_new --command=CHECKPOINT
    kill -INT "$server"
    trap - EXIT
    wait "$server"
}

# Makes the database that every cell starts with, and packs it into /data/prepared.  $home, which
# holds nothing else, is made and removed.  The folder of the calling script has schema.sql,
# data_set.py, which writes the rows, indexes.sql and procedures.sql.  In a cell the account of the
# database's name needs no password at the socket, since a sandbox may hide which user connects.
# Usage: make_database DATABASE BUFFER_BYTES WORD…    (arguments of data_set.py, after the folder)
make_database() {
    local sources=${0%/*} database=$1 buffer_bytes=$2
    # shellcheck disable=SC2154  # site.sh sets `home`
    start_new_database "$home/new" "$database" "$buffer_bytes"
    shift 2
    install -d -o postgres -g postgres "$folder/rows"
    query_new --file=- <"$sources/schema.sql"
    fill_tables "$folder/rows" "$@"
    query_new --file=- <"$sources/indexes.sql" >/dev/null
    query_new --file=- <"$sources/procedures.sql"
    stop_new_database
    rm -rf -- "$folder/rows"
    pack_data "$folder"
    rmdir -- "$home"
}

# Unpacks a database, for prepare_sites; only server and web server's group may reach its socket.
# Usage: unpack_database FOLDER
unpack_database() {
    unpack_data "$1"
    chown postgres:www-data "$1"
    chmod 710 "$1"
}

# Runs a server for each site, in the foreground, until SIGTERM.  CONNECTIONS: of each server.
# Usage: serve_databases COUNT BUFFER_BYTES CONNECTIONS
# The variables are not local: `serve` reads them in a process of its own.
serve_databases() {
    buffer_bytes=$2 connections=$3
    # Runs the server of a site, in place of the process.  Usage: serve NUMBER
    # shellcheck disable=SC2317  # supervise_each calls it
    serve() {
        set_database_options "$home/$1" "$buffer_bytes" "$connections"
        exec "${as_postgres[@]}" "$(find_program_folder)/postgres" "${options[@]}"
    }
    # INT: the server does not wait for connections to end.
    supervise_each "$1" INT
}

# Succeeds if the servers of all sites answer; Strata repeats the check until it does.
# Usage: databases_ready COUNT
databases_ready() {
    local number
    for ((number = 0; number < $1; number++)); do
        "${as_postgres[@]}" pg_isready --quiet --host="$home/$number"
    done
}

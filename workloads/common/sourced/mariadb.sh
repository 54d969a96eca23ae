# shellcheck shell=bash
# Sourced by workloads with databases in MariaDB: a server's options, its account for the load, and
# the making of the data.  A database is a folder with `data`, `tmp` and `socket` in it.  No server
# or client reads the distribution's configuration (--no-defaults).

# shellcheck source=workloads/common/sourced/data.sh
source "${BASH_SOURCE[0]%/*}/data.sh"

# Sets the array `options` to the options of each server; a workload adds its own.
# Usage: set_database_options FOLDER BUFFER_BYTES LOG_BYTES
set_database_options() {
    # shellcheck disable=SC2034  # the scripts that source this file use it, too
    options=(
        --user=mysql
        --datadir="$1/data"
        --tmpdir="$1/tmp"
        --socket="$1/socket"
        --pid-file="$1/pid"
        --innodb-buffer-pool-size="$2"
        --innodb-log-file-size="$3"
        # Undo logs are in the system tablespace, as in the originals.
        --innodb-undo-tablespaces=0
        # Only the warm-up fills the buffer pool, and no thread in the background.
        --innodb-buffer-pool-dump-at-shutdown=OFF
        --innodb-buffer-pool-load-at-startup=OFF
        # Containers forbid the kernel's asynchronous I/O (io_uring), where the server falls back to
        # threads without a word; it uses threads in every environment.
        --innodb-use-native-aio=OFF
    )
}

# Makes a new database, and starts its server with the array `options`.  The server listens at the
# socket only, and lets root in without a password.  Sets `server`, its process, and the array
# `at_socket`: a client's options for this server.  The server ends by stop_new_database, or with
# the script.
# Usage: start_new_database FOLDER
start_new_database() {
    at_socket=(--no-defaults --socket="$1/socket" --skip-ssl)
    mkdir -p "$1/data" "$1/tmp"
    # The server is not root.
    chmod a+x /data "${1%/*}"
    chown -R mysql: "$1"
    # --cross-bootstrap: the tables do not name the machine that made them.
    mariadb-install-db --no-defaults --cross-bootstrap --skip-test-db "${options[@]}"
    # --innodb-fast-shutdown=0: all is purged and written at the end, so that every copy of the
    # files starts alike.
    mariadbd --no-defaults "${options[@]}" --skip-networking --innodb-fast-shutdown=0 &
    server=$!
    trap 'kill "$server"' EXIT
    wait_for_server "$server" mariadb-admin "${at_socket[@]}" ping
}

# Sends SQL to the new database, as root, by the options `at_socket` of start_new_database.
# Usage: query_new OPTION…      (of the client mariadb)
query_new() {
    mariadb "${at_socket[@]}" --batch --skip-column-names "$@"
}

# Loads the rows of a file, which rows.py wrote, into a table of the new database, in $schema.
# Usage: load_table TABLE FILE
load_table() {
    # shellcheck disable=SC2154  # the sourcing script sets `schema`
    query_new --local-infile "$schema" --execute="LOAD DATA LOCAL INFILE '$2' INTO TABLE $1"
    query_new "$schema" --execute="ANALYZE TABLE $1"
}

# Prints the rows of a table of the new database, as in a file of rows: fill_tables compares both.
# Usage: dump_table TABLE
dump_table() {
    query_new "$schema" --execute="SELECT * FROM $1"
}

# Ends the server of the new database, once all is on the disk.
stop_new_database() {
    mariadb-admin "${at_socket[@]}" shutdown
    trap - EXIT
    wait "$server"
}

# Unpacks the files of a database into a folder, for prepare_sites.  Usage: unpack_database FOLDER
unpack_database() {
    unpack_data "$1"
}

# Runs the server of a database with the array `options`, in place of the script.  First it gives
# the load an account with the cell's password, which Strata writes into /data/password, and with
# rights in one schema.  FOLDER then holds the statements, which only the server can read.
# Usage: run_database FOLDER USER HOST SCHEMA RIGHTS      (HOST: from which the account logs in)
run_database() {
    local folder=$1 user=$2 host=$3 schema=$4 rights=$5
    (
        umask 077
        cat >"$folder/account.sql" <<SQL
CREATE OR REPLACE USER $user@'$host' IDENTIFIED BY '$(</data/password)';
GRANT $rights ON $schema.* TO $user@'$host';
SQL
    )
    chown mysql: "$folder/account.sql"
    exec mariadbd --no-defaults "${options[@]}" --init-file="$folder/account.sql"
}

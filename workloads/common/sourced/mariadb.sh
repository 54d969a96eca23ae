# shellcheck shell=bash
# Sourced by workloads with databases in MariaDB: a server's options, its account for the load, and
# how the data of an image are made and packed.  A database has a folder, with `data`, `tmp` and
# `socket` in it.  The distribution's configuration does not count (--no-defaults).

# The options of a server, to which a workload adds its own.
# Usage: database_options FOLDER BUFFER_BYTES LOG_BYTES; sets the array `options`
database_options() {
    # shellcheck disable=SC2034  # the scripts that source this use it, too
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
        # The buffer pool is filled by the warm-up alone, not by a thread in the background as well.
        --innodb-buffer-pool-dump-at-shutdown=OFF
        --innodb-buffer-pool-load-at-startup=OFF
        # Containers forbid the kernel's asynchronous I/O (io_uring), and the server would silently
        # fall back to threads: it uses them everywhere.
        --innodb-use-native-aio=OFF
    )
}

# Starts the server of a new database with the options.  It listens on a socket only, which lets
# root in without a password.  It will end slowly, with all purged and written, so that the copies
# of its files start alike.
# Usage: begin_database FOLDER; sets `folder`, `server` and, the words of a client, `at_socket`
begin_database() {
    folder=$1
    at_socket=(--no-defaults --socket="$folder/socket" --skip-ssl)
    mkdir -p "$folder/data" "$folder/tmp"
    # The server is not root.
    chmod a+x /data "${folder%/*}"
    chown -R mysql: "$folder"
    # --cross-bootstrap: the tables do not name the machine that they were made on.
    mariadb-install-db --no-defaults --cross-bootstrap --skip-test-db "${options[@]}"
    mariadbd --no-defaults "${options[@]}" --skip-networking --innodb-fast-shutdown=0 &
    server=$!
    trap 'kill "$server"' EXIT
    until mariadb-admin "${at_socket[@]}" ping >/dev/null 2>&1; do
        kill -0 "$server"
        sleep 0.1
    done
}

# Sends SQL to the new database, as root.  Usage: ask_new OPTION… of mariadb
ask_new() {
    mariadb "${at_socket[@]}" --batch --skip-column-names "$@"
}

# Ends the server, and packs a folder, with the database and all else that a cell starts with, into
# /data/prepared.  Usage: pack_database FOLDER
pack_database() {
    mariadb-admin "${at_socket[@]}" shutdown
    trap - EXIT
    wait "$server"
    # Fast rather than small.
    tar -C "$1" --create --sparse --numeric-owner --exclude=ibtmp1 . | gzip -1 >/data/prepared.part
    mv -- /data/prepared.part /data/prepared
    rm -rf -- "$1"
}

# Unpacks it, in place of what an earlier cell may have left.  Usage: unpack_database FOLDER
unpack_database() {
    rm -rf -- "$1"
    mkdir -p "$1"
    tar -C "$1" --extract --gzip --preserve-permissions --numeric-owner --file=/data/prepared
    # The server is not root.
    chmod a+x /data "${1%/*}" "$1"
}

# Runs the server of a database with the options, in place of the script.  First it gives the load
# an account with the cell's password, which may use one schema.
# Usage: run_database FOLDER USER FROM SCHEMA RIGHTS
run_database() {
    (
        umask 077
        cat >"$1/account.sql" <<SQL
CREATE OR REPLACE USER $2@'$3' IDENTIFIED BY '$(</data/password)';
GRANT $5 ON $4.* TO $2@'$3';
SQL
    )
    chown mysql: "$1/account.sql"
    exec mariadbd --no-defaults "${options[@]}" --init-file="$1/account.sql"
}

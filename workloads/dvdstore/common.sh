# shellcheck shell=bash
# Sourced by the other scripts: where a shop's files are, and how its servers stand.

# A shop has its own folder, by its number from 0.
# shellcheck disable=SC2034  # the scripts that source this use it
home=/data/dvdstore
database=shop

# What runs a command as the user of the database's packages: PostgreSQL refuses to be run by root.
as_postgres=(setpriv --reuid=postgres --regid=postgres --clear-groups --)

# The folder with PostgreSQL's programs: that of the newest version, and there is but one.
programs() {
    local found=(/usr/lib/postgresql/*/bin)
    echo "${found[-1]}"
}

# The options of a database server.  Durability is the server's default and is said all the same: a commit is
# on the disk, in the sense of fdatasync, before its order is confirmed.  Usage: database_options FOLDER BUFFER_BYTES
# Sets the array `options`.
database_options() {
    # shellcheck disable=SC2034
    options=(
        -D "$1/database"
        -c "unix_socket_directories=$1"
        # The pages are on the same system: nothing listens on the network.
        -c listen_addresses=
        -c fsync=on -c synchronous_commit=on -c full_page_writes=on -c wal_sync_method=fdatasync
        -c "shared_buffers=$(($2 / 1024))kB"
        # What depends on the packages that lie beside the server, or on what the machine has to spare.
        -c jit=off -c huge_pages=off
        -c max_connections=200
        -c lc_messages=C -c "log_line_prefix=%m [%p] "
    )
}

# Waits for the servers in the array `standing` until it is asked to end (SIGTERM), ends them by a signal, and ends with 0
# where all of them did so well.  Where one ends by itself, so do the others.  Usage: stand SIGNAL
stand() {
    local signal=$1 asked='' code=0 process
    trap 'asked=yes' TERM
    # shellcheck disable=SC2154  # of the caller
    wait -n "${standing[@]}" || code=$?
    trap '' TERM
    [ -n "$asked" ] || echo "a server ended by itself (exit code $code)" >&2
    kill -s "$signal" "${standing[@]}" 2>/dev/null || true
    code=0
    for process in "${standing[@]}"; do
        wait "$process" || code=$?
    done
    [ -n "$asked" ] && exit "$code"
    exit 1
}

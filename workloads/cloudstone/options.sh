# shellcheck shell=bash
# Sourced by data.sh and database.sh: the options that the database server has when the data are made and when they
# are used.  Nothing of the distribution's configuration counts (--no-defaults).
# Usage: database_options FOLDER BUFFER_BYTES LOG_BYTES; sets the array `options`.

database_options() {
    # shellcheck disable=SC2034  # the scripts that source this use it
    options=(
        --user=mysql
        --datadir="$1/data"
        --tmpdir="$1/tmp"
        --socket="$1/socket"
        --pid-file="$1/pid"
        # The application is on the same system: it needs no network.
        --skip-networking
        --innodb-buffer-pool-size="$2"
        --innodb-log-file-size="$3"
        # Every commit is on the disk before it is answered, in every environment.
        --innodb-flush-log-at-trx-commit=1
        --character-set-server=utf8mb4
        --collation-server=utf8mb4_general_ci
        --innodb-buffer-pool-dump-at-shutdown=OFF
        --innodb-buffer-pool-load-at-startup=OFF
        # Forbidden in containers and allowed elsewhere: the server would fall back silently.
        --innodb-use-native-aio=OFF
        --innodb-undo-tablespaces=0
    )
}

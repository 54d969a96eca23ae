# shellcheck shell=bash
# Sourced by the other scripts: where things are, and the options of its databases.

# shellcheck disable=SC2034  # the scripts that source this use them
home=/data/cloudstone programs=/opt/strata/workloads/cloudstone
# The application's account, which may use nothing but its one schema; its password is made for every cell.
user=events schema=events secret=/data/password

# shellcheck source=workloads/common/sourced/stand.sh
source "${BASH_SOURCE[0]%/*}/../common/sourced/stand.sh"

# Whether web servers and databases are in systems of their own.  Usage: is_apart ROLES
is_apart() {
    [[ $1 == *,* ]]
}

# The options that the database server has when the data are made and when they are used.
# Usage: cell_options FOLDER BUFFER_BYTES LOG_BYTES; sets the array `options`.
cell_options() {
    database_options "$@"
    options+=(
        # The application is on the same system: it needs no network.
        --skip-networking
        # Every commit is on the disk before it is answered, in every environment.
        --innodb-flush-log-at-trx-commit=1
        --character-set-server=utf8mb4
        --collation-server=utf8mb4_general_ci
    )
}

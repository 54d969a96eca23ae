# shellcheck shell=bash
# Sourced by data.sh and server.sh: the options that the server has when the data are made and when they are used.
# Usage: server_options BUFFER_BYTES LOG_BYTES; sets the array `options`.

# shellcheck source=workloads/mysql/common.sh
source "${BASH_SOURCE[0]%/*}/common.sh"
# shellcheck source=workloads/common/sourced/mariadb.sh
source "${BASH_SOURCE[0]%/*}/../common/sourced/mariadb.sh"

server_options() {
    database_options "$home" "$1" "$2"
    # As in the original's my.cnf.  What is gone since: several pool instances and support_xa.
    options+=(
        --innodb-flush-log-at-trx-commit=0
        --loose-innodb-flush-method=O_DIRECT
        --loose-innodb-file-per-table=ON
        # The default character set of its MySQL 5.5: sorting, which two of the queries do, costs more in others.
        --character-set-server=latin1
        --collation-server=latin1_swedish_ci
        --skip-character-set-client-handshake
        # The original did not encrypt; some versions would by default.
        --skip-ssl
    )
}

# shellcheck shell=bash
# Sourced by data.sh and server.sh: the options that the server has when the data are made and when they are used.
# Nothing of the distribution's configuration counts (--no-defaults), so all that differs from the server's own
# defaults stands here and in server.sh.  Usage: server_options BUFFER_BYTES LOG_BYTES; sets the array `options`.

# shellcheck source=workloads/mysql/common.sh
source "${BASH_SOURCE[0]%/*}/common.sh"

server_options() {
    # shellcheck disable=SC2034  # the scripts that source this use it
    options=(
        --user=mysql
        --datadir="$home/data"
        --tmpdir="$home/tmp"
        --socket="$home/socket"
        --pid-file="$home/pid"
        # As in the original's my.cnf.  What is gone since: several pool instances and support_xa.
        --innodb-buffer-pool-size="$1"
        --innodb-flush-log-at-trx-commit=0
        --loose-innodb-flush-method=O_DIRECT
        --loose-innodb-file-per-table=ON
        # The original's MySQL 5.5 kept undo logs in the system tablespace; some versions would keep 3 files.
        --innodb-undo-tablespaces=0
        --innodb-log-file-size="$2"
        # Its default character set too: sorting, which two of the queries do, costs more in others.
        --character-set-server=latin1
        --collation-server=latin1_swedish_ci
        --skip-character-set-client-handshake
        # The original did not encrypt; some versions would by default.
        --skip-ssl
        # The buffer pool is filled by the warm-up alone, not by a thread in the background as well.
        --innodb-buffer-pool-dump-at-shutdown=OFF
        --innodb-buffer-pool-load-at-startup=OFF
        # The kernel's asynchronous I/O (io_uring) is forbidden in containers and allowed elsewhere; the server
        # would fall back silently, so it uses threads of its own everywhere.
        --innodb-use-native-aio=OFF
    )
}

#!/bin/bash
# The database, its server in the foreground, and sysbench's load.
# Usage: database.sh data ROWS BUFFER_BYTES LOG_BYTES     makes the database that every cell starts with
#        database.sh prepare                 unpacks it, in place of what an earlier cell may have left
#        database.sh serve ADDRESS PORT BUFFER_BYTES LOG_BYTES
#        database.sh ready ADDRESS PORT      ends with 0 once the load's account can log in
#        database.sh fill ADDRESS PORT       reads the table and its index once, and says what the server is
#        database.sh warmup|measure ADDRESS PORT TEST THREADS ROWS SECONDS SEED LAP
#        database.sh account ADDRESS PORT TEST THREADS
#        database.sh finish ADDRESS PORT     says whether the table still has its rows
# A point of the sweep is a TEST, read-only or read-write, with a number of threads, each with a connection.  Its warm-up
# runs without a report, and tells what the server has counted so far; so does `account`, after it was measured: what
# lies between is the server's own account of the point.
set -euo pipefail

# shellcheck source=workloads/common/sourced/mariadb.sh
source "${0%/*}/../common/sourced/mariadb.sh"

home=/data/mysql
# The account of the load, which may use nothing but its one schema; its password is made for every cell.
user=sbtest schema=sbtest secret=/data/password

# The options that the server has when the data are made and when they are used.
# Usage: server_options BUFFER_BYTES LOG_BYTES; sets the array `options`.
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

# Asks the server over TCP.  Usage: ask ADDRESS PORT SQL
# Without encryption, which the server refuses: the client of some distributions would insist on it.
ask() {
    MYSQL_PWD=$(<"$secret") mariadb --no-defaults --protocol=tcp --skip-ssl --connect-timeout=5 --host="$1" --port="$2" \
        --user="$user" --batch --raw --skip-column-names "$schema" --execute="$3"
}

data() {
    local found
    server_options "$2" "$3"
    rm -rf -- "$home" /data/prepared
    begin_database "$home"
    ask_new --execute="CREATE DATABASE $schema"
    # One seed for all: the same rows in every image.
    sysbench oltp_read_write --db-driver=mysql --mysql-socket="$home/socket" --mysql-user=root \
        --mysql-db="$schema" --tables=1 --table-size="$1" \
        --rand-type=special --rand-seed=1 prepare
    ask_new --execute="ANALYZE TABLE $schema.sbtest1"
    found=$(ask_new --execute="SELECT COUNT(*) FROM $schema.sbtest1")
    if [ "$found" != "$1" ]; then
        echo "the table has $found rows, not $1" >&2
        exit 1
    fi
    pack_database "$home"
}

prepare() {
    unpack_database "$home"
    # So that nothing of it is still to be written while something is measured.
    sync -f "$home"
}

serve() {
    server_options "$3" "$4"
    options+=(
        --port="$2"
        --bind-address="$1"
        # As in the original's my.cnf.
        --query-cache-type=0
        --query-cache-size=0
        --thread-cache-size=256
        # The original allowed 20,020 connections.  Where fewer files may be open than that takes, the server quietly
        # lowers this and the tables that it holds open; these it keeps even where 1024 files may be open.
        --max-connections=1024
        --table-open-cache=1024
        # Names of clients are not looked up: what a resolver answers, and when, differs from system to system.
        --skip-name-resolve
        # As MySQL does: an update of a row that changed since the transaction's first read is no error.
        # Versions that do not know this behave so anyway.
        --loose-innodb-snapshot-isolation=OFF
    )
    run_database "$home" "$user" % "$schema" ALL
}

ready() {
    ask "$1" "$2" 'SELECT 1' >/dev/null
}

# What is read is in the buffer pool from then on.
fill() {
    ask "$1" "$2" "
        SELECT SUM(CRC32(CONCAT(c, pad))) FROM sbtest1 FORCE INDEX (PRIMARY) INTO @content;
        SELECT SUM(k) FROM sbtest1 FORCE INDEX (k_1) INTO @index;
        SELECT JSON_OBJECT('server', VERSION(), 'rows', (SELECT COUNT(*) FROM sbtest1 FORCE INDEX (PRIMARY)),
            'rows_of_index', (SELECT COUNT(*) FROM sbtest1 FORCE INDEX (k_1)),
            'content', @content, 'sum_of_index', @index,
            'table_bytes', (SELECT data_length + index_length FROM information_schema.tables
                            WHERE table_schema = DATABASE() AND table_name = 'sbtest1'),
            'buffer_bytes', @@innodb_buffer_pool_size, 'log_bytes', @@innodb_log_file_size,
            'flush_method', @@innodb_flush_method, 'flush_log', @@innodb_flush_log_at_trx_commit,
            'encryption', @@have_ssl, 'max_connections', @@max_connections, 'table_open_cache', @@table_open_cache)"
}

# A transaction that deletes a row puts it back.
finish() {
    ask "$1" "$2" "SELECT JSON_OBJECT('rows_left', (SELECT COUNT(*) FROM sbtest1 FORCE INDEX (PRIMARY)),
        'rows_left_of_index', (SELECT COUNT(*) FROM sbtest1 FORCE INDEX (k_1)))"
    echo '{"done": true}'
}

# Usage: load ADDRESS PORT TEST THREADS ROWS SECONDS SEED
load() {
    TRANSACTIONS=${3/-/_} sysbench --config-file=<(printf 'mysql-password=%s\n' "$(<"$secret")") \
        "${0%/*}/report.lua" --db-driver=mysql --mysql-host="$1" --mysql-port="$2" --mysql-user="$user" \
        --mysql-db="$schema" --mysql-ssl=off --tables=1 --table-size="$5" --threads="$4" \
        --time="$6" --events=0 --report-interval=0 --percentile=95 \
        --rand-type=special --rand-spec-iter=12 --rand-spec-pct=1 --rand-spec-res=75 --rand-seed="$7" run
}

# A seed for each run of a cell and lap, from 1: with 0 sysbench would take the time, and a lap that repeats another's
# updates would change nothing.  Usage: seed_for SEED LAP NUMBER
seed_for() {
    echo $((($1 + 4096 * $2 + $3) % 2147483646 + 1))
}

warmup() {
    load "${@:1:6}" "$(seed_for "$7" "$8" $((2 * $4)))" >/dev/null
    account "$1" "$2" "$3" "$4" warmed
}

measure() {
    local seed name=$3-$4
    seed=$(seed_for "$7" "$8" $((2 * $4 + 1)))
    printf '{"point": "%s", "test": "%s", "threads": %d, "rows": %d, "seconds": %d, "seed": %d}\n' \
        "$name" "$3" "$4" "$5" "$6" "$seed"
    load "${@:1:6}" "$seed"
    printf '{"end": "%s"}\n' "$name"
}

account() {
    ask "$1" "$2" "
        SELECT JSON_OBJECT('${5:-accounted}', '$3-$4',
            'commits', CAST(SUM(IF(variable_name = 'COM_COMMIT', variable_value, 0)) AS INTEGER),
            'pages_from_disk', CAST(SUM(IF(variable_name = 'INNODB_BUFFER_POOL_READS', variable_value, 0)) AS INTEGER))
        FROM information_schema.global_status"
}

"$@"

#!/bin/bash
# Makes the database, runs its server in the foreground, and loads it by sysbench.
# Usage: database.sh make_data ROWS BUFFER_BYTES LOG_BYTES   makes the database of all cells
#        database.sh prepare                 unpacks it
#        database.sh serve ADDRESS PORT BUFFER_BYTES LOG_BYTES
#        database.sh ready ADDRESS PORT      succeeds once the load's account can log in
#        database.sh fill ADDRESS PORT       reads table and index once; prints facts of the server
#        database.sh warmup|measure ADDRESS PORT TEST THREADS ROWS SECONDS SEED LAP
#        database.sh account ADDRESS PORT TEST THREADS
#        database.sh finish ADDRESS PORT     prints the number of the table's rows
# A point of the sweep is a TEST, read-only or read-write, with a number of THREADS, each with a
# connection.  `warmup`, which prints no report, and `account`, after the measurement, print the
# server's counters: their difference is the server's own account of the point.
set -euo pipefail

# shellcheck source=workloads/common/sourced/mariadb.sh
source "${0%/*}/../common/sourced/mariadb.sh"

home=/data/mysql
# The account of the load, which may use only its schema, and the file with the cell's password.
user=sbtest schema=sbtest secret=/data/password

# Sets the array `options` to those with which the data are made and used.  parse.py requires some
# of them (SETTINGS there).
# Usage: set_server_options BUFFER_BYTES LOG_BYTES
set_server_options() {
    set_database_options "$home" "$1" "$2"
    # As in the original's my.cnf, without options that MariaDB has dropped: several instances of
    # the buffer pool, and support_xa.
    options+=(
        --innodb-flush-log-at-trx-commit=0
        --loose-innodb-flush-method=O_DIRECT
        --loose-innodb-file-per-table=ON
        # The default character set of the original's MySQL 5.5.  Two of the queries sort, which
        # costs more in other character sets.
        --character-set-server=latin1
        --collation-server=latin1_swedish_ci
        --skip-character-set-client-handshake
        # The original did not encrypt, which is the default of some versions.
        --skip-ssl
    )
}

# Sends SQL to the server over TCP, and prints the rows.  Usage: query ADDRESS PORT SQL
# --skip-ssl: the client of some distributions insists on encryption, which the server refuses.
query() {
    MYSQL_PWD=$(<"$secret") mariadb --no-defaults --protocol=tcp --skip-ssl --connect-timeout=5 \
        --host="$1" --port="$2" --user="$user" \
        --batch --raw --skip-column-names "$schema" --execute="$3"
}

# Makes the database that every cell starts with, and packs it into /data/prepared.  Ends the script
# if the table lacks rows.
# Usage: make_data ROWS BUFFER_BYTES LOG_BYTES
make_data() {
    local rows=$1 buffer_bytes=$2 log_bytes=$3 loaded
    set_server_options "$buffer_bytes" "$log_bytes"
    rm -rf -- "$home" /data/prepared
    start_new_database "$home"
    query_new --execute="CREATE DATABASE $schema"
    # The same seed, and so the same rows, in every image.
    sysbench oltp_read_write --db-driver=mysql --mysql-socket="$home/socket" --mysql-user=root \
        --mysql-db="$schema" --tables=1 --table-size="$rows" \
        --rand-type=special --rand-seed=1 prepare
    query_new --execute="ANALYZE TABLE $schema.sbtest1"
    loaded=$(query_new --execute="SELECT COUNT(*) FROM $schema.sbtest1")
    if [ "$loaded" != "$rows" ]; then
        echo "the table has $loaded rows, not $rows" >&2
        exit 1
    fi
    stop_new_database
    pack_data "$home"
}

# Unpacks the database, in place of an earlier cell's.  Usage: prepare
prepare() {
    unpack_database "$home"
    # Nothing is left to be written while a cell measures.
    sync -f "$home"
}

# Runs the server, in place of the script.  Usage: serve ADDRESS PORT BUFFER_BYTES LOG_BYTES
serve() {
    local address=$1 port=$2 buffer_bytes=$3 log_bytes=$4
    set_server_options "$buffer_bytes" "$log_bytes"
    options+=(
        --port="$port"
        --bind-address="$address"
        # As in the original's my.cnf.
        --query-cache-type=0
        --query-cache-size=0
        --thread-cache-size=256
        # The original allowed 20,020 connections.  If the limit of open files is too low for that,
        # the server lowers both numbers without a word; these hold even with 1024 open files.
        --max-connections=1024
        --table-open-cache=1024
        # The server does not ask a resolver for clients' names: resolvers differ between systems.
        --skip-name-resolve
        # As in MySQL, the update of a row that changed since the transaction's first read is no
        # error.  Versions without this option behave so, too.
        --loose-innodb-snapshot-isolation=OFF
    )
    run_database "$home" "$user" % "$schema" ALL
}

# Succeeds if the load's account can log in; Strata repeats the check until it does.
# Usage: ready ADDRESS PORT
ready() {
    query "$1" "$2" 'SELECT 1' >/dev/null
}

# Reads the table and its index once, which fills the buffer pool, and prints facts of the server,
# whose keys parse.py reads.
# Usage: fill ADDRESS PORT
fill() {
    query "$1" "$2" "
        SELECT SUM(CRC32(CONCAT(c, pad))) FROM sbtest1 FORCE INDEX (PRIMARY) INTO @content;
        SELECT SUM(k) FROM sbtest1 FORCE INDEX (k_1) INTO @index;
        SELECT JSON_OBJECT('server', VERSION(),
            'rows', (SELECT COUNT(*) FROM sbtest1 FORCE INDEX (PRIMARY)),
            'rows_of_index', (SELECT COUNT(*) FROM sbtest1 FORCE INDEX (k_1)),
            'content', @content, 'sum_of_index', @index,
            'table_bytes', (SELECT data_length + index_length FROM information_schema.tables
                            WHERE table_schema = DATABASE() AND table_name = 'sbtest1'),
            'buffer_bytes', @@innodb_buffer_pool_size, 'log_bytes', @@innodb_log_file_size,
            'flush_method', @@innodb_flush_method,
            'flush_log', @@innodb_flush_log_at_trx_commit, 'encryption', @@have_ssl,
            'max_connections', @@max_connections, 'table_open_cache', @@table_open_cache)"
}

# Prints the numbers of rows in table and index: every transaction that deletes a row puts it back,
# so that parse.py expects all rows.  Prints the log's last line.
# Usage: finish ADDRESS PORT
finish() {
    query "$1" "$2" "SELECT JSON_OBJECT(
        'rows_left', (SELECT COUNT(*) FROM sbtest1 FORCE INDEX (PRIMARY)),
        'rows_left_of_index', (SELECT COUNT(*) FROM sbtest1 FORCE INDEX (k_1)))"
    echo '{"done": true}'
}

# Loads the server by sysbench, which prints its report as report.lua writes it; that file reads the
# variable TRANSACTIONS.
# Usage: run_sysbench ADDRESS PORT TEST THREADS ROWS SECONDS SEED
run_sysbench() {
    local address=$1 port=$2 test=$3 threads=$4 rows=$5 seconds=$6 seed=$7
    TRANSACTIONS=${test/-/_} sysbench \
        --config-file=<(printf 'mysql-password=%s\n' "$(<"$secret")") "${0%/*}/report.lua" \
        --db-driver=mysql --mysql-host="$address" --mysql-port="$port" --mysql-user="$user" \
        --mysql-db="$schema" --mysql-ssl=off --tables=1 --table-size="$rows" \
        --threads="$threads" --time="$seconds" --events=0 --report-interval=0 --percentile=95 \
        --rand-type=special --rand-spec-iter=12 --rand-spec-pct=1 --rand-spec-res=75 \
        --rand-seed="$seed" run
}

# Prints another seed for each run in a cell: a lap that repeated another's updates would change
# nothing.  Seeds begin at 1: sysbench replaces 0 by the time.  RUN is below 4096, so that no two
# laps share a seed.
# Usage: make_seed SEED LAP RUN      (RUN: number of the run in the lap)
make_seed() {
    echo $((($1 + 4096 * $2 + $3) % 2147483646 + 1))
}

# Loads the server for some time that does not count, and prints its counters as the object
# "warmed", from which the measurement's account begins.
# Usage: warmup ADDRESS PORT TEST THREADS ROWS SECONDS SEED LAP
warmup() {
    local address=$1 port=$2 test=$3 threads=$4 rows=$5 seconds=$6 seed
    seed=$(make_seed "$7" "$8" $((2 * threads)))
    run_sysbench "$address" "$port" "$test" "$threads" "$rows" "$seconds" "$seed" >/dev/null
    account "$address" "$port" "$test" "$threads" warmed
}

# Loads the server and prints sysbench's report, as a point of the log, whose keys parse.py reads.
# Usage: measure ADDRESS PORT TEST THREADS ROWS SECONDS SEED LAP
measure() {
    local address=$1 port=$2 test=$3 threads=$4 rows=$5 seconds=$6 seed
    seed=$(make_seed "$7" "$8" $((2 * threads + 1)))
    printf '{"point": "%s", "test": "%s", "threads": %d, ' "$test-$threads" "$test" "$threads"
    printf '"rows": %d, "seconds": %d, "seed": %d}\n' "$rows" "$seconds" "$seed"
    run_sysbench "$address" "$port" "$test" "$threads" "$rows" "$seconds" "$seed"
    printf '{"end": "%s"}\n' "$test-$threads"
}

# Prints the server's counters since its start, under KEY (`accounted` unless given) with the name
# of the point.  parse.py subtracts those of the warm-up.
# Usage: account ADDRESS PORT TEST THREADS [KEY]
account() {
    local address=$1 port=$2 test=$3 threads=$4 key=${5:-accounted}
    query "$address" "$port" "
        SELECT JSON_OBJECT('$key', '$test-$threads',
            'commits', CAST(SUM(IF(variable_name = 'COM_COMMIT', variable_value, 0)) AS INTEGER),
            'pages_from_disk', CAST(SUM(
                IF(variable_name = 'INNODB_BUFFER_POOL_READS', variable_value, 0)) AS INTEGER))
        FROM information_schema.global_status"
}

"$@"

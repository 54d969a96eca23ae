#!/bin/bash
# One point of the sweep: sysbench's OLTP transactions with a number of threads, each with a connection.
# Usage: point.sh warmup|measure ADDRESS PORT TEST THREADS ROWS SECONDS SEED LAP
#        point.sh account ADDRESS PORT TEST THREADS
# TEST is read-only or read-write.  A warm-up runs without a report, and tells what the server has counted so far;
# so does `account`, after the point was measured: what lies between is the server's own account of the point.
set -euo pipefail

# shellcheck source=workloads/mysql/common.sh
source "${0%/*}/common.sh"

mode=$1 address=$2 port=$3 test=$4 threads=$5
name=$test-$threads

# Usage: load ROWS SECONDS SEED
load() {
    TRANSACTIONS=${test/-/_} sysbench --config-file=<(printf 'mysql-password=%s\n' "$(<"$secret")") \
        "${0%/*}/report.lua" --db-driver=mysql --mysql-host="$address" --mysql-port="$port" --mysql-user="$user" \
        --mysql-db="$schema" --mysql-ssl=off --tables=1 --table-size="$1" --threads="$threads" \
        --time="$2" --events=0 --report-interval=0 --percentile=95 \
        --rand-type=special --rand-spec-iter=12 --rand-spec-pct=1 --rand-spec-res=75 --rand-seed="$3" run
}

# A seed for each run of a cell and lap, from 1: with 0 sysbench would take the time, and a lap that repeats another's
# updates would change nothing.  Usage: seed_for SEED LAP NUMBER
seed_for() {
    echo $((($1 + 4096 * $2 + $3) % 2147483646 + 1))
}

# Usage: account KIND
account() {
    ask "$address" "$port" "
        SELECT JSON_OBJECT('$1', '$name',
            'commits', CAST(SUM(IF(variable_name = 'COM_COMMIT', variable_value, 0)) AS INTEGER),
            'pages_from_disk', CAST(SUM(IF(variable_name = 'INNODB_BUFFER_POOL_READS', variable_value, 0)) AS INTEGER))
        FROM information_schema.global_status"
}

case $mode in
warmup)
    load "$6" "$7" "$(seed_for "$8" "$9" $((2 * threads)))" >/dev/null
    account warmed
    ;;
measure)
    seed=$(seed_for "$8" "$9" $((2 * threads + 1)))
    printf '{"point": "%s", "test": "%s", "threads": %d, "rows": %d, "seconds": %d, "seed": %d}\n' \
        "$name" "$test" "$threads" "$6" "$7" "$seed"
    load "$6" "$7" "$seed"
    printf '{"end": "%s"}\n' "$name"
    ;;
account)
    account accounted
    ;;
*)
    echo "point.sh: what is $mode?" >&2
    exit 2
    ;;
esac

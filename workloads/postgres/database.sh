#!/bin/bash
# Makes the database of pgbench, runs its server in the foreground, and loads it.
# Usage: database.sh make_data BRANCHES BUFFER_BYTES   makes the database of all cells
#        database.sh prepare                      unpacks it
#        database.sh serve ADDRESS PORT BUFFER_BYTES
#        database.sh ready ADDRESS PORT           succeeds once the load's account can log in
#        database.sh fill ADDRESS PORT            reads all into the buffers; prints facts
#        database.sh measure ADDRESS PORT TEST CLIENTS WARMUP_SECONDS SECONDS SEED LAP
#        database.sh finish ADDRESS PORT          prints the sums of all balances
set -euo pipefail

# shellcheck source=workloads/common/sourced/postgresql.sh
source "${0%/*}/../common/sourced/postgresql.sh"

home=/data/postgres
# The load's account, and its database.
user=pgbench

# Sends SQL to the server over TCP, and prints the rows.  Usage: query ADDRESS PORT SQL
query() {
    PGPASSWORD=$(</data/password) PGCONNECT_TIMEOUT=5 psql --no-psqlrc --quiet --no-align \
        --tuples-only --set=ON_ERROR_STOP=1 --host="$1" --port="$2" --username="$user" \
        --dbname="$user" --command="$3"
}

# Makes the database that every cell starts with, and packs it into /data/prepared.
# Usage: make_data BRANCHES BUFFER_BYTES
make_data() {
    local branches=$1 buffer_bytes=$2
    start_new_database "$home" "$user" "$buffer_bytes"
    query_new --command="CREATE ROLE $user LOGIN" --command="CREATE EXTENSION pg_prewarm" \
        --command="ALTER DATABASE $user OWNER TO $user"
    "$(find_program_folder)/pgbench" --host="$home" --username="$user" --initialize \
        --scale="$branches" --quiet "$user"
    stop_new_database
    echo "host $user $user all md5" >>"$home/database/pg_hba.conf"
    pack_data "$home"
}

# Unpacks the database, in place of an earlier cell's.  Usage: prepare
prepare() {
    unpack_data "$home"
    chmod 700 "$home"
    # Nothing is left to be written while a cell measures.
    sync -f "$home"
}

# Runs the server, in place of the script, once the load's account has the cell's password.
# Usage: serve ADDRESS PORT BUFFER_BYTES
serve() {
    local address=$1 port=$2 buffer_bytes=$3
    set_database_options "$home" "$buffer_bytes" 1024
    # Neither vacuums nor checkpoints, which come at a time of their own, are in some points only.
    options+=(-c autovacuum=off -c checkpoint_timeout=1d -c max_wal_size=4GB)
    # md5: with a costlier digest the connections of many clients take a part of a short point.
    echo "ALTER ROLE $user PASSWORD '$(</data/password)'" |
        "${as_postgres[@]}" "$(find_program_folder)/postgres" --single "${options[@]}" \
            -c password_encryption=md5 postgres >/dev/null
    exec "${as_postgres[@]}" "$(find_program_folder)/postgres" "${options[@]}" \
        -c "listen_addresses=$address" -c "port=$port"
}

# Succeeds if the load's account can log in; Strata repeats the check until it does.
# Usage: ready ADDRESS PORT
ready() {
    query "$1" "$2" 'SELECT 1' >/dev/null
}

# Reads tables and indexes once into the server's buffers, and prints facts of the server, whose
# keys parse.py reads.
# Usage: fill ADDRESS PORT
fill() {
    query "$1" "$2" "SELECT json_build_object('server', version(),
        'blocks', (SELECT sum(pg_prewarm(oid)) FROM pg_class WHERE relname LIKE 'pgbench%'
                   AND relkind IN ('r', 'i')),
        'branches', (SELECT count(*) FROM pgbench_branches),
        'accounts', (SELECT count(*) FROM pgbench_accounts),
        'database_bytes', pg_database_size(current_database()),
        'buffer_bytes', pg_size_bytes(current_setting('shared_buffers')),
        'fsync', current_setting('fsync'), 'commit', current_setting('synchronous_commit'))"
}

# Loads the server for some time that does not count, and again; prints pgbench's report of the
# latter, and the transactions in the server's history, which pgbench empties at each start.
# parse.py reads pgbench's lines and the keys.
# Usage: measure ADDRESS PORT TEST CLIENTS WARMUP_SECONDS SECONDS SEED LAP
measure() {
    local address=$1 port=$2 test=$3 clients=$4 warmup_seconds=$5 seconds=$6 load
    # Each lap and number of clients has another seed, and each warm-up another one than its point.
    local seed=$(($7 + 4096 * $8 + clients))
    PGPASSWORD=$(</data/password)
    export PGPASSWORD
    load=("$(find_program_folder)/pgbench" --host="$address" --port="$port" --username="$user"
    --builtin="$test" --protocol=prepared --client="$clients" --jobs="$(nproc)")
    "${load[@]}" --time="$warmup_seconds" --random-seed="$((seed + 2048))" "$user" >/dev/null
    printf '{"point": "%s", "clients": %d, "seconds": %d, "seed": %d}\n' \
        "$test-$clients" "$clients" "$seconds" "$seed"
    "${load[@]}" --time="$seconds" --random-seed="$seed" "$user"
    query "$address" "$port" \
        "SELECT json_build_object('history', count(*)) FROM pgbench_history"
    printf '{"end": "%s"}\n' "$test-$clients"
}

# Prints the number of accounts, and the sums of the balances of accounts, branches and tellers,
# which parse.py expects to be equal.  Prints the log's last line.
# Usage: finish ADDRESS PORT
finish() {
    query "$1" "$2" "SELECT json_build_object(
        'accounts_left', (SELECT count(*) FROM pgbench_accounts),
        'balances', json_build_array((SELECT sum(abalance) FROM pgbench_accounts),
            (SELECT sum(bbalance) FROM pgbench_branches),
            (SELECT sum(tbalance) FROM pgbench_tellers)))"
    echo '{"done": true}'
}

"$@"

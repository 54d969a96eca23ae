#!/bin/bash
# Makes the database of pgbench, runs its server in the foreground, and loads it.
# Usage: database.sh data BRANCHES BUFFER_BYTES   makes the database that every cell starts with
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

data() {
    start_new_database "$home" "$user" "$2"
    query_new --command="CREATE ROLE $user LOGIN" --command="CREATE EXTENSION pg_prewarm" \
        --command="ALTER DATABASE $user OWNER TO $user"
    "$(find_programs)/pgbench" --host="$home" --username="$user" --initialize --scale="$1" \
        --quiet "$user"
    stop_new_database
    echo "host $user $user all md5" >>"$home/database/pg_hba.conf"
    pack_data "$home"
}

prepare() {
    unpack_data "$home"
    chmod 700 "$home"
    # Nothing is left to be written while a cell measures.
    sync -f "$home"
}

serve() {
    set_database_options "$home" "$3" 1024
    # Neither vacuums nor checkpoints, which come at a time of their own, are in some points only.
    options+=(-c autovacuum=off -c checkpoint_timeout=1d -c max_wal_size=4GB)
    # md5: with a costlier digest the connections of many clients take a part of a short point.
    echo "ALTER ROLE $user PASSWORD '$(</data/password)'" |
        "${as_postgres[@]}" "$(find_programs)/postgres" --single "${options[@]}" \
            -c password_encryption=md5 postgres >/dev/null
    exec "${as_postgres[@]}" "$(find_programs)/postgres" "${options[@]}" \
        -c "listen_addresses=$1" -c "port=$2"
}

ready() {
    query "$1" "$2" 'SELECT 1' >/dev/null
}

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

# Prints pgbench's report of a load, which runs before for some time that does not count, and the
# transactions in the server's history, which pgbench empties at each start.
measure() {
    local name=$3-$4 run seed=$(($7 + 4096 * $8 + $4))
    PGPASSWORD=$(</data/password)
    export PGPASSWORD
    run=("$(find_programs)/pgbench" --host="$1" --port="$2" --username="$user" --builtin="$3"
    --protocol=prepared --client="$4" --jobs="$(nproc)")
    "${run[@]}" --time="$5" --random-seed="$((seed + 2048))" "$user" >/dev/null
    printf '{"point": "%s", "clients": %d, "seconds": %d, "seed": %d}\n' "$name" "$4" "$6" "$seed"
    "${run[@]}" --time="$6" --random-seed="$seed" "$user"
    query "$1" "$2" "SELECT json_build_object('history', count(*)) FROM pgbench_history"
    printf '{"end": "%s"}\n' "$name"
}

finish() {
    query "$1" "$2" "SELECT json_build_object(
        'accounts_left', (SELECT count(*) FROM pgbench_accounts),
        'balances', json_build_array((SELECT sum(abalance) FROM pgbench_accounts),
            (SELECT sum(bbalance) FROM pgbench_branches),
            (SELECT sum(tbalance) FROM pgbench_tellers)))"
    echo '{"done": true}'
}

"$@"

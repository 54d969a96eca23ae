#!/bin/bash
# One point of the sweep: empties the database, loads it with redis-benchmark, and asks the server what it did.
# Usage: point.sh warmup|point ADDRESS PORT CONNECTIONS PIPELINE TESTS BYTES KEYSPACE REQUESTS SEED CPU
# TESTS are separated by commas; an empty CPU: not pinned.
set -euo pipefail

mode=$1 address=$2 port=$3 connections=$4 pipeline=$5 tests=$6 bytes=$7 keyspace=$8 requests=$9
seed=${10} cpu=${11}
password=$(</data/password)
export REDISCLI_AUTH=$password
cli=(redis-cli -h "$address" -p "$port")
pin=()
[ -z "$cpu" ] || pin=(taskset -c "$cpu")
close=end
[ "$mode" = point ] || close=warmed

# Versions before 7.2 take no seed, and their keys differ from run to run.
help=$(redis-benchmark --help || true)
seeded=()
if [[ $help == *--seed* ]]; then
    seeded=(--seed "$seed")
else
    seed=null
fi

# Sends a command to the server, which must say OK.
order() {
    local reply
    reply=$("${cli[@]}" "$@")
    if [ "$reply" != OK ]; then
        echo "the server answers to $*: $reply" >&2
        exit 1
    fi
}

# Sends a command to the server and passes its answer on as lines of text.
ask() {
    "${cli[@]}" "$@" | tr -d '\r'
}

order flushall sync
order config resetstat
server=$(ask info server | sed -n 's/^redis_version://p')
printf '{"%s": "sweep", "connections": %d, "pipeline": %d, "tests": "%s", "data_bytes": %d, "keyspace": %d, ' \
    "$mode" "$connections" "$pipeline" "$tests" "$bytes" "$keyspace"
printf '"requests": %d, "seed": %s, "cpu": %s, "client": "%s", "server": "%s"}\n' \
    "$requests" "$seed" "${cpu:-null}" "$(redis-benchmark --version)" "$server"
"${pin[@]}" redis-benchmark -h "$address" -p "$port" -a "$password" -c "$connections" -P "$pipeline" -t "$tests" \
    -d "$bytes" -r "$keyspace" -n "$requests" "${seeded[@]}" --csv
ask info commandstats | sed -n "/^cmdstat_\(${tests//,/\\|}\):/p"
ask info stats | sed -n '/^keyspace_\(hits\|misses\):/p'
printf '{"%s": "sweep"}\n' "$close"

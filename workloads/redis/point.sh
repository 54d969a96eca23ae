#!/bin/bash
# Measures one point of the sweep: empties the database, loads it by redis-benchmark, and prints the
# server's counters.
# Usage: point.sh warmup|point ADDRESS PORT CONNECTIONS PIPELINE TESTS BYTES KEYSPACE REQUESTS \
#                 SEED CPU
# TESTS: a list with commas; an empty CPU: not pinned.
# Prints a line of JSON, the table of redis-benchmark, the counters, and another line, as parse.py
# expects them.
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

# Versions before 7.2 take no seed: their keys differ from run to run.
help=$(redis-benchmark --help || true)
seeded=()
if [[ $help == *--seed* ]]; then
    seeded=(--seed "$seed")
else
    seed=null
fi

# Sends a command to the server; ends the script with a message unless it answers OK.
# Usage: command_server WORD…
command_server() {
    local reply
    reply=$("${cli[@]}" "$@")
    if [ "$reply" != OK ]; then
        echo "the server answers to '$*': $reply" >&2
        exit 1
    fi
}

# Sends a query to the server, and prints its answer as lines of text, whose ends Redis writes as
# carriage return and line feed.  Usage: query_server WORD…
query_server() {
    "${cli[@]}" "$@" | tr -d '\r'
}

command_server flushall sync
command_server config resetstat
server=$(query_server info server | sed -n 's/^redis_version://p')
printf '{"%s": "sweep", "connections": %d, "pipeline": %d, "tests": "%s", ' \
    "$mode" "$connections" "$pipeline" "$tests"
printf '"data_bytes": %d, "keyspace": %d, "requests": %d, "seed": %s, ' \
    "$bytes" "$keyspace" "$requests" "$seed"
printf '"cpu": %s, "client": "%s", "server": "%s"}\n' \
    "${cpu:-null}" "$(redis-benchmark --version)" "$server"
"${pin[@]}" redis-benchmark -h "$address" -p "$port" -a "$password" -c "$connections" \
    -P "$pipeline" -t "$tests" -d "$bytes" -r "$keyspace" -n "$requests" "${seeded[@]}" --csv
query_server info commandstats | sed -n "/^cmdstat_\(${tests//,/\\|}\):/p"
query_server info stats | sed -n '/^keyspace_\(hits\|misses\):/p'
printf '{"%s": "sweep"}\n' "$close"

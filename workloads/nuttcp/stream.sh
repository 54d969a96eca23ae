#!/bin/bash
# Transfers bulk data by netperf, to the system under test (receive: TCP_STREAM) or from it
# (transmit: TCP_MAERTS).
# Usage: stream.sh ADDRESS PORT DATA_PORT DIRECTION SECONDS CPU     (an empty CPU: not pinned)
# Prints a line of JSON, netperf's values as KEY=value, and another line; parse.py reads the keys.
set -euo pipefail

address=$1 port=$2 data_port=$3 direction=$4 seconds=$5 cpu=$6
pin=()
[ -z "$cpu" ] || pin=(taskset -c "$cpu")
case $direction in
    transmit) test=TCP_MAERTS ;;
    receive) test=TCP_STREAM ;;
    *) exit 2 ;;
esac
keys=PROTOCOL,DIRECTION,DEST_PORT,ELAPSED_TIME,LOCAL_BYTES_XFERD,REMOTE_BYTES_XFERD
keys+=,THROUGHPUT,THROUGHPUT_UNITS
keys+=,LOCAL_TRANSPORT_RETRANS,REMOTE_TRANSPORT_RETRANS,LOCAL_CONG_CONTROL,REMOTE_CONG_CONTROL

printf '{"point": "stream", "direction": "%s", "test": "%s", ' "$direction" "$test"
printf '"seconds": %d, "cpu": %s, "tool": "%s"}\n' "$seconds" "${cpu:-null}" "$(netperf -V)"
"${pin[@]}" netperf -4 -P 0 -f m -Z "$(</data/password)" -H "$address" -p "$port" \
    -t "$test" -l "$seconds" -- -P ",$data_port" -k "$keys"
printf '{"end": "stream"}\n'

#!/bin/bash
# The same transfer by netperf: TCP_STREAM to the system under test (receive), TCP_MAERTS from it (transmit).
# Usage: stream.sh ADDRESS PORT DATA_PORT DIRECTION SECONDS CPU     (an empty CPU: not pinned)
set -euo pipefail

address=$1 port=$2 data_port=$3 direction=$4 seconds=$5 cpu=$6
pin=()
[ -z "$cpu" ] || pin=(taskset -c "$cpu")
case $direction in
    transmit) test=TCP_MAERTS ;;
    receive) test=TCP_STREAM ;;
    *) exit 2 ;;
esac
keys=PROTOCOL,DIRECTION,DEST_PORT,ELAPSED_TIME,LOCAL_BYTES_XFERD,REMOTE_BYTES_XFERD,THROUGHPUT,THROUGHPUT_UNITS
keys+=,LOCAL_TRANSPORT_RETRANS,REMOTE_TRANSPORT_RETRANS,LOCAL_CONG_CONTROL,REMOTE_CONG_CONTROL

printf '{"point": "stream", "direction": "%s", "test": "%s", "seconds": %d, "cpu": %s, "tool": "%s"}\n' \
    "$direction" "$test" "$seconds" "${cpu:-null}" "$(netperf -V)"
"${pin[@]}" netperf -4 -P 0 -f m -Z "$(</data/password)" -H "$address" -p "$port" -t "$test" -l "$seconds" -- \
    -P ",$data_port" -k "$keys"
printf '{"end": "stream"}\n'

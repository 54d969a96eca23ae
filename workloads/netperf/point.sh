#!/bin/bash
# Exchanges requests and responses over one connection, one at a time.  The client opens the data
# connection, to a port that is known before, so that it can be published.
# Usage: point.sh warmup|point ADDRESS PORT DATA_PORT TEST REQUEST_BYTES RESPONSE_BYTES SECONDS \
#                 apart|together CLIENT_CPU SERVER_CPU
# The client runs on CLIENT_CPU (apart; an empty one: not pinned) or on SERVER_CPU (together).
# Prints a line of JSON, netperf's values as KEY=value, and another line; parse.py reads the keys.
set -euo pipefail

mode=$1 address=$2 port=$3 data_port=$4 test=$5 request=$6 response=$7 seconds=$8
placement=$9 client_cpu=${10} server_cpu=${11}
case $placement in
    apart) cpu=$client_cpu ;;
    together) cpu=${server_cpu:?is empty, but the placement is together} ;;
    *) exit 2 ;;
esac
pin=()
[ -z "$cpu" ] || pin=(taskset -c "$cpu")
close=end
[ "$mode" = point ] || close=warmed
keys=PROTOCOL,REQUEST_SIZE,RESPONSE_SIZE,DEST_PORT,ELAPSED_TIME,LOCAL_SEND_CALLS,LOCAL_RECV_CALLS
keys+=,THROUGHPUT,THROUGHPUT_UNITS,RT_LATENCY,MIN_LATENCY,MEAN_LATENCY,STDDEV_LATENCY
keys+=,P50_LATENCY,P90_LATENCY,P99_LATENCY,MAX_LATENCY,LOCAL_CONG_CONTROL,REMOTE_CONG_CONTROL

printf '{"%s": "%s", "request_bytes": %d, "response_bytes": %d, "seconds": %d, ' \
    "$mode" "$test" "$request" "$response" "$seconds"
printf '"placement": "%s", "cpu": %s, "tool": "%s"}\n' "$placement" "${cpu:-null}" "$(netperf -V)"
# The client's address: otherwise the socket would take datagrams at all of its addresses.
local_address=$(ip -o route get "$address" | sed -n 's/.* src \([0-9.]*\).*/\1/p')
output=$("${pin[@]}" netperf -4 -P 0 -Z "$(</data/password)" -H "$address" -p "$port" \
    -t "$test" -l "$seconds" -- \
    -L "$local_address" -P ",$data_port" -r "$request,$response" -k "$keys")
printf '%s\n' "$output"
# After a lost datagram netperf waits for the end of the test: most of the time is in no round trip.
# parse.py has the same limit.
awk -F= '
    /^RT_LATENCY=/ { all = $2 }
    /^MEAN_LATENCY=/ { timed = $2 }
    END {
        if (all > 1 + 2 * timed) {
            print "a datagram was lost: measure this cell again"
            exit 1
        }
    }' <<<"$output"
printf '{"%s": "%s"}\n' "$close" "$test"

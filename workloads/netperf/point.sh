#!/bin/bash
# Requests and responses over one connection, one at a time.
# The data connection goes to a port that is known before, so that it can be published; the client opens it.
# Usage: point.sh warmup|point ADDRESS PORT DATA_PORT TEST REQUEST_BYTES RESPONSE_BYTES SECONDS \
#                 apart|together CLIENT_CPU SERVER_CPU
# The client runs on CLIENT_CPU (apart; empty: not pinned) or on SERVER_CPU (together).
set -euo pipefail

mode=$1 address=$2 port=$3 data_port=$4 test=$5 request=$6 response=$7 seconds=$8
placement=$9 client_cpu=${10} server_cpu=${11}
case $placement in
    apart) cpu=$client_cpu ;;
    together) cpu=${server_cpu:?is empty, and the client should be together with the server} ;;
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
# Otherwise the socket for datagrams would take them at all addresses of the client.
own=$(ip -o route get "$address" | sed -n 's/.* src \([0-9.]*\).*/\1/p')
printed=$("${pin[@]}" netperf -4 -P 0 -Z "$(</data/password)" -H "$address" -p "$port" -t "$test" -l "$seconds" -- \
    -L "$own" -P ",$data_port" -r "$request,$response" -k "$keys")
printf '%s\n' "$printed"
# After a lost datagram netperf waits for the end of the test: most of the time is then in no round trip.
awk -F= '/^RT_LATENCY=/ { all = $2 } /^MEAN_LATENCY=/ { timed = $2 }
    END { if (all > 1 + 2 * timed) { print "a datagram was lost: measure this cell again"; exit 1 } }' <<<"$printed"
printf '{"%s": "%s"}\n' "$close" "$test"

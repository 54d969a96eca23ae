#!/bin/bash
# Transfers bulk data in one direction, to the system under test (receive) or from it (transmit), at
# full speed or paced.  In both directions the client opens the data connections, so that published
# ports are enough.
# Usage: point.sh warmup|throughput|cost ADDRESS PORT DATA_PORTS STREAMS DIRECTION SECONDS \
#                 MBIT_PER_SECOND CPU
# Prints a line of JSON, the report of nuttcp, and another line; their keys are the format that
# parse.py reads.
# DATA_PORTS: a list with commas, of consecutive ports, one for each stream.  An empty
# MBIT_PER_SECOND: not paced; an empty CPU: not pinned.
set -euo pipefail

# shellcheck source=workloads/nuttcp/pace.sh
. "$(dirname "$0")/pace.sh"

mode=$1 address=$2 port=$3 data_ports=$4 streams=$5 direction=$6 seconds=$7 rate=$8 cpu=$9
IFS=, read -ra ports <<<"$data_ports"
if [ "${#ports[@]}" -ne "$streams" ] || [ "${ports[-1]}" -ne $((ports[0] + streams - 1)) ]; then
    echo "$streams streams need $streams consecutive ports, not $data_ports" >&2
    exit 1
fi
command=()
[ -z "$cpu" ] || command+=(taskset -c "$cpu")
if [ -n "$rate" ]; then
    settings=$(pacing_variables "$data_ports" "$rate")
    mapfile -t paced <<<"$settings"
    command+=(env "${paced[@]}")
fi
command+=(nuttcp)
case $direction in
    transmit) command+=(-r -F) ;;
    receive) command+=(-t) ;;
    *) exit 2 ;;
esac
[ "$streams" -eq 1 ] || command+=("-N$streams")
open=point close=end
[ "$mode" != warmup ] || open=warmup close=warmed

printf '{"%s": "%s", "direction": "%s", "streams": %d, ' "$open" "$mode" "$direction" "$streams"
printf '"seconds": %s, "rate_mbit": %s, "cpu": %s, "tool": "%s"}\n' \
    "$seconds" "${rate:-null}" "${cpu:-null}" "$(nuttcp -V)"
"${command[@]}" -P"$port" -p"${ports[0]}" -T"$seconds" -fparse "$address"
printf '{"%s": "%s"}\n' "$close" "$mode"

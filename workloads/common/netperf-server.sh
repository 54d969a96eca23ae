#!/bin/bash
# A netperf server in the foreground, which talks to who knows the cell's password alone.
# Usage: netperf-server ADDRESS PORT CPU     (an empty CPU: not pinned)
set -euo pipefail

address=$1 port=$2 cpu=$3
pin=()
[ -z "$cpu" ] || pin=(taskset -c "$cpu")
# Its own option (-L) is for the control connection alone: it would still take the others at all addresses.
exec /opt/strata/bin/listen "$address" "${pin[@]}" netserver -D -4 -N -L "$address" -p "$port" \
    -Z "$(</data/password)"

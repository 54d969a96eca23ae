#!/bin/bash
# Runs a netperf server in the foreground; clients must know the cell's password.
# Usage: netperf-server ADDRESS PORT CPU     (an empty CPU: not pinned)
set -euo pipefail

address=$1 port=$2 cpu=$3
pin=()
[ -z "$cpu" ] || pin=(taskset -c "$cpu")
# netserver's option -L binds only the control connection to the address, `listen` also the others.
exec /opt/strata/bin/listen "$address" "${pin[@]}" netserver -D -4 -N -L "$address" -p "$port" \
    -Z "$(</data/password)"

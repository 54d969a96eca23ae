#!/bin/bash
# A netperf server in the foreground.
# Usage: netperf-server PORT CPU     (an empty CPU: not pinned)
set -euo pipefail

port=$1 cpu=$2
pin=()
[ -z "$cpu" ] || pin=(taskset -c "$cpu")
exec "${pin[@]}" netserver -D -4 -N -p "$port"

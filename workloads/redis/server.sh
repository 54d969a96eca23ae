#!/bin/bash
# A Redis server without persistence, in the foreground.  It reads the cell's password, which no list of processes
# then shows, and has no configuration else but these options.
# Usage: server.sh ADDRESS PORT CPU     (an empty CPU: not pinned)
set -euo pipefail

address=$1 port=$2 cpu=$3
pin=()
[ -z "$cpu" ] || pin=(taskset -c "$cpu")
exec "${pin[@]}" redis-server --port "$port" --bind "$address" \
    --save '' --appendonly no --daemonize no --dir /data - < <(printf 'requirepass %s\n' "$(</data/password)")

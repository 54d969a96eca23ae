#!/bin/bash
# Runs a Redis server without persistence, in the foreground.  It reads the cell's password from the
# standard input, so that no list of processes shows it, and no other configuration.
# Usage: server.sh ADDRESS PORT CPU     (an empty CPU: not pinned)
set -euo pipefail

address=$1 port=$2 cpu=$3
pin=()
[ -z "$cpu" ] || pin=(taskset -c "$cpu")
exec "${pin[@]}" redis-server --port "$port" --bind "$address" \
    --save '' --appendonly no --daemonize no --dir /data - \
    < <(printf 'requirepass %s\n' "$(</data/password)")

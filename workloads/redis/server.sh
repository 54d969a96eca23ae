#!/bin/bash
# A Redis server without persistence, in the foreground and without a configuration file.
# Usage: server.sh PORT CPU     (an empty CPU: not pinned)
set -euo pipefail

port=$1 cpu=$2
pin=()
[ -z "$cpu" ] || pin=(taskset -c "$cpu")
exec "${pin[@]}" redis-server --port "$port" --bind 0.0.0.0 --protected-mode no \
    --save '' --appendonly no --daemonize no --dir /data

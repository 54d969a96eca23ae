#!/bin/bash
# Runs Redis servers in the foreground, one at each port, each with an append-only file that is
# written to the disk every second.  They end together.
# Usage: servers.sh free|pinned ADDRESS PORTS PART
# PORTS: a list with commas.  PART: the system's number, from 0.  With `pinned` each server has a
# processor and the memory next to it: the first server of system 0 the first processor, and so on.
set -euo pipefail

# shellcheck source=workloads/common/sourced/supervise.sh
source "${0%/*}/../common/sourced/supervise.sh"

kind=$1 address=$2 part=$4
IFS=, read -ra ports <<<"$3"

# Sets the array `pin`, which stands before a server's command, to the options that bind it to a
# processor and its memory; prints them as JSON into the server's output, for readers of the log.
# Usage: pin_server NUMBER PORT      (NUMBER: of the server in all systems, from 0)
pin_server() {
    # taskset prints the processors that this process may use, for example as 0-3,8.
    local cpus cpu node=0 path memory=bound
    mapfile -t cpus < <(taskset -cp $BASHPID | sed 's/.*: //' | tr , '\n' |
        awk -F- '{for (i = $1; i <= $NF; i++) print i}')
    cpu=${cpus[$1 % ${#cpus[@]}]}
    for path in "/sys/devices/system/cpu/cpu$cpu/node"*; do
        [ ! -e "$path" ] || node=${path##*node}
    done
    pin=(numactl "--physcpubind=$cpu" "--membind=$node")
    # A container may not bind memory: its pages then lie where the same processor first touches
    # them.
    if ! "${pin[@]}" true 2>/dev/null; then
        pin=(taskset -c "$cpu")
        memory="first touched"
    fi
    printf '{"pinned": %d, "cpu": %d, "node": %d, "memory": "%s"}\n' "$2" "$cpu" "$node" "$memory"
}

# Runs the server with a number in this system, from 0, in place of the process.
# Usage: serve NUMBER
serve() {
    local port=${ports[$1]} pin=()
    local folder=/data/redis-$port
    mkdir -p "$folder"
    [ "$kind" = free ] || pin_server $((part * ${#ports[@]} + $1)) "$port"
    exec "${pin[@]}" redis-server --port "$port" --bind "$address" --save '' --appendonly yes \
        --appendfsync everysec --daemonize no --dir "$folder" - <<<"requirepass $(</data/password)"
}

supervise_each "${#ports[@]}" TERM

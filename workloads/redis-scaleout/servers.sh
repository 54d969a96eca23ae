#!/bin/bash
# Redis servers with an append-only file that is written out every second, one at each port, in the foreground.
# They end together.
# Pinned, the first of system 0 is on the first processor and in the memory at that, and each further one on the next.
# Usage: servers.sh free|pinned ADDRESS PORTS PART     (PORTS separated by commas; PART: the system's number, from 0)
set -euo pipefail

# shellcheck source=workloads/common/sourced/stand.sh
source "${0%/*}/../common/sourced/stand.sh"

kind=$1 address=$2 part=$4
IFS=, read -ra ports <<<"$3"

# The command that binds what follows it to the processor and the memory of a server with a number; says how.
bound() {
    local cpus cpu node=0 path
    mapfile -t cpus < <(taskset -cp $BASHPID | sed 's/.*: //' | tr , '\n' | awk -F- '{for (i = $1; i <= $NF; i++) print i}')
    cpu=${cpus[$1 % ${#cpus[@]}]}
    for path in "/sys/devices/system/cpu/cpu$cpu/node"*; do
        [ ! -e "$path" ] || node=${path##*node}
    done
    pin=(numactl "--physcpubind=$cpu" "--membind=$node")
    local memory=bound
    # A container may not bind memory; its pages are then where they are first touched, at the same processor.
    if ! "${pin[@]}" true 2>/dev/null; then
        pin=(taskset -c "$cpu")
        memory="first touched"
    fi
    printf '{"pinned": %d, "cpu": %d, "node": %d, "memory": "%s"}\n' "$2" "$cpu" "$node" "$memory"
}

serve() {
    local port=${ports[$1]} pin=()
    local folder=/data/redis-$port
    mkdir -p "$folder"
    [ "$kind" = free ] || bound $((part * ${#ports[@]} + $1)) "$port"
    exec "${pin[@]}" redis-server --port "$port" --bind "$address" --save '' --appendonly yes --appendfsync everysec \
        --daemonize no --dir "$folder" - <<<"requirepass $(</data/password)"
}

stand_each "${#ports[@]}" TERM

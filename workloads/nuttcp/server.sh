#!/bin/bash
# Runs a nuttcp server in the foreground; the kernel paces what it sends over its PACED_PORTS.
# Usage: server.sh ADDRESS PORT PACED_PORTS MBIT_PER_SECOND CPU     (an empty CPU: not pinned)
set -euo pipefail

# shellcheck source=workloads/nuttcp/pace.sh
. "$(dirname "$0")/pace.sh"

address=$1 port=$2 paced_ports=$3 rate=$4 cpu=$5
pin=()
[ -z "$cpu" ] || pin=(taskset -c "$cpu")
settings=$(pacing_variables "$paced_ports" "$rate")
mapfile -t paced <<<"$settings"
exec "${pin[@]}" env "${paced[@]}" /opt/strata/bin/listen "$address" \
    nuttcp -S --nofork --no3rdparty -P"$port"

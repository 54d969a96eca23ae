#!/bin/bash
# Succeeds once a nuttcp server answers: one buffer, which goes through its control port and a data port.
# A bare connection would prove less, and would keep the server waiting for a session that never starts.
# Usage: ready.sh ADDRESS PORT DATA_PORTS
set -euo pipefail

address=$1 port=$2 data_ports=$3
found=$(timeout 10 nuttcp -t -n1 -fparse -P"$port" -p"${data_ports%%,*}" "$address")
[[ $found == *megabytes=* ]]

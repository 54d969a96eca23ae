#!/bin/bash
# Succeeds once a nuttcp server answers, by one buffer through its control port and a data port.  A
# mere connection would prove less, and leave the server waiting for a session that never starts.
# Usage: ready.sh ADDRESS PORT DATA_PORTS
set -euo pipefail

address=$1 port=$2 data_ports=$3
output=$(timeout 10 nuttcp -t -n1 -fparse -P"$port" -p"${data_ports%%,*}" "$address")
[[ $output == *megabytes=* ]]

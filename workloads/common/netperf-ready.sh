#!/bin/bash
# Succeeds once a netperf server answers, by one transaction through both of its ports.  A mere
# connection would prove less, and leave the server with a session that sends nothing.
# Usage: netperf-ready ADDRESS PORT DATA_PORT
set -euo pipefail

address=$1 port=$2 data_port=$3
exec timeout 10 netperf -4 -P 0 -Z "$(</data/password)" -H "$address" -p "$port" \
    -t TCP_RR -l -1 -- -P ",$data_port"

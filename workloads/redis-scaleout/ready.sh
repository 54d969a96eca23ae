#!/bin/bash
# Succeeds once all servers of a system answer to the cell's password.
# Usage: ready.sh ADDRESS PORTS      (PORTS: a list with commas)
set -euo pipefail

REDISCLI_AUTH=$(</data/password)
export REDISCLI_AUTH
IFS=, read -ra ports <<<"$2"
for port in "${ports[@]}"; do
    [ "$(redis-cli -h "$1" -p "$port" ping)" = PONG ]
done

#!/bin/bash
# Ends the servers, which keep their files until the system ends.  Usage: stop.sh ADDRESS PORTS
set -euo pipefail

REDISCLI_AUTH=$(</data/password)
export REDISCLI_AUTH
IFS=, read -ra ports <<<"$2"
for port in "${ports[@]}"; do
    redis-cli -h "$1" -p "$port" shutdown nosave
done

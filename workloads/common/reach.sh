#!/bin/bash
# Succeeds if each of the ports accepts connections.
# Usage: reach ADDRESS PORTS      (PORTS: a list with commas)
set -euo pipefail
for port in ${2//,/ }; do
    # shellcheck disable=SC2016  # the inner shell expands its arguments
    timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$port" 2>/dev/null
done

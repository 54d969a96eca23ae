#!/bin/bash
# Succeeds if something takes connections at an address and port, or at all of several ports with
# commas between them.  Usage: reach ADDRESS PORTS
set -euo pipefail
for port in ${2//,/ }; do
    # shellcheck disable=SC2016  # the inner shell fills them in
    timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$port" 2>/dev/null
done

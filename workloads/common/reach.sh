#!/bin/bash
# Ends with 0 if something takes connections at an address and port.  Usage: reach ADDRESS PORT
set -euo pipefail
# shellcheck disable=SC2016  # the inner shell fills them in
timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>/dev/null

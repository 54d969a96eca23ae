#!/bin/bash
# Ends the server and removes its files.  Usage: stop.sh
set -euo pipefail

# shellcheck source=workloads/mysql/common.sh
source "${0%/*}/common.sh"

process=$(cat "$home/pid")
mariadb-admin --no-defaults --skip-ssl --socket="$home/socket" shutdown
# It still writes after it has said goodbye.
while grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$process/status"; do
    sleep 0.05
done
rm -rf -- "$home"

#!/bin/bash
# Ends the server and removes its files.  Usage: stop.sh
set -euo pipefail

# shellcheck source=workloads/mysql/common.sh
source "${0%/*}/common.sh"

process=$(cat "$home/pid")
# A signal and no account, which some sandbox could not tell; the server ends by it as by a command.
kill -TERM "$process"
while grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$process/status"; do
    sleep 0.05
done
rm -rf -- "$home"

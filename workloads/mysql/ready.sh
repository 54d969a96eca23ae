#!/bin/bash
# Ends with 0 once the load's account can log in.  Usage: ready.sh ADDRESS PORT
set -euo pipefail

# shellcheck source=workloads/mysql/common.sh
source "${0%/*}/common.sh"

ask "$1" "$2" 'SELECT 1' >/dev/null

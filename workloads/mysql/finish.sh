#!/bin/bash
# After the sweep: whether the table still has its rows, since a transaction that deletes one puts it back.
# Usage: finish.sh ADDRESS PORT
set -euo pipefail

# shellcheck source=workloads/mysql/common.sh
source "${0%/*}/common.sh"

ask "$1" "$2" "SELECT JSON_OBJECT('rows_left', (SELECT COUNT(*) FROM sbtest1 FORCE INDEX (PRIMARY)),
    'rows_left_of_index', (SELECT COUNT(*) FROM sbtest1 FORCE INDEX (k_1)))"
echo '{"done": true}'

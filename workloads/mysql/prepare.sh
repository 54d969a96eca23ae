#!/bin/bash
# Unpacks the database, in place of what an earlier cell may have left.  Usage: prepare.sh
set -euo pipefail

# shellcheck source=workloads/mysql/options.sh
source "${0%/*}/options.sh"

unpack_database "$home"
# So that nothing of it is still to be written while something is measured.
sync -f "$home"

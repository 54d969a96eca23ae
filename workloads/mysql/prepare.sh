#!/bin/bash
# Unpacks the database, in place of what an earlier cell may have left.  Usage: prepare.sh
set -euo pipefail

# shellcheck source=workloads/mysql/common.sh
source "${0%/*}/common.sh"

rm -rf -- "$home"
tar -C "${home%/*}" --extract --gzip --preserve-permissions --numeric-owner --file=/data/prepared
# The server is not root.
chmod a+x "${home%/*}"
# So that nothing of it is still to be written while something is measured.
sync -f "$home"

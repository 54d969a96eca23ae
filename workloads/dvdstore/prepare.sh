#!/bin/bash
# Unpacks the database of each shop, in place of what an earlier cell may have left.  Usage: prepare.sh PORT,PORT…
set -euo pipefail

# shellcheck source=workloads/dvdstore/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/postgresql.sh
source "${0%/*}/../common/sourced/postgresql.sh"

IFS=, read -r -a ports <<<"$1"
rm -rf -- "$home"
for shop in "${!ports[@]}"; do
    mkdir -p "$home/$shop/web"
    unpack_database "$home/$shop"
    # The socket is for the database's processes and the pages'.
    close_socket "$home/$shop" www-data
done
# The servers are not root.
chmod a+x "${home%/*}"
# So that nothing of it is still to be written while something is measured.
sync -f "$home"

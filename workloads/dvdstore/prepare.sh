#!/bin/bash
# Unpacks the database of each shop, in place of what an earlier cell may have left.  Usage: prepare.sh PORT,PORT…
set -euo pipefail

# shellcheck source=workloads/dvdstore/common.sh
source "${0%/*}/common.sh"

IFS=, read -r -a ports <<<"$1"
rm -rf -- "$home"
for shop in "${!ports[@]}"; do
    mkdir -p "$home/$shop/web"
    chown postgres: "$home/$shop"
    tar -C "$home/$shop" --extract --gzip --preserve-permissions --numeric-owner --file=/data/prepared
done
# The servers are not root.
chmod a+x "${home%/*}"
# So that nothing of it is still to be written while something is measured.
sync -f "$home"

#!/bin/bash
# Unpacks the data for each instance, in place of what an earlier cell may have left.
# Usage: prepare.sh WEB_PORTS GEOCODER_PORTS USERS LOADED_USERS DATABASE_PORTS ROLES
# Of ports one for each instance, of users one for each point, with commas between.
set -euo pipefail

# shellcheck source=workloads/cloudstone/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/mariadb.sh
source "${0%/*}/../common/sourced/mariadb.sh"

IFS=, read -ra ports <<<"$1"
IFS=, read -ra others <<<"$2"
if [ "${#ports[@]}" != "${#others[@]}" ]; then
    echo "web_ports and geocoder_ports should name as many ports, and name ${#ports[@]} and ${#others[@]}" >&2
    exit 1
fi
IFS=, read -ra others <<<"$5"
if is_apart "$6" && [ "${#ports[@]}" != "${#others[@]}" ]; then
    echo "web_ports and database_ports should name as many ports, and name ${#ports[@]} and ${#others[@]}" >&2
    exit 1
fi
IFS=, read -ra users <<<"$3"
for number in "${users[@]}"; do
    if ((number > $4)); then
        echo "users: $number are more than loaded_users ($4), for whom there are data" >&2
        exit 1
    fi
done
rm -rf -- "$home"
for number in "${!ports[@]}"; do
    unpack_database "$home/$number"
    mkdir -p "$home/$number"/{sessions,geocoder,web}
    chown www-data: "$home/$number"/{sessions,geocoder,web}
done
# So that nothing of it is still to be written while something is measured.
sync -f "$home"

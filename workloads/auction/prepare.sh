#!/bin/bash
# Unpacks the database, in place of what an earlier cell may have left.  Usage: prepare.sh START MOST_USERS
set -euo pipefail

# shellcheck source=workloads/auction/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/postgresql.sh
source "${0%/*}/../common/sourced/postgresql.sh"

if (($1 > $2)); then
    echo "start_users: $1 are more than most_users ($2), for whom there are data" >&2
    exit 1
fi
rm -rf -- "$home"
# The servers are not root.
mkdir -p "$home"/{broker,site,web}
chmod a+x "${home%/*}"
chown rabbitmq: "$home/broker"
chown www-data: "$home"/{site,web}
unpack_database "$store"
# The socket is for the database's processes and the application's.
close_socket "$store" www-data
# So that nothing of it is still to be written while something is measured.
sync -f "$home"

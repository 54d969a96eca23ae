#!/bin/bash
# The application's processes, each of which listens on a socket of its own, in the foreground.
# Usage: application.sh PROCESSES BROKER_PORTS POLL_SECONDS ITEM_SECONDS
set -euo pipefail

# shellcheck source=workloads/auction/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/stand.sh
source "${0%/*}/../common/sourced/stand.sh"

processes=$1
allow_files
export AUCTION_DATABASE="postgresql://auction@/$database?host=$store"
# uvicorn says what it could not do; what it did is not asked for.
export AUCTION_POLL_SECONDS=$3 AUCTION_ITEM_SECONDS=$4 PYTHONDONTWRITEBYTECODE=1
AUCTION_BROKER="amqp://auction:$(<"$secret")@127.0.0.1:${2%%,*}/"
export AUCTION_BROKER
cd "$programs/app"
serve() {
    # The web server lets go of a connection first, so that none ends while it is used again.
    exec "${as_site[@]}" uvicorn --uds "$home/site/$1" --backlog 4096 --timeout-keep-alive 300 --lifespan on \
        --log-level warning --no-access-log auctions:application
}

stand_each "$processes" TERM

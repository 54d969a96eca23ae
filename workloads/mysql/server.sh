#!/bin/bash
# The database server, in the foreground.  Usage: server.sh ADDRESS PORT BUFFER_BYTES LOG_BYTES
set -euo pipefail

# shellcheck source=workloads/mysql/options.sh
source "${0%/*}/options.sh"

server_options "$3" "$4"
options+=(
    --port="$2"
    --bind-address="$1"
    # As in the original's my.cnf.
    --query-cache-type=0
    --query-cache-size=0
    --thread-cache-size=256
    # The original allowed 20,020 connections.  Where fewer files may be open than that takes, the server quietly
    # lowers this and the tables that it holds open; these it keeps even where 1024 files may be open.
    --max-connections=1024
    --table-open-cache=1024
    # Names of clients are not looked up: what a resolver answers, and when, differs from system to system.
    --skip-name-resolve
    # As MySQL does: an update of a row that changed since the transaction's first read is no error.
    # Versions that do not know this behave so anyway.
    --loose-innodb-snapshot-isolation=OFF
)
run_database "$home" "$user" % "$schema" ALL

#!/bin/bash
# Runs nginx in the foreground, with one process and two pages.
# Usage: server.sh ADDRESS PORT CPU     (an empty CPU: not pinned)
set -euo pipefail
# shellcheck source=workloads/common/sourced/nginx.sh
source "${0%/*}/../common/sourced/nginx.sh"

mkdir -p /data/web/pages
head -c 1000 /dev/zero | tr '\0' s >/data/web/pages/small
head -c 100000 /dev/zero | tr '\0' b >/data/web/pages/100kB
[ -z "$3" ] || taskset -cp "$3" $$ >/dev/null
run_nginx /data/web 1 2048 <<CONF
    server {
        listen $1:$2;
        root /data/web/pages;
    }
CONF

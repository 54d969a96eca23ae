#!/bin/bash
# The web server (nginx), in the foreground.  Usage: web.sh ADDRESS PORT PROCESSES
# It gives the page's own files, and leads all else to the application's processes.
set -euo pipefail

# shellcheck source=workloads/auction/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/stand.sh
source "${0%/*}/../common/sourced/stand.sh"
# shellcheck source=workloads/common/sourced/nginx.sh
source "${0%/*}/../common/sourced/nginx.sh"

allow_files
address=$1 port=$2 processes=$3 servers=''
for ((number = 0; number < processes; number++)); do
    servers+="server unix:$home/site/$number max_fails=0; "
done

serve() {
    run_nginx "$home/web" "$processes" "$(ulimit -n)" <<CONF
    keepalive_timeout 300;
    client_max_body_size 1m;
    client_body_buffer_size 64k;
    upstream site {
        zone site 256k;
        least_conn;
        $servers
        keepalive 256;
    }
    server {
        listen $address:$port backlog=4096;
        add_header X-Content-Type-Options nosniff;
        location / {
            root $programs/page;
            index index.html;
            log_not_found off;
        }
        location /api/ {
            proxy_pass http://site;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host \$http_host;
            proxy_buffers 8 32k;
            # Nothing is sent twice.
            proxy_next_upstream off;
            proxy_connect_timeout 60;
            proxy_read_timeout 300;
        }
    }
CONF
}

stand_each 1 TERM

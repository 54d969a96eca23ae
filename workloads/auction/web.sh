#!/bin/bash
# The web server (nginx), in the foreground.  Usage: web.sh ADDRESS PORT PROCESSES
# It gives the page's own files, and leads all else to the application's processes.
set -euo pipefail

# shellcheck source=workloads/auction/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/stand.sh
source "${0%/*}/../common/sourced/stand.sh"

allow_files
folder=$home/web
servers=''
for ((number = 0; number < $3; number++)); do
    servers+="server unix:$home/site/$number max_fails=0; "
done
cat >"$folder/web.conf" <<END
daemon off;
user www-data;
worker_processes $3;
pid $folder/pid;
error_log stderr error;
events { worker_connections $(ulimit -n); }
http {
    types { text/html html; text/css css; text/javascript js; image/svg+xml svg; }
    access_log off;
    sendfile on;
    tcp_nopush on;
    server_tokens off;
    keepalive_timeout 300;
    keepalive_requests 1000000;
    client_max_body_size 1m;
    client_body_buffer_size 64k;
    client_body_temp_path $folder/body;
    proxy_temp_path $folder/proxy;
    fastcgi_temp_path $folder/fastcgi;
    uwsgi_temp_path $folder/uwsgi;
    scgi_temp_path $folder/scgi;
    upstream site {
        zone site 256k;
        least_conn;
        $servers
        keepalive 256;
    }
    server {
        listen $1:$2 backlog=4096;
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
}
END
nginx -e stderr -c "$folder/web.conf" &
standing=($!)
stand TERM

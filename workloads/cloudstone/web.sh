#!/bin/bash
# The web servers (nginx), one for each instance, in the foreground.  Usage: web.sh ADDRESS PORTS WORKERS
set -euo pipefail

# shellcheck source=workloads/cloudstone/common.sh
source "${0%/*}/common.sh"

address=$1
IFS=, read -ra ports <<<"$2"
workers=$3

serve() {
    local folder=$home/$1
    cat >"$folder/web.conf" <<CONF
daemon off;
user www-data;
worker_processes $workers;
worker_rlimit_nofile 8192;
pid $folder/web/pid;
error_log stderr error;
events { worker_connections 4096; }
http {
    types { text/css css; text/javascript js; image/svg+xml svg; image/png png; text/plain txt; }
    access_log off;
    sendfile on;
    tcp_nopush on;
    server_tokens off;
    keepalive_requests 1000000;
    client_max_body_size 2m;
    client_body_temp_path $folder/web/body;
    fastcgi_temp_path $folder/web/fastcgi;
    proxy_temp_path $folder/web/proxy;
    uwsgi_temp_path $folder/web/uwsgi;
    scgi_temp_path $folder/web/scgi;
    server {
        listen $address:${ports[$1]} backlog=4096;
        location /static/ { root $programs/app; expires 1h; }
        location /files/ { root $folder; expires 1h; }
        location / {
            fastcgi_pass unix:$folder/php;
            fastcgi_param SCRIPT_FILENAME $programs/app/index.php;
            fastcgi_param SERVER_PROTOCOL \$server_protocol;
            fastcgi_param REQUEST_METHOD \$request_method;
            fastcgi_param REQUEST_URI \$request_uri;
            fastcgi_param QUERY_STRING \$query_string;
            fastcgi_param CONTENT_TYPE \$content_type;
            fastcgi_param CONTENT_LENGTH \$content_length;
        }
    }
}
CONF
    exec nginx -e stderr -c "$folder/web.conf"
}

serve_each "${#ports[@]}"

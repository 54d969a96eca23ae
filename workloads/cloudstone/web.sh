#!/bin/bash
# The web servers (nginx), one for each instance, in the foreground.  Usage: web.sh ADDRESS PORTS WORKERS
set -euo pipefail

# shellcheck source=workloads/cloudstone/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/nginx.sh
source "${0%/*}/../common/sourced/nginx.sh"

address=$1
IFS=, read -ra ports <<<"$2"
workers=$3

allow_files

serve() {
    local folder=$home/$1
    run_nginx "$folder/web" "$workers" 4096 <<CONF
    client_max_body_size 2m;
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
CONF
}

stand_each "${#ports[@]}" TERM

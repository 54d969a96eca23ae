# shellcheck shell=bash
# Sourced by applications behind nginx.

# Runs nginx, in place of the script, without the distribution's configuration.  Reads the rest of
# the block `http`, with the servers, from the standard input; keeps its own files in FOLDER.
# Usage: run_nginx FOLDER PROCESSES CONNECTIONS      (CONNECTIONS: of each process, with open files)
run_nginx() {
    cat >"$1/web.conf" <<CONF
daemon off;
user www-data;
worker_processes $2;
pid $1/pid;
error_log stderr error;
events { worker_connections $3; }
http {
    types {
        text/html html; text/css css; text/javascript js; text/plain txt;
        image/svg+xml svg; image/png png;
    }
    access_log off;
    sendfile on;
    tcp_nopush on;
    server_tokens off;
    keepalive_requests 1000000;
    client_body_temp_path $1/body;
    fastcgi_temp_path $1/fastcgi;
    proxy_temp_path $1/proxy;
    uwsgi_temp_path $1/uwsgi;
    scgi_temp_path $1/scgi;
$(cat)
}
CONF
    exec nginx -e stderr -c "$1/web.conf" </dev/null
}

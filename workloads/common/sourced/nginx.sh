# shellcheck shell=bash
# Sourced by workloads with pages that nginx gives.

# Runs the web server, in place of the script.  Nothing of the distribution's configuration counts; what it serves is
# read from the standard input, and its own files are in the folder.  Usage: run_nginx FOLDER PROCESSES CONNECTIONS
# CONNECTIONS are those of each process, which needs as many open files.
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
        text/html html; text/css css; text/javascript js; text/plain txt; image/svg+xml svg; image/png png;
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

# Ends with 0 once a server answers well.  Usage: answers ADDRESS PORT PATH
answers() {
    local answer
    exec 3<>"/dev/tcp/$1/$2"
    printf 'GET %s HTTP/1.0\r\nHost: site\r\n\r\n' "$3" >&3
    read -r -t 10 answer <&3
    exec 3>&-
    [[ $answer == HTTP/1.?\ 200* ]]
}

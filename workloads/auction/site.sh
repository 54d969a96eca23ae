#!/bin/bash
# Makes the auctions' data, and runs their servers in the foreground.
# Usage: site.sh data USERS SEED BUFFER_BYTES       makes the database that every cell starts with
#        site.sh prepare START_USERS MAX_USERS     unpacks it
#        site.sh database BUFFER_BYTES PROCESSES    runs PostgreSQL
#        site.sh broker PORT,DISTRIBUTION_PORT,NAMES_PORT
#        site.sh application PROCESSES BROKER_PORTS POLL_SECONDS ITEM_SECONDS
#        site.sh web ADDRESS PORT PROCESSES
#        site.sh ready database                     succeeds once the database answers
#        site.sh ready application PROCESSES        succeeds once all its processes listen
# PROCESSES: of the application.  BROKER_PORTS: the argument of `broker`.
set -euo pipefail

# shellcheck source=workloads/common/sourced/site.sh
source "${0%/*}/../common/sourced/site.sh"
# shellcheck source=workloads/common/sourced/postgresql.sh
source "${0%/*}/../common/sourced/postgresql.sh"
# shellcheck source=workloads/common/sourced/nginx.sh
source "${0%/*}/../common/sourced/nginx.sh"

# The folder of the only site, and the file with the cell's password, which is the broker's, too.
site=$home/0 secret=/data/password

# Makes the database that every cell starts with, in /data/prepared.
# Usage: make_auction_data USERS SEED BUFFER_BYTES
make_auction_data() {
    local users=$1 seed=$2 buffer_bytes=$3
    make_database auction "$buffer_bytes" "$users" "$seed"
}

# Unpacks the database, and makes the servers' folders.
# Usage: prepare_servers START_USERS MAX_USERS
prepare_servers() {
    local start_users=$1 most_users=$2
    require_data "$start_users" "$most_users"
    prepare_sites 1 web sockets
    # Not in the site's folder, which only the web server's group may enter.
    install -d -o rabbitmq -g rabbitmq "$home/broker"
}

# Runs PostgreSQL, in the foreground, for PROCESSES of the application.
# Usage: serve_auction_database BUFFER_BYTES PROCESSES
serve_auction_database() {
    local buffer_bytes=$1 processes=$2
    # Each process of the application keeps up to eight connections (CONNECTIONS in auctions.py).
    serve_databases 1 "$buffer_bytes" "$((8 * processes + 20))"
}

# Runs RabbitMQ, and epmd, the name server of Erlang's nodes; both listen on the loopback only.  The
# broker's account has the cell's password, as AUCTION_BROKER of serve_application expects.
# Usage: serve_broker PORT,DISTRIBUTION_PORT,NAMES_PORT
serve_broker() {
    local folder=$home/broker
    local port distribution names
    local as_broker=(setpriv --reuid=rabbitmq --regid=rabbitmq --clear-groups --)
    IFS=, read -r port distribution names <<<"$1"
    mkdir -p "$folder"/{mnesia,log,none}
    echo '[].' >"$folder/enabled"
    # The root filesystem may lack /etc/hosts.
    echo '{host, {127,0,0,1}, ["localhost"]}. {lookup, [file, native]}.' >"$folder/names"
    (
        umask 077
        cat >"$folder/broker.conf" <<END
listeners.tcp.1 = 127.0.0.1:$port
default_user = auction
default_pass = $(<"$secret")
log.file = false
log.console = true
log.console.level = warning
disk_free_limit.absolute = 64MB
END
    )
    chown -R rabbitmq: "$folder"
    # Every path is set here, so that RabbitMQ reads none of the distribution's configuration.
    export HOME=$folder LANG=C.UTF-8 ERL_INETRC=$folder/names
    export ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT=$names
    export RABBITMQ_NODENAME=auction@localhost RABBITMQ_DIST_PORT=$distribution
    export RABBITMQ_CONFIG_FILE=$folder/broker.conf RABBITMQ_CONFIG_FILES=$folder/none
    export RABBITMQ_ADVANCED_CONFIG_FILE=$folder/none/advanced.config
    export RABBITMQ_CONF_ENV_FILE=$folder/none/env
    export RABBITMQ_ENABLED_PLUGINS_FILE=$folder/enabled RABBITMQ_PID_FILE=$folder/pid
    export RABBITMQ_MNESIA_BASE=$folder/mnesia RABBITMQ_LOG_BASE=$folder/log RABBITMQ_LOGS=-
    local loopback="-kernel inet_dist_use_interface {127,0,0,1}"
    export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=$loopback
    cd "$folder"
    # Started before the broker, which would otherwise start an epmd that outlives it.
    # Not local: the trap below reads it when the script ends.
    "${as_broker[@]}" epmd -port "$names" -address 127.0.0.1 &
    epmd=$!
    wait_for_server "$epmd" /opt/strata/bin/reach 127.0.0.1 "$names"
    "${as_broker[@]}" /usr/lib/rabbitmq/bin/rabbitmq-server &
    servers=($!)
    trap 'kill "$epmd"' EXIT
    supervise TERM
}

# Runs the application's processes; each one listens on a socket of its own, to which serve_pages
# passes requests.  app/auctions.py reads the variables AUCTION_….
# Usage: serve_application PROCESSES BROKER_PORTS POLL_SECONDS ITEM_SECONDS
serve_application() {
    local processes=$1 broker_port=${2%%,*}
    raise_file_limit
    export AUCTION_DATABASE="postgresql://auction@/auction?host=$site"
    export AUCTION_POLL_SECONDS=$3 AUCTION_ITEM_SECONDS=$4 PYTHONDONTWRITEBYTECODE=1
    # A long heartbeat: the whole system is frozen while other environments measure.
    AUCTION_BROKER="amqp://auction:$(<"$secret")@127.0.0.1:$broker_port/?heartbeat=65534"
    export AUCTION_BROKER
    cd "$programs/app"
    # Runs one of the processes, in place of this one.  Usage: serve NUMBER
    # It keeps connections longer than the web server does, which so never uses a closing one.
    serve() {
        exec "${as_web[@]}" uvicorn --uds "$site/sockets/$1" --backlog 4096 \
            --timeout-keep-alive 300 --lifespan on --log-level warning --no-access-log \
            auctions:application
    }
    supervise_each "$processes" TERM
}

# Runs nginx, which serves the site's own files, and passes requests to the application.
# Usage: serve_pages ADDRESS PORT PROCESSES
serve_pages() {
    local address=$1 port=$2 processes=$3 upstreams='' socket
    for ((socket = 0; socket < processes; socket++)); do
        upstreams+="server unix:$site/sockets/$socket max_fails=0; "
    done
    raise_file_limit
    # Runs nginx, in place of the process.
    serve() {
        run_nginx "$site/web" "$processes" "$(ulimit -n)" <<CONF
    keepalive_timeout 300;
    client_max_body_size 1m;
    client_body_buffer_size 64k;
    upstream site {
        zone site 256k;
        least_conn;
        $upstreams
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
            # No request is sent to a second process.
            proxy_next_upstream off;
            proxy_connect_timeout 60;
            proxy_read_timeout 300;
        }
    }
CONF
    }
    supervise_each 1 TERM
}

# Succeeds if a server answers; Strata repeats the check until it does.
# Usage: check_server database | check_server application PROCESSES
check_server() {
    case $1 in
    database) databases_ready 1 ;;
    # A process creates its socket once it is connected to database and broker.
    application) [ "$(find "$site/sockets" -type s | wc -l)" = "$2" ] ;;
    esac
}

declare -A functions=(
    [data]=make_auction_data [prepare]=prepare_servers [database]=serve_auction_database
    [broker]=serve_broker [application]=serve_application [web]=serve_pages [ready]=check_server
)
"${functions[$1]}" "${@:2}"

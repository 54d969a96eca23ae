#!/bin/bash
# The auctions' data, and their servers in the foreground.
# Usage: site.sh data USERS SEED BUFFER_BYTES       makes the database that every cell starts with
#        site.sh prepare START_USERS MOST_USERS     unpacks it
#        site.sh database BUFFER_BYTES PROCESSES
#        site.sh broker PORT,DISTRIBUTION_PORT,NAMES_PORT
#        site.sh application PROCESSES BROKER_PORTS POLL_SECONDS ITEM_SECONDS
#        site.sh web ADDRESS PORT PROCESSES
#        site.sh ready database | application PROCESSES     succeeds once it answers
set -euo pipefail

# shellcheck source=workloads/common/sourced/site.sh
source "${0%/*}/../common/sourced/site.sh"
# shellcheck source=workloads/common/sourced/postgresql.sh
source "${0%/*}/../common/sourced/postgresql.sh"
# shellcheck source=workloads/common/sourced/nginx.sh
source "${0%/*}/../common/sourced/nginx.sh"

# The only site, and the broker's password, which is made for every cell.
site=$home/0 secret=/data/password

data() {
    make_database auction "$3" "$1" "$2"
}

prepare() {
    require_data "$1" "$2"
    prepare_sites 1 web sockets
    # Out of the site's folder, into which only the web server's group may go.
    install -d -o rabbitmq -g rabbitmq "$home/broker"
}

database() {
    # Each process of the application keeps eight connections.
    serve_databases 1 "$1" "$((8 * $2 + 20))"
}

# RabbitMQ and epmd, by which Erlang finds its nodes; both listen on the loopback alone.
broker() {
    local folder=$home/broker
    local port distribution names
    local as_broker=(setpriv --reuid=rabbitmq --regid=rabbitmq --clear-groups --)
    IFS=, read -r port distribution names <<<"$1"
    mkdir -p "$folder"/{mnesia,log,none}
    echo '[].' >"$folder/enabled"
    # Not every root has /etc/hosts.
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
    # The distribution's configuration does not count.
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
    # Before the broker, which would otherwise start one that outlives it.
    "${as_broker[@]}" epmd -port "$names" -address 127.0.0.1 &
    epmd=$!
    until /opt/strata/bin/reach 127.0.0.1 "$names"; do
        kill -0 "$epmd"
        sleep 0.05
    done
    "${as_broker[@]}" /usr/lib/rabbitmq/bin/rabbitmq-server &
    standing=($!)
    trap 'kill "$epmd"' EXIT
    stand TERM
}

# The application's processes, each of which listens on a socket of its own.
application() {
    allow_files
    export AUCTION_DATABASE="postgresql://auction@/auction?host=$site"
    export AUCTION_POLL_SECONDS=$3 AUCTION_ITEM_SECONDS=$4 PYTHONDONTWRITEBYTECODE=1
    # The heartbeat is long: while other environments measure, the whole system is frozen.
    AUCTION_BROKER="amqp://auction:$(<"$secret")@127.0.0.1:${2%%,*}/?heartbeat=65534"
    export AUCTION_BROKER
    cd "$programs/app"
    # The web server closes a connection first, so that none closes while it is used again.
    serve() {
        exec "${as_web[@]}" uvicorn --uds "$site/sockets/$1" --backlog 4096 \
            --timeout-keep-alive 300 --lifespan on --log-level warning --no-access-log \
            auctions:application
    }
    stand_each "$1" TERM
}

# nginx serves the site's own files, and passes requests to the application's processes.
web() {
    local number
    address=$1 port=$2 processes=$3 servers=''
    for ((number = 0; number < processes; number++)); do
        servers+="server unix:$site/sockets/$number max_fails=0; "
    done
    allow_files
    serve() {
        run_nginx "$site/web" "$processes" "$(ulimit -n)" <<CONF
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
}

ready() {
    case $1 in
    database) databases_ready 1 ;;
    # A process makes its socket once it has reached database and broker.
    application) [ "$(find "$site/sockets" -type s | wc -l)" = "$2" ] ;;
    esac
}

"$@"

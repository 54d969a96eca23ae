#!/bin/bash
# The auctions' data, and their servers, each in the foreground.
# Usage: site.sh data USERS SEED BUFFER_BYTES       makes the database that every cell starts with
#        site.sh prepare START MOST_USERS           unpacks it, in place of what an earlier cell may have left
#        site.sh database BUFFER_BYTES PROCESSES
#        site.sh broker PORT,DISTRIBUTION_PORT,NAMES_PORT
#        site.sh application PROCESSES BROKER_PORTS POLL_SECONDS ITEM_SECONDS
#        site.sh web ADDRESS PORT PROCESSES
#        site.sh ready database | broker PORTS | application PROCESSES | web ADDRESS PORT
#                                                   ends with 0 once it answers
set -euo pipefail

# shellcheck source=workloads/common/sourced/postgresql.sh
source "${0%/*}/../common/sourced/postgresql.sh"
# shellcheck source=workloads/common/sourced/stand.sh
source "${0%/*}/../common/sourced/stand.sh"
# shellcheck source=workloads/common/sourced/nginx.sh
source "${0%/*}/../common/sourced/nginx.sh"

home=/data/auction programs=/opt/strata/workloads/auction
# The database's folder, with its socket, and the broker's password, which is made for every cell.
store=$home/store secret=/data/password
# What runs a command as a user of the packages': nothing needs to be root.
as_broker=(setpriv --reuid=rabbitmq --regid=rabbitmq --clear-groups --)
as_site=(setpriv --reuid=www-data --regid=www-data --clear-groups --)

data() {
    make_database "$store" auction auction "$3" "$1, $2, :'rows', sum(balance) FROM people" "$1" "$2"
}

prepare() {
    if (($1 > $2)); then
        echo "start_users: $1 are more than most_users ($2), for whom there are data" >&2
        exit 1
    fi
    rm -rf -- "$home"
    mkdir -p "$home"/{broker,site,web}
    # The servers are not root.
    chown rabbitmq: "$home/broker"
    chown www-data: "$home"/{site,web}
    unpack_database "$store" www-data
    # So that nothing of it is still to be written while something is measured.
    sync -f "$home"
}

database() {
    # Each process of the application keeps eight connections.
    database_options "$store" "$1" "$((8 * $2 + 20))"
    serve() {
        exec "${as_postgres[@]}" "$(postgres_programs)/postgres" "${options[@]}"
    }
    # Asked to end at once, without waiting for connections.
    stand_each 1 INT
}

# RabbitMQ, and the daemon that Erlang wants to find its nodes; both listen on the loopback alone.
broker() {
    local port distribution names folder=$home/broker
    IFS=, read -r port distribution names <<<"$1"
    mkdir -p "$folder"/{mnesia,log,none}
    echo '[].' >"$folder/enabled"
    # Not every root has /etc/hosts, by which names of the machine itself are found.
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

    # Nothing of the distribution's configuration counts.
    export HOME=$folder LANG=C.UTF-8
    export ERL_INETRC=$folder/names
    export ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT=$names
    export RABBITMQ_NODENAME=auction@localhost RABBITMQ_DIST_PORT=$distribution
    export RABBITMQ_CONF_ENV_FILE=$folder/none/env RABBITMQ_CONFIG_FILES=$folder/none
    export RABBITMQ_CONFIG_FILE=$folder/broker.conf RABBITMQ_ADVANCED_CONFIG_FILE=$folder/none/advanced.config
    export RABBITMQ_ENABLED_PLUGINS_FILE=$folder/enabled
    export RABBITMQ_MNESIA_BASE=$folder/mnesia RABBITMQ_LOG_BASE=$folder/log RABBITMQ_LOGS=- RABBITMQ_PID_FILE=$folder/pid
    export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}"
    cd "$folder"
    # It has to be there before the broker, which would start one that outlives it.
    "${as_broker[@]}" epmd -port "$names" -address 127.0.0.1 &
    names_process=$!
    until /opt/strata/bin/reach 127.0.0.1 "$names"; do
        kill -0 "$names_process"
        sleep 0.05
    done
    "${as_broker[@]}" /usr/lib/rabbitmq/bin/rabbitmq-server &
    standing=($!)
    trap 'kill "$names_process"' EXIT
    stand TERM
}

# The application's processes, each of which listens on a socket of its own.
application() {
    allow_files
    export AUCTION_DATABASE="postgresql://auction@/auction?host=$store"
    export AUCTION_POLL_SECONDS=$3 AUCTION_ITEM_SECONDS=$4 PYTHONDONTWRITEBYTECODE=1
    # All of it stands still while others have their turn, for which nobody is to call a connection dead.
    AUCTION_BROKER="amqp://auction:$(<"$secret")@127.0.0.1:${2%%,*}/?heartbeat=65534"
    export AUCTION_BROKER
    cd "$programs/app"
    # uvicorn says what it could not do; what it did is not asked for.  The web server lets go of a connection first, so
    # that none ends while it is used again.
    serve() {
        exec "${as_site[@]}" uvicorn --uds "$home/site/$1" --backlog 4096 --timeout-keep-alive 300 --lifespan on \
            --log-level warning --no-access-log auctions:application
    }
    stand_each "$1" TERM
}

# nginx, which gives the page's own files, and leads all else to the application's processes.
web() {
    local number
    address=$1 port=$2 processes=$3 servers=''
    for ((number = 0; number < processes; number++)); do
        servers+="server unix:$home/site/$number max_fails=0; "
    done
    allow_files
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
}

ready() {
    case $1 in
    database) "${as_postgres[@]}" pg_isready --quiet --host="$store" --dbname=postgres ;;
    broker) /opt/strata/bin/reach 127.0.0.1 "${2%%,*}" ;;
    # A process makes its socket once it has reached database and broker.
    application) [ "$(find "$home/site" -type s | wc -l)" = "$2" ] ;;
    web) answers "$2" "$3" /api/books ;;
    esac
}

"$@"

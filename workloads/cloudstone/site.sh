#!/bin/bash
# Makes the application's data, and runs its servers in the foreground, one for each instance.
# Usage: site.sh data USERS BUFFER_BYTES LOG_BYTES SEED
#                     makes the database and the files that every instance starts with
#        site.sh prepare WEB_PORTS GEOCODER_PORTS USERS LOADED_USERS DATABASE_PORTS ROLES
#                     unpacks them for each instance
#        site.sh database WEB_PORTS BUFFER_BYTES LOG_BYTES ADDRESS DATABASE_PORTS ROLES
#        site.sh geocoder ADDRESS PORTS
#        site.sh php ADDRESS GEOCODER_PORTS CHILDREN DATABASE_ADDRESS DATABASE_PORTS ROLES
#        site.sh web ADDRESS PORTS WORKERS
#        site.sh ready database|php PORTS      succeeds once every instance answers
# PORTS and USERS are lists with commas; an instance has one port of each list.
set -euo pipefail

# shellcheck source=workloads/common/sourced/site.sh
source "${0%/*}/../common/sourced/site.sh"
# shellcheck source=workloads/common/sourced/mariadb.sh
source "${0%/*}/../common/sourced/mariadb.sh"
# shellcheck source=workloads/common/sourced/nginx.sh
source "${0%/*}/../common/sourced/nginx.sh"

# The application's account, which may use only its schema, and the file with the cell's password.
user=events schema=events secret=/data/password

# Succeeds if the databases have a system of their own: ROLES, a list with commas, has several then.
# Usage: has_database_system ROLES
has_database_system() {
    [[ $1 == *,* ]]
}

# Sets the array `options` to those of an instance's database server.  serve_databases adds others.
# Usage: set_server_options FOLDER BUFFER_BYTES LOG_BYTES
set_server_options() {
    set_database_options "$@"
    options+=(
        # The application is on the same system, and uses a socket.
        --skip-networking
        # Every commit is on the disk before it is answered.
        --innodb-flush-log-at-trx-commit=1
        --character-set-server=utf8mb4
        --collation-server=utf8mb4_general_ci
    )
}

# Makes the database and the files that every instance starts with, in /data/prepared.
# Usage: make_event_data USERS BUFFER_BYTES LOG_BYTES SEED
make_event_data() {
    local users=$1 buffer_bytes=$2 log_bytes=$3 seed=$4 rows=$home/rows
    set_server_options "$home/mysql" "$buffer_bytes" "$log_bytes"
    rm -rf -- "$home" /data/prepared
    mkdir -p "$rows"
    start_new_database "$home/mysql"
    query_new --execute="CREATE DATABASE $schema"
    query_new "$schema" <"$programs/schema.sql"
    fill_tables "$rows" "$users" "$seed"
    mv -- "$rows/files" "$home/files"
    chown -R www-data: "$home/files"
    rm -rf -- "$rows"
    stop_new_database
    pack_data "$home"
}

# Unpacks the data for each instance.  Ends the script with a message unless an instance has a port
# of each list, and the data suffice for the largest of USERS.
# Usage: prepare_instances WEB_PORTS GEOCODER_PORTS USERS LOADED_USERS DATABASE_PORTS ROLES
prepare_instances() {
    local ports geocoders databases users loaded_users=$4 roles=$6
    IFS=, read -ra ports <<<"$1"
    IFS=, read -ra geocoders <<<"$2"
    IFS=, read -ra databases <<<"$5"
    has_database_system "$roles" || databases=("${ports[@]}")
    if [ "${#geocoders[@]} ${#databases[@]}" != "${#ports[@]} ${#ports[@]}" ]; then
        echo "web_ports ($1), geocoder_ports ($2) and database_ports ($5) must be equally many" >&2
        exit 1
    fi
    for users in ${3//,/ }; do
        require_data "$users" "$loaded_users"
    done
    prepare_sites "${#ports[@]}" sessions geocoder web
}

# Runs MariaDB: in a system of its own at ADDRESS and DATABASE_PORTS, otherwise at sockets only.
# Usage: serve_databases WEB_PORTS BUFFER_BYTES LOG_BYTES ADDRESS DATABASE_PORTS ROLES
serve_databases() {
    local buffer_bytes=$2 log_bytes=$3 address=$4 roles=$6 ports database_ports
    # The host from which the application's account logs in; % is any.
    local from=localhost
    IFS=, read -ra ports <<<"$1"
    IFS=, read -ra database_ports <<<"$5"
    ! has_database_system "$roles" || from=%
    # Runs MariaDB for an instance, in place of the process.  Usage: serve NUMBER
    serve() {
        local folder=$home/$1/mysql
        set_server_options "$folder" "$buffer_bytes" "$log_bytes"
        options+=(--max-connections=256 --table-open-cache=400)
        if has_database_system "$roles"; then
            options+=(--skip-networking=OFF --skip-name-resolve --bind-address="$address")
            options+=(--port="${database_ports[$1]}")
        fi
        run_database "$folder" "$user" "$from" "$schema" "SELECT, INSERT, UPDATE, DELETE"
    }
    supervise_each "${#ports[@]}" TERM
}

# Runs Tomcat with the geocoder for each instance; geocoder/server.xml reads address and port.
# Usage: serve_geocoders ADDRESS PORTS
serve_geocoders() {
    local address=$1 ports
    IFS=, read -ra ports <<<"$2"
    # Runs Tomcat for an instance, in place of the process.  Usage: serve NUMBER
    serve() {
        local folder=$home/$1/geocoder jar=/usr/share/tomcat10/bin
        mkdir -p "$folder"/{conf,temp,webapps}
        chown www-data: "$folder/temp"
        cp "$programs/geocoder/server.xml" "$folder/conf"
        # The geocoder has little to do: a small heap, and only the quick one of two compilers.
        exec "${as_web[@]}" java -Xms64m -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
            -Djava.io.tmpdir="$folder/temp" \
            -Dgeocoder.address="$address" -Dgeocoder.port="${ports[$1]}" \
            -Dcatalina.home=/usr/share/tomcat10 -Dcatalina.base="$folder" \
            -cp "$jar/bootstrap.jar:$jar/tomcat-juli.jar" \
            org.apache.catalina.startup.Bootstrap start
    }
    supervise_each "${#ports[@]}" TERM
}

# Runs php-fpm, with a pool of CHILDREN processes for each instance.  app/fpm.conf and app/base.php
# read the exported variables.
# Usage: serve_programs ADDRESS GEOCODER_PORTS CHILDREN DATABASE_ADDRESS DATABASE_PORTS ROLES
serve_programs() {
    local address=$1 database_address=$4 roles=$6 ports database_ports program
    IFS=, read -ra ports <<<"$2"
    IFS=, read -ra database_ports <<<"$5"
    program=$(compgen -G '/usr/sbin/php-fpm[0-9]*')
    export SITE_PROCESSES=$3 DATABASE_USER=$user DATABASE_PASSWORD PHP_INI_SCAN_DIR=''
    DATABASE_PASSWORD=$(<"$secret")
    # Runs php-fpm for an instance, in place of the process.  Usage: serve NUMBER
    serve() {
        local database=unix_socket=$home/$1/mysql/socket
        if has_database_system "$roles"; then
            database="host=$database_address;port=${database_ports[$1]}"
        fi
        export DATABASE="mysql:$database;dbname=$schema;charset=utf8mb4"
        export GEOCODER=http://$address:${ports[$1]}/geocode
        export SITE_FOLDER=$home/$1 FILES=$home/$1/files
        exec "$program" --nodaemonize --php-ini "$programs/app/php.ini" \
            --fpm-config "$programs/app/fpm.conf"
    }
    supervise_each "${#ports[@]}" TERM
}

# Runs nginx, which serves files and passes other requests to PHP.
# Usage: serve_pages ADDRESS PORTS WORKERS
serve_pages() {
    local address=$1 workers=$3 ports
    IFS=, read -ra ports <<<"$2"
    raise_file_limit
    # Runs nginx for an instance, in place of the process.  Usage: serve NUMBER
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
    supervise_each "${#ports[@]}" TERM
}

# Succeeds if a server of every instance answers; Strata repeats the check until they do.  PORTS:
# only their number counts.
# Usage: check_servers database|php PORTS
check_servers() {
    local number ports
    IFS=, read -ra ports <<<"$2"
    for number in "${!ports[@]}"; do
        case $1 in
        database)
            mariadb-admin --no-defaults --skip-ssl --socket="$home/$number/mysql/socket" \
                ping >/dev/null
            ;;
        php) [ -S "$home/$number/php" ] ;;
        esac
    done
}

declare -A functions=(
    [data]=make_event_data [prepare]=prepare_instances [database]=serve_databases
    [geocoder]=serve_geocoders [php]=serve_programs [web]=serve_pages [ready]=check_servers
)
"${functions[$1]}" "${@:2}"

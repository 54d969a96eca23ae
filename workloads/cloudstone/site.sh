#!/bin/bash
# The application's data, and its servers in the foreground, one for each instance.
# Usage: site.sh data USERS BUFFER_BYTES LOG_BYTES SEED
#                     makes the database and the files that every cell starts with
#        site.sh prepare WEB_PORTS GEOCODER_PORTS USERS LOADED_USERS DATABASE_PORTS ROLES
#                     unpacks them for each instance, in place of what an earlier cell may have left
#        site.sh database WEB_PORTS BUFFER_BYTES LOG_BYTES ADDRESS DATABASE_PORTS ROLES
#        site.sh geocoder ADDRESS PORTS
#        site.sh php ADDRESS GEOCODER_PORTS CHILDREN DATABASE_ADDRESS DATABASE_PORTS ROLES
#        site.sh web ADDRESS PORTS WORKERS
#        site.sh ready database PORTS | php PORTS | http PATH ADDRESS PORTS
#                     ends with 0 once every instance answers
# Of ports one for each instance, of users one for each point, with commas between.
set -euo pipefail

# shellcheck source=workloads/common/sourced/mariadb.sh
source "${0%/*}/../common/sourced/mariadb.sh"
# shellcheck source=workloads/common/sourced/stand.sh
source "${0%/*}/../common/sourced/stand.sh"
# shellcheck source=workloads/common/sourced/nginx.sh
source "${0%/*}/../common/sourced/nginx.sh"

home=/data/cloudstone programs=/opt/strata/workloads/cloudstone
# The application's account, which may use nothing but its one schema; its password is made for every cell.
user=events schema=events secret=/data/password

# Whether web servers and databases are in systems of their own.  Usage: is_apart ROLES
is_apart() {
    [[ $1 == *,* ]]
}

# The options that the database server has when the data are made and when they are used.
# Usage: cell_options FOLDER BUFFER_BYTES LOG_BYTES; sets the array `options`.
cell_options() {
    database_options "$@"
    options+=(
        # The application is on the same system: it needs no network.
        --skip-networking
        # Every commit is on the disk before it is answered, in every environment.
        --innodb-flush-log-at-trx-commit=1
        --character-set-server=utf8mb4
        --collation-server=utf8mb4_general_ci
    )
}

data() {
    local made=$home/made table
    cell_options "$home/mysql" "$2" "$3"
    rm -rf -- "$home" /data/prepared
    mkdir -p "$home"
    python3 -B "$programs/data_set.py" "$made" "$1" "$4" >"$home/tables"
    begin_database "$home/mysql"
    ask_new --execute="CREATE DATABASE $schema"
    ask_new "$schema" <"$programs/schema.sql"
    for table in $(<"$home/tables"); do
        ask_new --local-infile "$schema" --execute="LOAD DATA LOCAL INFILE '$made/$table' INTO TABLE $table"
        # What is in a table is what was made.
        ask_new "$schema" --execute="SELECT * FROM $table" | sort | diff --brief - <(sort "$made/$table") >&2
    done
    ask_new "$schema" --execute="ANALYZE TABLE $(paste -sd , "$home/tables")"
    mv -- "$made/files" "$home/files"
    chown -R www-data: "$home/files"
    rm -rf -- "$made" "$home/tables"
    pack_database "$home"
}

prepare() {
    local ports others apart users number
    IFS=, read -ra ports <<<"$1"
    IFS=, read -ra others <<<"$2"
    IFS=, read -ra apart <<<"$5"
    if ((${#ports[@]} != ${#others[@]})) || { is_apart "$6" && ((${#ports[@]} != ${#apart[@]})); }; then
        echo "web_ports ($1), geocoder_ports ($2) and database_ports ($5) should name as many ports" >&2
        exit 1
    fi
    IFS=, read -ra users <<<"$3"
    for number in "${users[@]}"; do
        if ((number > $4)); then
            echo "users: $number are more than loaded_users ($4), for whom there are data" >&2
            exit 1
        fi
    done
    rm -rf -- "$home"
    for number in "${!ports[@]}"; do
        unpack_database "$home/$number"
        mkdir -p "$home/$number"/{sessions,geocoder,web}
        chown www-data: "$home/$number"/{sessions,geocoder,web}
    done
    # So that nothing of it is still to be written while something is measured.
    sync -f "$home"
}

# MariaDB, which in a system of its own listens at the address and the ports, else at sockets alone.
database() {
    IFS=, read -ra ports <<<"$1"
    buffer_bytes=$2 log_bytes=$3 address=$4 roles=$6 from=localhost
    IFS=, read -ra database_ports <<<"$5"
    ! is_apart "$roles" || from=%
    serve() {
        local folder=$home/$1/mysql
        cell_options "$folder" "$buffer_bytes" "$log_bytes"
        options+=(--max-connections=256 --table-open-cache=400)
        if is_apart "$roles"; then
            options+=(--skip-networking=OFF --skip-name-resolve --bind-address="$address" --port="${database_ports[$1]}")
        fi
        run_database "$folder" "$user" "$from" "$schema" "SELECT, INSERT, UPDATE, DELETE"
    }
    stand_each "${#ports[@]}" TERM
}

# Tomcat.
geocoder() {
    address=$1
    IFS=, read -ra ports <<<"$2"
    serve() {
        local folder=$home/$1/geocoder
        mkdir -p "$folder"/{conf,temp,webapps}
        chown www-data: "$folder/temp"
        cp "$programs/geocoder/server.xml" "$folder/conf"
        # Little is asked of it: a small heap, and a compiler that is quick rather than thorough.
        exec setpriv --reuid=www-data --regid=www-data --clear-groups -- \
            java -Xms64m -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.io.tmpdir="$folder/temp" \
            -Dgeocoder.address="$address" -Dgeocoder.port="${ports[$1]}" \
            -Dcatalina.home=/usr/share/tomcat10 -Dcatalina.base="$folder" \
            -cp /usr/share/tomcat10/bin/bootstrap.jar:/usr/share/tomcat10/bin/tomcat-juli.jar \
            org.apache.catalina.startup.Bootstrap start
    }
    stand_each "${#ports[@]}" TERM
}

# php-fpm, a pool for each instance.
php() {
    address=$1 database_address=$4 roles=$6
    IFS=, read -ra ports <<<"$2"
    IFS=, read -ra database_ports <<<"$5"
    program=$(compgen -G '/usr/sbin/php-fpm[0-9]*')
    export SITE_PROCESSES=$3 DATABASE_USER=$user DATABASE_PASSWORD PHP_INI_SCAN_DIR=''
    DATABASE_PASSWORD=$(<"$secret")
    serve() {
        local database=unix_socket=$home/$1/mysql/socket
        ! is_apart "$roles" || database="host=$database_address;port=${database_ports[$1]}"
        export DATABASE="mysql:$database;dbname=$schema;charset=utf8mb4" GEOCODER=http://$address:${ports[$1]}/geocode
        export SITE_FOLDER=$home/$1 FILES=$home/$1/files
        exec "$program" --nodaemonize --php-ini "$programs/app/php.ini" --fpm-config "$programs/app/fpm.conf"
    }
    stand_each "${#ports[@]}" TERM
}

# nginx.
web() {
    address=$1 workers=$3
    IFS=, read -ra ports <<<"$2"
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
}

ready() {
    local ports number
    IFS=, read -ra ports <<<"${!#}"
    for number in "${!ports[@]}"; do
        case $1 in
        database) mariadb-admin --no-defaults --skip-ssl --socket="$home/$number/mysql/socket" ping >/dev/null ;;
        php) [ -S "$home/$number/php" ] ;;
        http) answers "$3" "${ports[number]}" "$2" ;;
        esac
    done
}

"$@"

#!/bin/bash
# The shops' data, and their servers in the foreground, one for each shop.
# Usage: site.sh data SIZE SEED BUFFER_BYTES     makes the database that every shop of a cell starts with
#        site.sh prepare PORTS                   unpacks it for each shop, in place of what an earlier cell may have left
#        site.sh database PORTS BUFFER_BYTES
#        site.sh web ADDRESS PORTS USERS         a process for every user of the point with most of them, and four more
#        site.sh ready database PORTS | web ADDRESS PORTS
#                                                ends with 0 once all of them can be reached
# PORTS, those of the pages, and USERS, of each point, have commas between them.
set -euo pipefail

# shellcheck source=workloads/common/sourced/postgresql.sh
source "${0%/*}/../common/sourced/postgresql.sh"
# shellcheck source=workloads/common/sourced/stand.sh
source "${0%/*}/../common/sourced/stand.sh"

# A shop has its own folder, by its number from 0.
home=/data/dvdstore programs=/opt/strata/workloads/dvdstore

data() {
    make_database "$home/0" shop shop "$3" \
        "'$1', $2, :'rows', (SELECT count(*) FROM orders), sum(stock) FROM inventory" "$1" "$2"
}

prepare() {
    local ports shop
    IFS=, read -r -a ports <<<"$1"
    rm -rf -- "$home"
    for shop in "${!ports[@]}"; do
        unpack_database "$home/$shop" www-data
        mkdir "$home/$shop/web"
    done
    # So that nothing of it is still to be written while something is measured.
    sync -f "$home"
}

database() {
    IFS=, read -r -a ports <<<"$1"
    buffer_bytes=$2
    serve() {
        database_options "$home/$1" "$buffer_bytes" 200
        exec "${as_postgres[@]}" "$(postgres_programs)/postgres" "${options[@]}"
    }
    # Asked to end at once, without waiting for connections.
    stand_each "${#ports[@]}" INT
}

# Apache.  Nothing of the distribution's configuration of it counts; that of PHP does, but for what is said here.
web() {
    local users count most=0
    address=$1
    IFS=, read -r -a ports <<<"$2"
    IFS=, read -r -a users <<<"$3"
    for count in "${users[@]}"; do
        most=$((count > most ? count : most))
    done
    processes=$((most + 4))
    modules=/usr/lib/apache2/modules
    php=("$modules"/libphp*.so)
    key=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    # What the servers log and what is said here are one file, to which all append.
    exec >>/dev/stderr 2>&1
    serve() {
        local folder=$home/$1/web
        (
            umask 077
            cat >"$folder/apache.conf" <<END
ServerRoot $folder
ServerName shop
Listen $address:${ports[$1]}
PidFile $folder/pid
LoadModule mpm_prefork_module $modules/mod_mpm_prefork.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule mime_module $modules/mod_mime.so
LoadModule env_module $modules/mod_env.so
LoadModule php_module ${php[-1]}
User www-data
Group www-data
ErrorLog /dev/stderr
LogLevel warn
TypesConfig /etc/mime.types
DocumentRoot $programs/site
KeepAlive On
KeepAliveTimeout 300
MaxKeepAliveRequests 0
StartServers $processes
MinSpareServers 1
MaxSpareServers $processes
ServerLimit $processes
MaxRequestWorkers $processes
MaxConnectionsPerChild 0
SetEnv SHOP_DATABASE "host=$home/$1 dbname=shop user=shop"
SetEnv SHOP_KEY $key
<FilesMatch "\.php$">
    SetHandler application/x-httpd-php
</FilesMatch>
<FilesMatch "^shop\.php$">
    Require all denied
</FilesMatch>
php_admin_flag display_errors off
php_admin_flag log_errors on
php_admin_value error_reporting 32767
php_admin_flag pgsql.allow_persistent on
END
        )
        # In a session of its own: where it ends, it sends the signal to all of its group, not only to its children.
        exec setsid apache2 -f "$folder/apache.conf" -DFOREGROUND
    }
    stand_each "${#ports[@]}" TERM
}

ready() {
    local ports shop
    IFS=, read -r -a ports <<<"${!#}"
    for shop in "${!ports[@]}"; do
        case $1 in
        database) "${as_postgres[@]}" pg_isready --quiet --host="$home/$shop" --dbname=shop --username=shop ;;
        web) /opt/strata/bin/reach "$2" "${ports[shop]}" ;;
        esac
    done
}

"$@"

#!/bin/bash
# The application's processes (php-fpm), a pool for each instance, in the foreground.
# Usage: php.sh ADDRESS GEOCODER_PORTS CHILDREN DATABASE_ADDRESS DATABASE_PORTS ROLES
set -euo pipefail

# shellcheck source=workloads/cloudstone/common.sh
source "${0%/*}/common.sh"

address=$1
IFS=, read -ra ports <<<"$2"
processes=$3 database_address=$4 roles=$6
IFS=, read -ra database_ports <<<"$5"
program=$(compgen -G '/usr/sbin/php-fpm[0-9]*')

serve() {
    local folder=$home/$1 database=unix_socket=$home/$1/mysql/socket
    ! is_apart "$roles" || database="host=$database_address;port=${database_ports[$1]}"
    # What the distribution configures does not count; a session ends with the cell.
    cat >"$folder/php.ini" <<INI
zend_extension = opcache
extension = mysqlnd
extension = pdo
extension = pdo_mysql
extension = gd
opcache.validate_timestamps = 0
expose_php = 0
display_errors = 0
log_errors = 1
date.timezone = UTC
session.save_path = $folder/sessions
session.gc_probability = 0
post_max_size = 2M
upload_max_filesize = 1M
INI
    (
        umask 077
        cat >"$folder/fpm.conf" <<CONF
[global]
error_log = /proc/self/fd/2
[application]
user = www-data
group = www-data
listen = $folder/php
listen.owner = www-data
listen.backlog = 4096
pm = static
pm.max_children = $processes
env[DATABASE] = "mysql:$database;dbname=$schema;charset=utf8mb4"
env[DATABASE_USER] = $user
env[DATABASE_PASSWORD] = $(<"$secret")
env[GEOCODER] = http://$address:${ports[$1]}/geocode
env[FILES] = $folder/files
CONF
    )
    PHP_INI_SCAN_DIR='' exec "$program" --nodaemonize --php-ini "$folder/php.ini" --fpm-config "$folder/fpm.conf"
}

stand_each "${#ports[@]}" TERM

#!/bin/bash
# The web server of each shop, in the foreground.  Usage: web.sh ADDRESS PORT,PORT… USERS,USERS…
# There is a process for every user of the point with most of them, and four more.  Nothing of the distribution's
# configuration of Apache counts; that of PHP does, but for what is said here.
set -euo pipefail

# shellcheck source=workloads/dvdstore/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/stand.sh
source "${0%/*}/../common/sourced/stand.sh"

address=$1
IFS=, read -r -a ports <<<"$2"
IFS=, read -r -a users <<<"$3"
most=0
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
    local shop=$1 folder=$home/$1/web
    (
        umask 077
        cat >"$folder/apache.conf" <<END
ServerRoot $folder
ServerName shop
Listen $address:${ports[shop]}
PidFile $folder/pid
LoadModule mpm_prefork_module $modules/mod_mpm_prefork.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule mime_module $modules/mod_mime.so
LoadModule dir_module $modules/mod_dir.so
LoadModule env_module $modules/mod_env.so
LoadModule php_module ${php[-1]}
User www-data
Group www-data
ErrorLog /dev/stderr
LogLevel warn
TypesConfig /etc/mime.types
DocumentRoot ${0%/*}/site
DirectoryIndex index.php
KeepAlive On
KeepAliveTimeout 300
MaxKeepAliveRequests 0
StartServers $processes
MinSpareServers 1
MaxSpareServers $processes
ServerLimit $processes
MaxRequestWorkers $processes
MaxConnectionsPerChild 0
SetEnv SHOP_DATABASE "host=$home/$shop dbname=$database user=shop"
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

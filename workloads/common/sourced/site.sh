# shellcheck shell=bash
# Sourced by the scripts of web applications.  Each site has a folder in $home, named by the site's
# number from 0.  Lists, for example of a port for each site, have commas between their values.

# shellcheck source=workloads/common/sourced/supervise.sh
source "${BASH_SOURCE[0]%/*}/supervise.sh"

# The folders of the application's scripts and of its data.
# shellcheck disable=SC2034  # the sourcing scripts use it
programs=$(cd "${0%/*}" && pwd)
home=/data/${programs##*/}
# Stands before a command that runs as the web server's user.
# shellcheck disable=SC2034  # the sourcing scripts use it
as_web=(setpriv --reuid=www-data --regid=www-data --clear-groups --)

# Unpacks the data of each site, and makes folders that the web server's user may write to.  Removes
# all sites of an earlier cell first.  Uses `unpack_database` of mariadb.sh or postgresql.sh.
# Usage: prepare_sites COUNT FOLDER…
prepare_sites() {
    local number folder
    rm -rf -- "$home"
    for ((number = 0; number < $1; number++)); do
        unpack_database "$home/$number"
        for folder in "${@:2}"; do
            mkdir "$home/$number/$folder"
            chown www-data: "$home/$number/$folder"
        done
    done
    # Nothing is left to be written while a cell measures.
    sync -f "$home"
}

# Ends the script with a message if there are more users than the data are made for.
# Usage: require_data USERS MOST
require_data() {
    if (($1 > $2)); then
        echo "$1 users are more than the $2 users for whom data are made" >&2
        exit 1
    fi
}

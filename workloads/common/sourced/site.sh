# shellcheck shell=bash
# Sourced by the scripts of web applications: sites with a folder each, by number, in $home.  Lists,
# such as one of ports for each site, have commas between them.

# shellcheck source=workloads/common/sourced/stand.sh
source "${BASH_SOURCE[0]%/*}/stand.sh"

# shellcheck disable=SC2034  # of the sourcing scripts
programs=$(cd "${0%/*}" && pwd)
home=/data/${programs##*/}
# The command that runs another one as the web server's user.
# shellcheck disable=SC2034  # of the sourcing scripts
as_web=(setpriv --reuid=www-data --regid=www-data --clear-groups --)

# Unpacks the database of each site, in place of what an earlier cell may have left, and makes
# folders for the web server's user.  Usage: prepare_sites COUNT FOLDER…
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

# Refuses a number that is larger than one for which data are made.  Usage: require_data USERS MOST
require_data() {
    if (($1 > $2)); then
        echo "$1 users are more than the $2 for whom data are made" >&2
        exit 1
    fi
}

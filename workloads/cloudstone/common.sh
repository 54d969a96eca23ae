# shellcheck shell=bash
# Sourced by the other scripts: where things are, and how a server is run for each instance.

# shellcheck disable=SC2034  # the scripts that source this use them
home=/data/cloudstone programs=/opt/strata/workloads/cloudstone
# The application's account, which may use nothing but its one schema; its password is made for every cell.
user=events schema=events secret=/data/password

# shellcheck source=workloads/common/sourced/stand.sh
source "${BASH_SOURCE[0]%/*}/../common/sourced/stand.sh"

# Whether web servers and databases are in systems of their own.  Usage: is_apart ROLES
is_apart() {
    [[ $1 == *,* ]]
}

# Runs `serve NUMBER` for every instance, in the foreground.  Usage: serve_each COUNT
serve_each() {
    local number
    standing=()
    for ((number = 0; number < $1; number++)); do
        serve "$number" &
        standing+=($!)
    done
    stand TERM
}

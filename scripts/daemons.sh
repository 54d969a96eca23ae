# shellcheck shell=bash
# Functions for scripts that bring up daemons, which source this file after `set -euo pipefail`.
# A script defines two functions, which start_until_answering calls: `is_answering` succeeds if its
# daemon answers, and `start_service` starts the daemon, by start_daemon or by the service manager.

# The command that gives root's rights to another one.
root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)

# Ends the script if this user has no root's rights.
# Usage: require_root WHAT      (WHAT: what needs them, which begins the message)
require_root() {
    if ! "${root[@]}" true 2>/dev/null; then
        echo "$1: this needs root;" \
            "run it as root, or allow sudo without a password (docs/privileges.md)" >&2
        exit 1
    fi
}

# Ends a daemon that this project started, if the process in RECORD still is that program, and
# removes RECORD.  It gets SIGTERM; the function fails if it still runs after 10 s, and
# succeeds if no daemon runs.
# Usage: end_daemon NAME RECORD      (NAME: a name or a path; RECORD: the file with the process id)
end_daemon() {
    local name=$1 record=$2
    require_root "$name"
    "${root[@]}" start-stop-daemon --stop --oknodo --quiet --retry TERM/10 --pidfile "$record" \
        --name "$(basename "$name")" --remove-pidfile
}

# Starts a daemon as root, unless the process in RECORD runs.  It outlives this shell, and keeps
# neither the terminal nor lock files of it open.  It starts in the declared state, which systems
# under test inherit from it, and not in the state of the caller of this script.
# Usage: start_daemon NAME RECORD LOG ARGUMENT…      (see end_daemon; LOG: the file of its output)
start_daemon() {
    local name=$1 record=$2 log=$3 path=$PATH:/usr/sbin:/sbin state
    state=$(dirname "${BASH_SOURCE[0]}")/../strata/host/starting_state.py
    shift 3
    "${root[@]}" env PATH="$path" python3 -S "$state" \
        start-stop-daemon --start --oknodo --quiet --background --output "$log" \
        --make-pidfile --pidfile "$record" --name "$(basename "$name")" \
        --startas "$(PATH=$path type -P "$name")" -- "$@"
}

# Calls `start_service` every second until `is_answering` succeeds; fails after 30 s, multiplied by
# STRATA_PATIENCE if that is set.  A daemon may end again at once, since it finds files of one that
# was killed just before: so it is started more than once.
# Usage: start_until_answering WHAT LOG      (WHAT, LOG: the daemon's name and log for messages)
start_until_answering() {
    local what=$1 log=$2 limit=$((30 * ${STRATA_PATIENCE:-1})) attempt
    require_root "$what: no daemon answers, and one has to be started"
    echo "$what: no daemon answers; starting one" >&2
    for attempt in $(seq 0 $((5 * limit))); do
        if [ $((attempt % 5)) = 0 ]; then start_service; fi
        sleep 0.2
        if is_answering; then return 0; fi
    done
    echo "$what: no daemon answers after $limit s; see $log" >&2
    return 1
}

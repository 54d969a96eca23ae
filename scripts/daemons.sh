# shellcheck shell=bash
# Functions for scripts that bring up daemons, which source this file after `set -euo pipefail`.
# A script defines two functions: `answers` succeeds if its daemon answers, `begin` starts it.

# The command that gives root's rights to another one.
root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)

# Ends the script if this user has no root's rights, and says for WHAT they are needed.
need_root() {
    if ! "${root[@]}" true 2>/dev/null; then
        echo "$1: this needs root;" \
            "run it as root, or allow sudo without a password (docs/privileges.md)" >&2
        exit 1
    fi
}

# Ends the daemon NAME (a name or a path) that this project started: the process whose id is in the
# file RECORD, if it still is that program.
end() {
    need_root "$1"
    "${root[@]}" start-stop-daemon --stop --oknodo --quiet --retry TERM/10 --pidfile "$2" \
        --name "$(basename "$1")" --remove-pidfile
}

# Starts the daemon NAME (a name or a path) with further arguments, unless the process in the file
# RECORD runs.  Its output goes to the file LOG.  It outlives this shell, and keeps neither the
# terminal nor lock files of it open.  It starts in the declared state, which systems under test
# inherit from it, and not in that of whoever calls this script.
start() {
    local name=$1 record=$2 log=$3 path=$PATH:/usr/sbin:/sbin state
    state=$(dirname "${BASH_SOURCE[0]}")/../strata/host/starting_state.py
    shift 3
    "${root[@]}" env PATH="$path" python3 -S "$state" \
        start-stop-daemon --start --oknodo --quiet --background --output "$log" \
        --make-pidfile --pidfile "$record" --name "$(basename "$name")" \
        --startas "$(PATH=$path type -P "$name")" -- "$@"
}

# Calls `begin` every second until `answers` succeeds; fails after 30 s, times STRATA_PATIENCE, and
# names the daemon by WHAT.  A daemon may end again at once, since it finds files of one that was
# killed just before: so it is started more than once.
await() {
    local what=$1 log=$2 limit=$((30 * ${STRATA_PATIENCE:-1})) attempt
    need_root "$what: no daemon answers, and one has to be started"
    echo "$what: no daemon answers; starting one" >&2
    for attempt in $(seq 0 $((5 * limit))); do
        if [ $((attempt % 5)) = 0 ]; then begin; fi
        sleep 0.2
        if answers; then return 0; fi
    done
    echo "$what: no daemon answers after $limit s; see $log" >&2
    return 1
}

# shellcheck shell=bash
# What the scripts that bring up a daemon share.  Sourced by them, after `set -euo pipefail`.

# Prefix for what needs root.
root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)

# Ends the script where this user is not root, and sudo would ask for a password, or is missing.
need_root() {
    if ! "${root[@]}" true 2>/dev/null; then
        echo "$1: this needs root: run it as root, or allow sudo without a password (docs/privileges.md)" >&2
        exit 1
    fi
}

# Ends the daemon NAME that was started here, by its id in the file RECORD and only if that is still the same program.
end() {
    need_root "$1"
    "${root[@]}" start-stop-daemon --stop --oknodo --quiet --retry TERM/10 --pidfile "$2" --name "$1" --remove-pidfile
}

# Starts the daemon NAME, with what words follow, unless the one in RECORD runs.  It outlives this shell and holds
# neither its terminal nor its lock files; what it says goes to LOG.  What it hands on to systems under test is the
# declared state, and nothing of whoever runs this.
start() {
    local name=$1 record=$2 log=$3 path=$PATH:/usr/sbin:/sbin state
    state=$(dirname "${BASH_SOURCE[0]}")/../strata/host/starting_state.py
    shift 3
    "${root[@]}" env PATH="$path" python3 -S "$state" start-stop-daemon --start --oknodo --quiet --background --output "$log" \
        --make-pidfile --pidfile "$record" --name "$name" --startas "$(PATH=$path type -P "$name")" -- "$@"
}

# Calls the function `begin` until the function `answers` succeeds; says of WHAT and LOG that it does not, after 30 s
# (times what STRATA_PATIENCE says), and fails.  A daemon that has ended again meanwhile is thus started again: it may
# have found the files of one that was killed just before.
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

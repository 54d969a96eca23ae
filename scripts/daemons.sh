# shellcheck shell=bash
# What the scripts that bring up a daemon share.  Sourced by them, after `set -euo pipefail`.

# Prefix for what needs root.
root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)

# Ends the daemon NAME that was started here, by its id in the file RECORD and only if that is still the same program.
end() {
    local name=$1 record=$2 pid
    if [ -s "$record" ] && [ "$(cat "/proc/$(cat "$record")/comm" 2>/dev/null)" = "$name" ]; then
        pid=$(cat "$record")
        "${root[@]}" kill "$pid"
        for _ in $(seq 100); do
            [ -d "/proc/$pid" ] || break
            sleep 0.1
        done
    fi
    "${root[@]}" rm -f -- "$record"
}

# Starts the daemon NAME, with what words follow, and notes its id in RECORD.  It outlives this shell and holds neither
# its terminal nor its lock files; what it says goes to LOG.
start() {
    local name=$1 record=$2 log=$3
    shift 3
    # shellcheck disable=SC2016  # the inner shell's own variables
    "${root[@]}" env PATH="$PATH:/usr/sbin:/sbin" sh -c '
        mkdir -p "$(dirname "$2")"
        name=$1 record=$2 log=$3
        shift 3
        setsid nohup "$name" "$@" >>"$log" 2>&1 </dev/null & echo $! >"$record"
    ' sh "$name" "$record" "$log" "$@"
}

# Waits until the function `answers` succeeds; says of WHAT and LOG that it does not, after 30 s (times what
# STRATA_PATIENCE says), and fails.
# A daemon NAME with a RECORD that has ended again meanwhile is started again, with what words follow: it may have found
# the files of one that was killed just before.
await() {
    local what=$1 log=$2 name=${3:-} record=${4:-} attempt limit
    shift $(($# < 4 ? $# : 4))
    limit=$((30 * ${STRATA_PATIENCE:-1}))
    for attempt in $(seq $((5 * limit))); do
        if answers; then
            return 0
        fi
        sleep 0.2
        if [ $((attempt % 5)) = 0 ] && [ -s "$record" ] &&
            [ "$(cat "/proc/$(cat "$record")/comm" 2>/dev/null)" != "$name" ]; then
            start "$name" "$record" "$log" "$@"
        fi
    done
    echo "$what: no daemon answers after $limit s; see $log" >&2
    return 1
}

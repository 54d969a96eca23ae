# shellcheck shell=bash
# Sourced by scripts that run several servers in the foreground.

# Whether all of these processes run: `wait -n` does not see one that ended before.
# Usage: all_run PROCESS…
all_run() {
    local one
    for one in "$@"; do
        kill -0 "$one" 2>/dev/null || return 1
    done
}

# Waits for the processes in the array `standing` until SIGTERM, ends them by a signal, which each
# gets once, and exits with 0 if all of them ended well.  If one ends by itself, so do the others.
# Usage: stand SIGNAL
stand() {
    local signal=$1 by_signal asked='' code worst=0 process
    by_signal=$((128 + $(kill -l "$1")))
    # shellcheck disable=SC2154  # of the caller
    trap 'asked=yes; kill -s "$signal" "${standing[@]}" 2>/dev/null || true' TERM
    if all_run "${standing[@]}"; then wait -n "${standing[@]}" || true; fi
    trap '' TERM
    if [ -z "$asked" ]; then
        echo "ERROR: a server ended by itself" >&2
        worst=1
        kill -s "$signal" "${standing[@]}" 2>/dev/null || true
    fi
    for process in "${standing[@]}"; do
        # A program that ends by the signal itself has been asked to as well.
        code=0
        wait "$process" || code=$?
        [ "$code" = 0 ] || [ "$code" = "$by_signal" ] || worst=$code
    done
    exit "$worst"
}

# Runs `serve NUMBER`, from 0, for each of several servers, as above.
# Usage: stand_each COUNT SIGNAL
stand_each() {
    local number
    standing=()
    for ((number = 0; number < $1; number++)); do
        serve "$number" &
        standing+=($!)
    done
    stand "$2"
}

# Allows programs that are started from here as many open files as possible, up to 65536.
allow_files() {
    ulimit -S -n 65536 2>/dev/null || ulimit -S -n "$(ulimit -H -n)"
}

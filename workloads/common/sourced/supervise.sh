# shellcheck shell=bash
# Sourced by scripts that run several servers in the foreground.

# Succeeds if all of these processes run: `wait -n` misses one that ended before.
# Usage: are_all_running PROCESS…
are_all_running() {
    local process
    for process in "$@"; do
        kill -0 "$process" 2>/dev/null || return 1
    done
}

# Waits for the processes in the array `servers` until SIGTERM, ends each of them by one signal, and
# exits with 0 if all of them ended well.  If one ends by itself, the others are ended, and the
# script fails.  A process that ends by the signal itself has ended well.
# Strata ends a server by SIGTERM, and compares the status with `exits` of workload.yaml.
# Usage: supervise SIGNAL
supervise() {
    local signal=$1 code_of_signal terminated='' code worst=0 process
    code_of_signal=$((128 + $(kill -l "$1")))
    # shellcheck disable=SC2154  # the caller sets `servers`
    trap 'terminated=yes; kill -s "$signal" "${servers[@]}" 2>/dev/null || true' TERM
    # A signal ends `wait -n` early; the trap has set `terminated` then.
    if are_all_running "${servers[@]}"; then wait -n "${servers[@]}" || true; fi
    trap '' TERM
    if [ -z "$terminated" ]; then
        echo "ERROR: a server ended by itself" >&2
        worst=1
        kill -s "$signal" "${servers[@]}" 2>/dev/null || true
    fi
    for process in "${servers[@]}"; do
        code=0
        wait "$process" || code=$?
        [ "$code" = 0 ] || [ "$code" = "$code_of_signal" ] || worst=$code
    done
    exit "$worst"
}

# Runs the caller's function `serve NUMBER` in a process for each number from 0; supervises them.
# It does not return: see supervise.
# Usage: supervise_each COUNT SIGNAL
supervise_each() {
    local number
    servers=()
    for ((number = 0; number < $1; number++)); do
        serve "$number" &
        servers+=($!)
    done
    supervise "$2"
}

# Raises the limit of open files to 65536, or as far as allowed, for this script and the programs
# that it starts.
raise_file_limit() {
    ulimit -S -n 65536 2>/dev/null || ulimit -S -n "$(ulimit -H -n)"
}

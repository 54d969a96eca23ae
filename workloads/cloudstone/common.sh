# shellcheck shell=bash
# Sourced by the other scripts: where things are, and how a server is run for each instance.

# shellcheck disable=SC2034  # the scripts that source this use them
home=/data/cloudstone programs=/opt/strata/workloads/cloudstone
# The application's account, which may use nothing but its one schema; its password is made for every cell.
user=events schema=events secret=/data/password

# Runs `serve NUMBER` for every instance, in the foreground, until they are asked to end (SIGTERM) or one ends by
# itself, which is an error.  Usage: serve_each COUNT
serve_each() {
    local children=() number code=0 asked=
    trap 'asked=yes; kill -TERM "${children[@]}" 2>/dev/null || true' TERM
    for ((number = 0; number < $1; number++)); do
        serve "$number" &
        children+=($!)
    done
    wait -n || true
    if [ -z "$asked" ]; then
        echo "ERROR: one of $1 instances ended by itself" >&2
        code=1
    fi
    # Again where one missed it, as a shell does that is about to become the server.
    while kill -TERM "${children[@]}" 2>/dev/null; do
        sleep 1
    done
    for number in "${children[@]}"; do
        # A program that ends by the signal itself has been asked to as well.
        wait "$number" || [ $? = 143 ] || code=1
    done
    exit "$code"
}

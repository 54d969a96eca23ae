#!/bin/bash
# Controls a server that outlives the command that starts it.
#   serve start NAME PROGRAM...   starts it, and keeps its output in a file
#   serve state NAME              prints "running", its exit code, or that it printed too much
#   serve end NAME SECONDS        sends SIGTERM; prints its exit code, or "killed" after the time
#   serve output NAME             prints its output
# strata/measure/servers.py calls it, and reads what it prints.
set -euo pipefail

folder=/tmp/strata-servers
# MiB of output that are kept.  A server that prints more gets a broken pipe; most end by it.
most=16
action=$1 name=$2
shift 2
base=$folder/$name

case $action in
start)
    mkdir -p "$folder"
    rm -f -- "$base".*
    # shellcheck disable=SC2016  # the inner shell expands its own variables
    setsid bash -c '
        base=$1 most=$2
        shift 2
        exec 3> >(
            ulimit -f "$((most * 1024))"
            cat >"$base.output" 2>/dev/null || touch "$base.long"
        )
        reader=$!
        "$@" </dev/null >&3 2>&1 3>&- &
        exec 3>&-
        echo $$ >"$base.session"
        echo $! >"$base.process"
        code=0
        wait $! || code=$?
        # Children of the server may still print.
        for _ in $(seq 20); do
            kill -0 "$reader" 2>/dev/null || break
            sleep 0.05
        done
        echo "$code" >"$base.exit.new"
        mv "$base.exit.new" "$base.exit"
    ' serve "$base" "$most" "$@" </dev/null >/dev/null 2>&1 &
    until [ -s "$base.process" ]; do
        sleep 0.01
    done
    ;;
state)
    if [ -e "$base.long" ]; then
        echo "printed more than $most MiB"
    elif [ -s "$base.exit" ]; then
        cat "$base.exit"
    else
        echo running
    fi
    ;;
end)
    kill -TERM "$(cat "$base.process")" 2>/dev/null || true
    for _ in $(seq $(($1 * 20))); do
        [ ! -s "$base.exit" ] || break
        sleep 0.05
    done
    outcome=killed
    [ ! -s "$base.exit" ] || outcome=$(cat "$base.exit")
    # The whole session ends, with children that the server left behind.
    kill -KILL -- "-$(cat "$base.session")" 2>/dev/null || true
    echo "$outcome"
    ;;
output)
    cat "$base.output"
    ;;
*)
    echo "serve: unknown action '$action'; use start, state, end or output" >&2
    exit 2
    ;;
esac

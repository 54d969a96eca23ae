#!/bin/bash
# A server that outlives the command that starts it.  The machinery asks:
#   serve start NAME PROGRAM...   start it, its output kept apart
#   serve state NAME              running, its exit code, or that it printed too much
#   serve end NAME SECONDS        ask it to end (SIGTERM); its exit code then, or "killed" where it had to be
#   serve output NAME             what it printed
set -euo pipefail

folder=/tmp/strata-servers
# How much of its output is kept.  What it prints then goes nowhere, and most servers end by that.
most=16
form=$1 name=$2
shift 2
base=$folder/$name

case $form in
start)
    mkdir -p "$folder"
    rm -f -- "$base".*
    # shellcheck disable=SC2016  # the inner shell's own variables
    setsid bash -c '
        base=$1 most=$2
        shift 2
        exec 3> >(ulimit -f "$((most * 1024))"; cat >"$base.output" 2>/dev/null || touch "$base.long")
        reader=$!
        "$@" </dev/null >&3 2>&1 3>&- &
        exec 3>&-
        echo $$ >"$base.session"
        echo $! >"$base.process"
        code=0
        wait $! || code=$?
        # A child that it left behind may print on.
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
    word=killed
    [ ! -s "$base.exit" ] || word=$(cat "$base.exit")
    # Its session is ended as a whole: children that it left behind go with it.
    kill -KILL -- "-$(cat "$base.session")" 2>/dev/null || true
    echo "$word"
    ;;
output)
    cat "$base.output"
    ;;
*)
    echo "serve: unknown form $form" >&2
    exit 2
    ;;
esac

#!/bin/sh
# Runs a command line RUNS times.  Its words are split as in a shell; further words precede them.
# Usage: measure.sh RUNS LIMIT KEPT COMMAND [WORD...] (timed.c explains the arguments)
# It runs in /data/work; in an image that starts programs in a folder of its own, only if given
# files lie in /data/work.
set -eu

runs=$1 limit=$2 kept=$3 command=$4
shift 4
# A warm-up may have no runs: then nothing is printed.
[ "$runs" -gt 0 ] || exit 0
folder=/data/work
if [ "$(pwd)" != / ] && [ -z "$(ls -A "$folder")" ]; then
    folder=.
fi
eval "set -- \"\$@\" $command"
exec "${0%/*}/timed" "$folder" "$runs" "$limit" "$kept" "$@"

#!/bin/sh
# Runs a command line RUNS times in /data/work.  Its words are split as in a shell.
# Usage: measure.sh RUNS LIMIT KEPT COMMAND (timed.c explains the arguments)
set -eu

runs=$1 limit=$2 kept=$3 command=$4
[ "$runs" -gt 0 ] || exit 0
eval "set -- $command"
exec "${0%/*}/timed" /data/work "$runs" "$limit" "$kept" "$@"

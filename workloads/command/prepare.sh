#!/bin/sh
# Makes the folder in which the command runs, with the files of a tar archive if there is one.
# Usage: prepare.sh [ARCHIVE SHA1]
set -eu

archive=$1 sha1=$2
mkdir -p /data/work
[ -n "$archive" ] || exit 0
digest=$(sha1sum <"$archive")
if [ "${digest%% *}" != "$sha1" ]; then
    echo "the archive of the files has SHA-1 ${digest%% *}, not $sha1: run \`strata try\` again"
    exit 1
fi
tar -C /data/work -xf "$archive"
rm -- "$archive"

#!/bin/bash
# Lays out the text to compress: the one given in the config, or the dictionary of
# Debian's dict-gcide (40 MB of English prose) repeated to BYTES.
# Usage: prepare.sh OUTPUT BYTES [FILE SHA1]
set -euo pipefail

output=$1 bytes=$2 file=${3:-} sha1=${4:-}
dictionary=/usr/share/dictd/gcide.dict.dz

fail() {
    echo "$1" >&2
    exit 1
}

# Writes the first BYTES of what a command prints, and no more than that is asked of it.
# Usage: first COMMAND
first() {
    local status=0
    "$1" > >(head -c "$bytes" >"$output") || status=$?
    wait "$!" || fail "the corpus could not be written: is the disk full?"
    # Only a command that was cut off may end badly.
    [ "$status" -eq 0 ] || [ "$(wc -c <"$output")" -eq "$bytes" ] || fail "the corpus could not be read"
}

unpack() {
    gzip -dc <"$dictionary"
}

again() {
    while cat -- "$output.once"; do :; done
}

if [ -n "$file" ]; then
    found=$(sha1sum <"$file")
    [ "${found%% *}" = "$sha1" ] || fail "the corpus has SHA-1 ${found%% *}, not $sha1"
    mv -- "$file" "$output"
else
    first unpack
    [ -s "$output" ] || fail "the corpus is empty: $dictionary holds no text"
    if [ "$(wc -c <"$output")" -lt "$bytes" ]; then
        mv -- "$output" "$output.once"
        first again
        rm -- "$output.once"
    fi
fi
size=$(wc -c <"$output")
if [ -z "$file" ] && [ "$size" -ne "$bytes" ]; then
    fail "the corpus has $size bytes, not $bytes: is the disk full?"
fi
found=$(sha256sum <"$output")
printf '{"corpus": "%s", "bytes": %d, "sha256": "%s"}\n' "${file:+given}${file:-gcide}" "$size" "${found%% *}"

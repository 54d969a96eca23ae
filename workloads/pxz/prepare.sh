#!/bin/bash
# Writes the text to compress: a FILE with the right SHA1, or else the dictionary of Debian's
# dict-gcide (40 MB of English prose), repeated until there are BYTES.
# Usage: prepare.sh OUTPUT BYTES [FILE SHA1]
set -euo pipefail

output=$1 bytes=$2 file=${3:-} sha1=${4:-}
dictionary=/usr/share/dictd/gcide.dict.dz

# Ends the script with a message, which the failed cell's log holds.  Usage: fail MESSAGE
fail() {
    echo "$1" >&2
    exit 1
}

# Writes the first BYTES of a command's output to OUTPUT, or all if they are fewer; the command is
# cut off after them.  COMMAND: without arguments, such as a function of this script.
# Usage: write_first COMMAND
write_first() {
    local status=0
    "$1" > >(head -c "$bytes" >"$output") || status=$?
    wait "$!" || fail "the corpus could not be written: is the disk full?"
    # Only a command that was cut off may fail.
    if [ "$status" -ne 0 ] && [ "$(wc -c <"$output")" -ne "$bytes" ]; then
        fail "the corpus could not be read"
    fi
}

# Prints the dictionary.
unpack_dictionary() {
    gzip -dc <"$dictionary"
}

# Prints the dictionary's text again and again; without end, since write_first cuts it off.
repeat_text() {
    while cat -- "$output.once"; do :; done
}

if [ -n "$file" ]; then
    digest=$(sha1sum <"$file")
    [ "${digest%% *}" = "$sha1" ] || fail "the corpus has SHA-1 ${digest%% *}, not $sha1"
    mv -- "$file" "$output"
else
    write_first unpack_dictionary
    [ -s "$output" ] || fail "the corpus is empty: $dictionary holds no text"
    if [ "$(wc -c <"$output")" -lt "$bytes" ]; then
        mv -- "$output" "$output.once"
        write_first repeat_text
        rm -- "$output.once"
    fi
fi
size=$(wc -c <"$output")
if [ -z "$file" ] && [ "$size" -ne "$bytes" ]; then
    fail "the corpus has $size bytes, not $bytes: is the disk full?"
fi
digest=$(sha256sum <"$output")
printf '{"corpus": "%s", "bytes": %d, "sha256": "%s"}\n' \
    "${file:+given}${file:-gcide}" "$size" "${digest%% *}"

#!/bin/bash
# Lays out the text to compress: the one given in the config, or the dictionary of
# Debian's dict-gcide (40 MB of English prose) repeated to BYTES.
# Usage: prepare.sh OUTPUT BYTES [FILE SHA1]
set -euo pipefail

output=$1 bytes=$2 file=${3:-} sha1=${4:-}
if [ -n "$file" ]; then
    found=$(sha1sum <"$file")
    if [ "${found%% *}" != "$sha1" ]; then
        echo "the corpus has SHA-1 ${found%% *}, not $sha1" >&2
        exit 1
    fi
    mv -- "$file" "$output"
else
    # Of a corpus that is shorter no more is unpacked than that.
    { gzip -dc </usr/share/dictd/gcide.dict.dz 2>/dev/null || true; } | head -c "$bytes" >"$output"
    once=$(stat -c %s -- "$output")
    if [ "$once" -gt 0 ] && [ "$once" -lt "$bytes" ]; then
        mv -- "$output" "$output.once"
        while cat -- "$output.once"; do :; done 2>/dev/null | head -c "$bytes" >"$output" || true
        rm -- "$output.once"
    fi
fi
size=$(stat -c %s -- "$output")
if [ -z "$file" ] && [ "$size" -ne "$bytes" ]; then
    echo "the corpus has $size bytes, not $bytes: is the disk full?" >&2
    exit 1
fi
found=$(sha256sum <"$output")
printf '{"corpus": "%s", "bytes": %d, "sha256": "%s"}\n' "${file:+given}${file:-gcide}" "$size" "${found%% *}"

#!/bin/bash
# Compresses FILE by parallel xz, with the text in the page cache, and discards the result.
# Usage: measure.sh warmup|run FILE THREADS LEVEL MIN_SECONDS [BLOCK_BYTES]
# The warm-up reads the file into the cache, and proves that decompression restores it.  A run
# repeats the compression for at least MIN_SECONDS.  Prints one JSON object a line, whose keys
# parse.py reads.
set -euo pipefail

mode=$1 file=$2 threads=$3 level=$4 min_seconds=$5 block_bytes=${6:-}
compress=(xz "-$level" "-T$threads" ${block_bytes:+"--block-size=$block_bytes"} -kc -- "$file")
# Not by stat, whose system call some sandboxes lack.
bytes=$(wc -c <"$file")

if [ "$mode" = warmup ]; then
    before=$(sha256sum <"$file")
    after=$("${compress[@]}" | xz -dc | sha256sum)
    if [ "$before" != "$after" ]; then
        echo '{"round_trip": false}'
        exit 1
    fi
    echo '{"round_trip": true}'
    exit 0
fi

version=$(xz --version | head -n 1)
printf '{"tool": "%s", "threads": %d, "level": %d, "bytes": %d, "block_bytes": %s}\n' \
    "$version" "$threads" "$level" "$bytes" "${block_bytes:-null}"
limit=$(awk -v s="$min_seconds" 'BEGIN {printf "%d", s * 1e6}')
total=0 pass=0
while [ "$pass" -eq 0 ] || [ "$total" -lt "$limit" ]; do
    start=${EPOCHREALTIME/[.,]/}
    "${compress[@]}" >/dev/null
    end=${EPOCHREALTIME/[.,]/}
    pass=$((pass + 1)) total=$((total + end - start))
    printf '{"pass": %d, "microseconds": %d, "ended": %d}\n' "$pass" $((end - start)) "$end"
done
printf '{"passes": %d, "bytes_of_all": %d, "microseconds_of_all": %d}\n{"done": true}\n' \
    "$pass" $((bytes * pass)) "$total"

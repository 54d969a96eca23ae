#!/bin/bash
# Writes the file that all jobs read and write: once from start to end, with random data that no
# layer below can compress or deduplicate.  Refuses a file system without enough space, in memory,
# or without O_DIRECT.
# Usage: layout.sh FILE BYTES SEED      (prints an object "layout", which parse.py reads)
set -euo pipefail

file=$1 bytes=$2 seed=$3
folder=$(dirname -- "$file")
spare=$((64 * 1024 * 1024)) # the file system is never filled to its last block

# Removes the file, and ends the script with a message, which the failed cell's log holds.
# Usage: refuse WORD…
refuse() {
    rm -f -- "$file"
    echo "fio: $*" >&2
    exit 1
}

rm -f -- "$file"
type=$(df --output=fstype -- "$folder" | tail -n 1)
if [ "$type" = - ]; then # a chroot may hide the mounts
    type=$(stat --file-system --format %T -- "$folder")
fi
place="$folder (file system $type)"
free=$(df --block-size=1 --output=avail -- "$folder" | tail -n 1)
if [ "$free" -lt $((bytes + spare)) ]; then
    refuse "not enough space on $place: the test file takes $bytes bytes, with the reserve" \
        "$((bytes + spare)) are needed, and ${free// /} are free; make room, or set a smaller" \
        "file (workloads.fio.bytes in config.yaml)"
fi
case $type in
tmpfs | ramfs)
    refuse "$place lies in memory, where O_DIRECT says nothing about a disk; the test file must" \
        "lie on a disk"
    ;;
esac
if ! reason=$(dd if=/dev/zero of="$file" bs=4096 count=1 oflag=direct 2>&1); then
    refuse "$place does not take O_DIRECT, which jobs use: $(head -n 1 <<<"$reason")"
fi
rm -- "$file"

if ! output=$(fio --name=layout --filename="$file" --size="$bytes" --rw=write --bs=1048576 \
    --ioengine=libaio --iodepth=16 --direct=1 --refill_buffers=1 --randseed="$seed" \
    --fallocate=native --end_fsync=1 --eta=never 2>&1); then
    printf '%s\n' "$output"
    noise=(-e '^ ' -e '^$' -e '^fio-' -e '^layout: ' -e '^Starting ')
    refuse "the test file could not be written on $place:" \
        "$(grep -v "${noise[@]}" <<<"$output" | head -n 1)"
fi
size=$(wc -c <"$file")
[ "$size" -eq "$bytes" ] || refuse "the test file has $size bytes, not $bytes"
printf '{"layout": "%s", "bytes": %d, "seed": %d, "file_system": "%s", "tool": "%s"}\n' \
    "$file" "$bytes" "$seed" "$type" "$(fio --version)"

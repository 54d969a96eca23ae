#!/bin/bash
# Writes the file that all jobs read and write: once from start to end, with random data that nothing below can
# compress or find twice.  Refuses where there is not the space, or where O_DIRECT is not what it says.
# Usage: layout.sh FILE BYTES SEED
set -euo pipefail

file=$1 bytes=$2 seed=$3
folder=$(dirname -- "$file")
spare=$((64 * 1024 * 1024)) # so that the file system is not filled to its last block

refuse() {
    rm -f -- "$file"
    echo "fio: $*" >&2
    exit 1
}

rm -f -- "$file"
type=$(df --output=fstype -- "$folder" | tail -n 1)
if [ "$type" = - ]; then # where the mounts are not all to be seen, as in a chroot
    type=$(stat --file-system --format %T -- "$folder")
fi
place="$folder (file system $type)"
free=$(df --block-size=1 --output=avail -- "$folder" | tail -n 1)
if [ "$free" -lt $((bytes + spare)) ]; then
    refuse "not enough space on $place: the test file takes $bytes bytes, with what is to stay free" \
        "$((bytes + spare)) are needed, and ${free// /} are free; make room, or set a smaller file" \
        "(workloads.fio.bytes in config.yaml)"
fi
case $type in
tmpfs | ramfs)
    refuse "$place lies in memory, where O_DIRECT says nothing about a disk; the test file must lie on a disk"
    ;;
esac
if ! trouble=$(dd if=/dev/zero of="$file" bs=4096 count=1 oflag=direct 2>&1); then
    refuse "$place does not take O_DIRECT, which every job uses: $(head -n 1 <<<"$trouble")"
fi
rm -- "$file"

if ! said=$(fio --name=layout --filename="$file" --size="$bytes" --rw=write --bs=1048576 --ioengine=libaio --iodepth=16 \
    --direct=1 --refill_buffers=1 --randseed="$seed" --fallocate=native --end_fsync=1 --eta=never 2>&1); then
    printf '%s\n' "$said"
    refuse "the test file could not be written on $place:" \
        "$(grep -v -e '^ ' -e '^$' -e '^fio-' -e '^layout: ' -e '^Starting ' <<<"$said" | head -n 1)"
fi
found=$(wc -c <"$file")
[ "$found" -eq "$bytes" ] || refuse "the test file has $found bytes, not $bytes"
printf '{"layout": "%s", "bytes": %d, "seed": %d, "file_system": "%s", "tool": "%s"}\n' \
    "$file" "$bytes" "$seed" "$type" "$(fio --version)"

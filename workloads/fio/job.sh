#!/bin/bash
# Runs one job on the file that layout.sh wrote: a ramp, which fio does not count, and then the time
# that counts.
# Usage: job.sh JOB FILE BYTES SECONDS RAMP_SECONDS SEED
# Prints a line of JSON, fio's own JSON, and another line.  parse.py compares fio's options with its
# list of the jobs (JOBS), which must have those of this script.
set -euo pipefail

job=$1 file=$2 bytes=$3 seconds=$4 ramp=$5 seed=$6
mib=1048576 engine=(--ioengine=libaio --direct=1)
case $job in
sequential-fill) rw=write block=$mib depth=16 threads=1 ;;
seq-read-1) rw=read block=$mib depth=1 threads=1 ;;
seq-read-2) rw=read block=$mib depth=2 threads=1 ;;
random-write-16) rw=randwrite block=4096 depth=16 threads=1 ;;
random-write-16x8) rw=randwrite block=4096 depth=16 threads=8 ;;
random-read-16) rw=randread block=4096 depth=16 threads=1 ;;
random-read-16x8) rw=randread block=4096 depth=16 threads=8 ;;
mixed-random-rw-32x8) rw=randrw block=4096 depth=32 threads=8 ;;
fsync)
    # As a database writes its log: through the page cache, and to the disk before it goes on.
    rw=write block=4096 depth=1 threads=1 engine=(--ioengine=psync --direct=0 --fsync=1)
    ;;
*)
    echo "fio: there is no job '$job'; the jobs are listed in workloads/fio/job.sh" >&2
    exit 1
    ;;
esac
options=(--filename="$file" --size="$bytes" --rw="$rw" --bs="$block" --iodepth="$depth"
    --numjobs="$threads" "${engine[@]}" --thread=1 --group_reporting=1 --time_based=1
    --randseed="$seed")
if [ "$rw" = randrw ]; then
    options+=(--rwmixread=70)
fi

# Prints seconds in whole milliseconds, for example 500ms: fio takes whole numbers of a unit, and
# parse.py expects this form among fio's options.  Usage: in_ms SECONDS
in_ms() { awk -v s="$1" 'BEGIN {printf "%.0fms", 1000 * s}'; }

options+=(--runtime="$(in_ms "$seconds")" --ramp_time="$(in_ms "$ramp")")
# The same clock everywhere (fio would choose it by the processor), no new file, and no counters of
# the disk, which a container or a chroot may hide.
options+=(--clocksource=clock_gettime --allow_file_create=0 --disk_util=0)

printf '{"point": "%s", "tool": "%s", "bytes": %d, ' "$job" "$(fio --version)" "$bytes"
printf '"seconds": %s, "ramp_seconds": %s, "seed": %d}\n' "$seconds" "$ramp" "$seed"
fio --name="$job" "${options[@]}" --output-format=json+ --eta=never
printf '{"end": "%s"}\n' "$job"

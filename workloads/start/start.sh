#!/bin/bash
# Runs start.py in a mount namespace whose root is the present one, with a new /run and the host's
# runsc: sandboxes cannot change their root in a changed root.  Its mounts end with its processes.
set -euo pipefail

# shellcheck disable=SC2016
mounts='mount --make-rprivate /
cd -P /proc/self/fd/3
mount --rbind /sys/fs/cgroup sys/fs/cgroup
# Beside version 1, version 2 has no controllers of use, and crun refuses it.
[ ! -d sys/fs/cgroup/unified ] || umount sys/fs/cgroup/unified
mount -t tmpfs tmpfs run
! runsc=$(type -P runsc) || { touch run/gvisor && mount --bind "$runsc" run/gvisor; }
pivot_root . .
umount -l .
exec chroot . "$@"'
# Entering a namespace, even one of its own, leads a process to its root.
exec unshare --mount bash -euc 'exec 3</; exec nsenter --mount=/proc/self/ns/mnt bash -euc "$@"' \
    bash "$mounts" bash "${0%/*}/start.py" "$@"

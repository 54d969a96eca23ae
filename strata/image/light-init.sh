#!/bin/busybox sh
# shellcheck shell=dash
# The first program of a light machine: its root disk, devices and network, and the way in by ssh.  Each step that fails
# ends it, which the kernel tells on the console as a panic.
set -eu

# What the kernel's command line says of a word.
said() {
    for word in $($box cat /proc/cmdline); do
        case $word in "$1="*) echo "${word#*=}" ;; esac
    done
}

first() {
    box=/bin/busybox
    $box mount -t proc proc /proc
    $box mount -t sysfs sys /sys
    $box mount -t devtmpfs dev /dev
    # Their names begin with their places in the order.
    for module in /modules/*; do
        $box insmod "$module"
    done
    $box mount -t ext4 "$($box findfs "LABEL=$(said strata.root)")" /root
    $box mount -t tmpfs -o mode=0755,nosuid,nodev run /root/run
    $box mkdir -m 0755 /root/run/strata /root/run/sshd
    $box cp -p /init /bin/busybox /keys/* /root/run/strata/
    for folder in proc sys dev; do
        $box mount --move "/$folder" "/root/$folder"
    done
    exec $box switch_root /root /run/strata/busybox sh /run/strata/init second
}

second() {
    box=/run/strata/busybox
    $box mkdir /dev/pts /dev/shm
    $box mount -t devpts -o gid=5,mode=0620,ptmxmode=0666 devpts /dev/pts
    $box mount -t tmpfs -o mode=1777,nosuid,nodev shm /dev/shm
    $box ln -s /proc/self/fd /dev/fd
    for number in 0:stdin 1:stdout 2:stderr; do
        $box ln -s "/proc/self/fd/${number%:*}" "/dev/${number#*:}"
    done
    $box mount -t cgroup2 -o nosuid,nodev,noexec cgroup /sys/fs/cgroup
    $box mkdir /sys/fs/cgroup/strata
    $box hostname strata
    echo 127.0.0.1 localhost strata >/etc/hosts
    # What a service manager would set: the distribution's own choices, and how many files a process may open.
    /usr/lib/systemd/systemd-sysctl || true
    ulimit -n 524288
    ulimit -S -n 1024
    $box ip link set lo up
    $box ip address add "$(said strata.address)/24" dev eth0
    $box ip link set eth0 up
    # The host learns at once that somebody is there.
    $box ping -c 1 -W 1 "$(said strata.host)" >/dev/null 2>&1 &
    (
        # What is run in the machine is found by this group; 0 is the process that writes.
        echo 0 >/sys/fs/cgroup/strata/cgroup.procs
        exec /usr/sbin/sshd -D -e -h /run/strata/host_key -o AuthorizedKeysFile=/run/strata/key.pub
    ) &
    # What lost its parent ends here; without ssh the machine ends too.
    wait
}

if [ "${1:-}" = second ]; then second; else first; fi

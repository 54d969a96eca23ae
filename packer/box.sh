#!/bin/bash
# Makes a box for Vagrant of the container image's files, as root: a disk with these files, and
# kernel, initrd and keys in the same folder, where strata/vm/ and vagrant/Vagrantfile find them by
# their names.  Nothing is booted and nothing compiled.
# Usage: box.sh TREE IMAGE BOX
#   TREE   the image's files
#   IMAGE  the container image (docker save) that Docker in the machine gets into its store
#   BOX    the folder that is made
set -euo pipefail

tree=$1 archive=$2 box=$3
root=$box/root
mkdir -p "$box"
cp -a "$tree" "$root"
rm -rf "${root:?}"/dev/*

# The image's own daemon fills Docker's store.  It runs in namespaces that end with it: outside of a
# network namespace it would take the host daemon's bridge away.
# shellcheck disable=SC2016  # the inner shell's own variables
unshare --mount --net --pid --fork --kill-child bash -euc '
    root=$1 archive=$2
    mount --bind "$root" "$root"
    for name in sys dev; do
        mount --rbind "/$name" "$root/$name"
        mount --make-rslave "$root/$name"
    done
    mount -t proc proc "$root/proc"
    mount -t tmpfs tmpfs "$root/run"
    # Starts the daemon of the image in the background without a network; $! is its process.
    start_daemon() {
        chroot "$root" dockerd --bridge=none --iptables=false --ip6tables=false \
            --storage-driver=overlay2 --host=unix:///run/docker.sock \
            >>"$root/run/dockerd.log" 2>&1 &
    }
    start_daemon
    for _ in $(seq 300); do
        chroot "$root" docker version >/dev/null 2>&1 && break
        # dockerd gives its containerd 15 s, which may not be enough on a host that is slow or busy.
        kill -0 $! 2>/dev/null || start_daemon
        sleep 0.2
    done
    if ! chroot "$root" docker load --quiet <"$archive"; then
        tail -n 5 "$root/run/dockerd.log" >&2
        exit 1
    fi
    kill $! && wait $! || true
' box "$root" "$archive"

# Name, identity and keys, which belong to one machine.
rm -rf "$root"/etc/{fstab,hostname,hosts,machine-id} "$root/root/.docker" "$root/root/.ssh"
echo 'LABEL=strata-root / ext4 defaults 0 0' >"$root/etc/fstab"
echo strata >"$root/etc/hostname"
echo '127.0.0.1 localhost strata' >"$root/etc/hosts"
tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
ssh-keygen -q -t ed25519 -N "" -C strata -f "$box/key"
ssh-keygen -q -t ed25519 -N "" -C strata -f "$root/etc/ssh/ssh_host_ed25519_key"
cp "$root/etc/ssh/ssh_host_ed25519_key.pub" "$box/host_key.pub"
install -d -m 0700 "$root/root" "$root/root/.ssh"
install -m 0600 "$box/key.pub" "$root/root/.ssh/authorized_keys"
# With these files systemd does not run the services for the first boot after an update.
touch "$root/etc/.updated" "$root/var/.updated"

# The file system is complete: the guest's kernel initialises nothing during a measurement.
mke2fs -q -F -t ext4 -L strata-root -m 0 -E lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0 \
    -d "$root" "$box/disk.raw" 32G
qemu-img convert -O qcow2 "$box/disk.raw" "$box/box.img"
kernel=$(find "$root/boot" -name 'vmlinuz-*' | sort -V | tail -n 1)
cp "$kernel" "$box/kernel"
cp "$root/boot/initrd.img-${kernel##*/vmlinuz-}" "$box/initrd"
echo '{"provider": "libvirt", "format": "qcow2", "virtual_size": 32}' >"$box/metadata.json"
chown "${SUDO_UID:-0}" "$box/key"
rm -rf --one-file-system "$root" "$box/disk.raw"

#!/bin/sh
# Settles the base root filesystem, in it, before anything is packaged: what a virtual machine needs to
# boot quietly and be reached.  A container has the same files and starts none of these services.
set -eu

# One network card, its address by DHCP; nothing waits for it.
mkdir -p /etc/systemd/network /etc/systemd/journald.conf.d
cat >/etc/systemd/network/20-strata.network <<'END'
[Match]
Name=eth*

[Network]
DHCP=ipv4
IPv6AcceptRA=no
LinkLocalAddressing=no

[DHCPv4]
ClientIdentifier=mac
UseDNS=no
END
cat >/etc/systemd/journald.conf.d/strata.conf <<'END'
[Journal]
Storage=volatile
END
systemctl enable --quiet systemd-networkd.service ssh.service docker.socket
# The daemon starts with the first use of its socket: a machine without containers does not carry it.
systemctl disable --quiet docker.service containerd.service
# Published ports lead to a container by the kernel's rules alone; no process stands for each of them.
mkdir -p /etc/docker
echo '{"userland-proxy": false}' >/etc/docker/daemon.json
systemctl set-default --quiet multi-user.target

# Nothing wakes up beside a measurement, and what a machine of one purpose has no use for does not start.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service \
    fstrim.timer systemd-tmpfiles-clean.timer getty@.service serial-getty@.service \
    systemd-networkd-wait-online.service systemd-network-generator.service systemd-networkd-persistent-storage.service \
    systemd-logind.service systemd-random-seed.service systemd-pstore.service systemd-hwdb-update.service \
    systemd-tpm2-setup.service systemd-tpm2-setup-early.service systemd-udev-load-credentials.service \
    systemd-journal-catalog-update.service systemd-journal-flush.service systemd-update-utmp.service \
    systemd-update-done.service systemd-sysusers.service ldconfig.service \
    modprobe@configfs.service modprobe@efi_pstore.service modprobe@fuse.service modprobe@drm.service \
    sys-fs-fuse-connections.mount sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount; do
    systemctl mask --quiet "$unit"
done

# What the packages of the workloads would start: servers run in cells alone.
for folder in multi-user timers; do
    for unit in /etc/systemd/system/"$folder".target.wants/*; do
        case ${unit##*/} in
        ssh.service | systemd-networkd.service | remote-fs.target | '*') ;;
        *) systemctl mask --quiet "${unit##*/}" ;;
        esac
    done
done
# Their daemons that no target wants may have an old script that does.
for script in /etc/init.d/*; do
    case ${script##*/} in
    dbus | docker | kmod | procps | ssh | udev | '*') ;;
    *) systemctl mask --quiet "${script##*/}.service" ;;
    esac
done

# A small initial root file system: the modules for the root disk, not those for every machine there is.
if [ -d /etc/initramfs-tools ]; then
    echo 'MODULES=list' >/etc/initramfs-tools/conf.d/strata
    printf '%s\n' virtio_pci virtio_blk ext4 >>/etc/initramfs-tools/modules
    # The same from the same files, on any day.
    SOURCE_DATE_EPOCH=1 update-initramfs -u -k all >/dev/null
fi

# Keys and identities are of one machine; they are made for the disk of each.
rm -f /etc/ssh/ssh_host_* /etc/hostname /var/lib/dbus/machine-id /var/lib/systemd/random-seed
: >/etc/machine-id
# What servers' packages made for their users is another in every build; a workload makes its own.
find /var/lib -mindepth 2 -type f ! -user root -delete
mkdir -p /data

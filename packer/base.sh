#!/bin/sh
# Configures the base root filesystem, inside of it, before anything is packaged: a virtual machine
# made of it boots only the services that it needs, and is reached by ssh.  A container has the same
# files and starts no service.
set -eu

# One network card, with its address by DHCP; no service waits for it.
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
# Docker's daemon starts with the first use of its socket: a machine without containers runs none.
systemctl disable --quiet docker.service containerd.service
# Only the kernel's rules lead published ports to a container, without a process for each port.
mkdir -p /etc/docker
echo '{"userland-proxy": false}' >/etc/docker/daemon.json
systemctl set-default --quiet multi-user.target

# No timer wakes up during a measurement, and services that measurements do not use do not start.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
    e2scrub_reap.service fstrim.timer systemd-tmpfiles-clean.timer getty@.service \
    serial-getty@.service systemd-networkd-wait-online.service systemd-network-generator.service \
    systemd-networkd-persistent-storage.service systemd-logind.service systemd-random-seed.service \
    systemd-pstore.service systemd-hwdb-update.service systemd-tpm2-setup.service \
    systemd-tpm2-setup-early.service systemd-udev-load-credentials.service \
    systemd-journal-catalog-update.service systemd-journal-flush.service \
    systemd-update-utmp.service systemd-update-done.service systemd-sysusers.service \
    ldconfig.service modprobe@configfs.service modprobe@efi_pstore.service modprobe@fuse.service \
    modprobe@drm.service sys-fs-fuse-connections.mount sys-kernel-config.mount \
    sys-kernel-debug.mount sys-kernel-tracing.mount; do
    systemctl mask --quiet "$unit"
done

# Servers of the workloads' packages do not start: they run only in cells.
for folder in multi-user timers; do
    for unit in /etc/systemd/system/"$folder".target.wants/*; do
        case ${unit##*/} in
        ssh.service | systemd-networkd.service | remote-fs.target | '*') ;;
        *) systemctl mask --quiet "${unit##*/}" ;;
        esac
    done
done
# Nor do those that only a script of the older init system would start.
for script in /etc/init.d/*; do
    case ${script##*/} in
    dbus | docker | kmod | procps | ssh | udev | '*') ;;
    *) systemctl mask --quiet "${script##*/}.service" ;;
    esac
done

# A small initial root file system, with the modules for the root disk only.  It is the only one:
# with INITRD=No, which strata/image/build.py sets, the kernel's package makes none.
if [ -d /etc/initramfs-tools ]; then
    echo 'MODULES=list' >/etc/initramfs-tools/conf.d/strata
    printf '%s\n' virtio_pci virtio_blk ext4 >>/etc/initramfs-tools/modules
    for modules in /lib/modules/*; do
        # With a fixed date the same files give the same archive on any day.
        SOURCE_DATE_EPOCH=1 update-initramfs -c -k "${modules##*/}" >/dev/null
    done
fi

# Keys and identities belong to one machine: box.sh makes them for its disk.
rm -f /etc/ssh/ssh_host_* /etc/hostname /var/lib/dbus/machine-id /var/lib/systemd/random-seed
: >/etc/machine-id
# Files that packages made for their servers' users differ in every build; a workload makes its own.
find /var/lib -mindepth 2 -type f ! -user root -delete
mkdir -p /data

#!/bin/bash
# Makes sure that libvirt answers.
#
# It starts the service if there is a service manager, otherwise libvirtd and virtlogd themselves,
# which stay up like services; `scripts/libvirtd.sh stop` ends those that were started here.
set -euo pipefail
# shellcheck source=scripts/daemons.sh
. "$(dirname "$0")/daemons.sh"

log=/var/log/strata-libvirtd.log

# Succeeds if libvirt answers.
is_answering() { "${root[@]}" virsh --connect qemu:///system version >/dev/null 2>&1; }

# Starts libvirt: its service, or the two daemons that do not run yet, with access to /dev/kvm and
# huge pages.
start_service() {
    if [ -d /run/systemd/system ]; then
        "${root[@]}" systemctl start libvirtd
        return
    fi
    # Without udev nothing gives /dev/kvm to the group of libvirt's QEMU.  libvirt would then find
    # KVM usable for itself and not for QEMU, and examine QEMU again before every command.
    if [ -c /dev/kvm ] && [ ! -d /run/udev ] && getent group kvm >/dev/null; then
        "${root[@]}" chgrp kvm /dev/kvm
        "${root[@]}" chmod 0660 /dev/kvm
    fi
    # libvirt looks for huge pages when it starts.
    if [ -d /dev/hugepages ] || "${root[@]}" mkdir /dev/hugepages; then
        grep -q ' /dev/hugepages ' /proc/mounts ||
            "${root[@]}" mount -t hugetlbfs hugetlbfs /dev/hugepages || true
    fi
    for name in virtlogd libvirtd; do
        [ -n "$(pidof "$name" || true)" ] || start_daemon "$name" "/run/strata-$name.pid" "$log"
    done
}

if [ "${1:-}" = stop ]; then
    for name in libvirtd virtlogd; do end_daemon "$name" "/run/strata-$name.pid"; done
elif ! is_answering; then
    start_until_answering libvirt "$log"
fi

#!/bin/bash
# Sees that libvirt answers: through the service manager where there is one, else by starting libvirtd and
# virtlogd themselves.  They stay up like any service; `scripts/libvirtd.sh stop` ends those started here.
set -euo pipefail

folder=/run/strata-libvirt
log=/var/log/strata-libvirtd.log
root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)

# Ends the daemon that was started here, by its id and only if that is still the same program.
end() {
    local name=$1 record=$folder/$1.pid pid
    if [ -s "$record" ] && [ "$(cat "/proc/$(cat "$record")/comm" 2>/dev/null)" = "$name" ]; then
        pid=$(cat "$record")
        "${root[@]}" kill "$pid"
        for _ in $(seq 100); do
            [ -d "/proc/$pid" ] || break
            sleep 0.1
        done
    fi
    "${root[@]}" rm -f -- "$record"
}

if [ "${1:-}" = stop ]; then
    end libvirtd
    end virtlogd
    exit 0
fi

answers() { "${root[@]}" virsh --connect qemu:///system version >/dev/null 2>&1; }

if answers; then
    exit 0
fi
echo "libvirt: no daemon answers; starting one" >&2
if [ -d /run/systemd/system ]; then
    "${root[@]}" systemctl start libvirtd
else
    # Without udev nobody gives /dev/kvm to the group of libvirt's QEMU; libvirt would then find KVM usable for itself
    # but not for QEMU, and examine QEMU again before every command.
    if [ -c /dev/kvm ] && [ ! -d /run/udev ] && getent group kvm >/dev/null; then
        "${root[@]}" chgrp kvm /dev/kvm
        "${root[@]}" chmod 0660 /dev/kvm
    fi
    # libvirt looks for huge pages when it starts.
    if [ -d /dev/hugepages ] || "${root[@]}" mkdir /dev/hugepages; then
        grep -q ' /dev/hugepages ' /proc/mounts || "${root[@]}" mount -t hugetlbfs hugetlbfs /dev/hugepages || true
    fi
    # The daemons must outlive this shell and not hold its terminal or its lock files.
    for name in virtlogd libvirtd; do
        if [ -z "$(pidof "$name" || true)" ]; then
            # shellcheck disable=SC2016  # the inner shell's own variables
            "${root[@]}" env PATH="$PATH:/usr/sbin:/sbin" sh -c '
                mkdir -p "$2"
                setsid nohup "$1" >>"$3" 2>&1 </dev/null & echo $! >"$2/$1.pid"
            ' sh "$name" "$folder" "$log"
        fi
    done
fi
for _ in $(seq 150); do
    if answers; then
        exit 0
    fi
    sleep 0.2
done
echo "libvirt: no daemon answers after 30 s; see $log" >&2
exit 1

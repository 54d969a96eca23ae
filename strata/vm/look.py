"""A look at a machine that is up: what its guest sees, what QEMU's process takes, and what was applied."""

import re

from strata.base.process import capture
from strata.base.shapes import Fields, WantedMachine
from strata.host import observe
from strata.vm import applied, card, domain, libvirt, ssh

DATA_LABEL = "strata-data"
# A line for each cache of the first CPU: its level, type and size.
_CACHES = """
for cache in /sys/devices/system/cpu/cpu0/cache/index*/; do
    if [ -e "$cache/size" ]; then echo "L$(cat "$cache/level") $(cat "$cache/type") $(cat "$cache/size")"; fi
done
"""
# Mounts the data disk where that was not done yet, and prints the numbers of queues (of the card by which it is
# reached) and nodes, and the caches.
_SCRIPT = f"""
mkdir -p /data
mountpoint -q /data || mount -o defaults LABEL={DATA_LABEL} /data || exit 1
way=$(echo "$SSH_CONNECTION" | cut -d' ' -f3)
card=$(ip -4 -o address | awk -v way="$way/" 'index($4, way) == 1 {{ print $2 }}')
ls -d "/sys/class/net/$card"/queues/rx-* | wc -l
ls -d /sys/devices/system/node/node[0-9]* 2>/dev/null | wc -l
{_CACHES}
"""


def inside(folder: str) -> list[str]:
    """Mount the data disk, if it is not; the lines in which the guest then tells of its devices."""
    return ssh.run(folder, ["sh", "-c", _SCRIPT]).splitlines()


def at(folder: str, wanted: WantedMachine, profile: Fields, refused: dict[str, str]) -> Fields:
    """See that the data disk is mounted, and look: those facts of ``system.vm`` that are seen (docs/files.md).

    wanted: the machine's settings, as of :meth:`strata.vm.machine.Machine.settings`.  profile: complete.
    refused: key → why it was left out.
    """
    queues, nodes, *caches = inside(folder)
    known = observe.understand(observe.split(ssh.run(folder, observe.command(), check=False)))
    process = applied.process(libvirt.process(wanted["name"]))
    live = domain.read(libvirt.virsh("dumpxml", wanted["name"]))
    guest = {
        "cpus": known["cpus"],
        "memory_bytes": known["memory_bytes"] if isinstance(known["memory_bytes"], int) else None,
        "shape": {
            "sockets": known["sockets"],
            "cores": known["cores_per_socket"],
            "threads": known["threads_per_core"],
        },
        "queues": int(queues),
        "nodes": max(1, int(nodes)),
        "caches": ", ".join(caches),
        "host_caches": ", ".join(capture(["sh", "-c", _CACHES]).stdout.splitlines()),
        "card": card.give(folder, wanted) if wanted["card"] else None,
    }
    return {
        "vcpus": known["cpus"],
        "memory_bytes": wanted["memory_mib"] * 2**20,
        "settings": applied.rows(profile, wanted, live, process, guest, refused),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Versions of what runs the machine; "not available" where nobody says."""
    said = libvirt.virsh("version", check=False)
    patterns = {"libvirt": r"library: libvirt ([\d.]+)", "qemu": r"hypervisor: QEMU ([\d.]+)"}
    found = {name: re.search(pattern, said) for name, pattern in patterns.items()}
    return {name: match[1] if match else observe.NOT_AVAILABLE for name, match in found.items()}

"""A look at a machine that is up: what its guest sees, what QEMU's process takes, and what was applied."""

import os
import re
import shutil

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import read_json
from strata.base.process import capture
from strata.base.shapes import Fields, WantedMachine
from strata.host import observe
from strata.host import topology as host
from strata.vm import applied, card, domain, libvirt, ssh

DATA_LABEL = "strata-data"
# Mounts the data disk where that was not done yet, and prints its file system, the numbers of queues (of the card by
# which it is reached) and nodes, and a line for each cache of the first CPU.
_SCRIPT = f"""
mkdir -p /data
mountpoint -q /data || mount -o defaults LABEL={DATA_LABEL} /data || exit 1
findmnt --noheadings --output FSTYPE,OPTIONS,SIZE --bytes /data
way=$(echo "$SSH_CONNECTION" | cut -d' ' -f3)
card=$(ip -4 -o address | awk -v way="$way/" 'index($4, way) == 1 {{ print $2 }}')
ls -d "/sys/class/net/$card"/queues/rx-* | wc -l
ls -d /sys/devices/system/node/node[0-9]* 2>/dev/null | wc -l
for cache in /sys/devices/system/cpu/cpu0/cache/index*; do
    if [ -e "$cache/size" ]; then echo "$(cat "$cache/level") $(cat "$cache/type") $(cat "$cache/size")"; fi
done
"""


def inside(folder: str) -> list[str]:
    """Mount the data disk, if it is not; the lines in which the guest then tells of its devices."""
    return ssh.run(folder, ["sh", "-c", _SCRIPT]).splitlines()


def at(folder: str, wanted: WantedMachine, profile: Fields, refused: dict[str, str]) -> Fields:
    """See that the data disk is mounted, and look: those facts of ``system.vm`` that are seen (docs/files.md).

    wanted: the machine's settings, as of :meth:`strata.vm.machine.Machine.settings`.  profile: complete.
    refused: key → why it was left out.
    """
    lines = inside(folder)
    known = observe.understand(observe.split(ssh.run(folder, observe.command(), check=False)))
    process = applied.process(process_of(wanted["name"]))
    live = domain.read(libvirt.virsh("dumpxml", wanted["name"]))
    guest = {
        "cpus": known["cpus"],
        "memory_bytes": known["memory_bytes"] if isinstance(known["memory_bytes"], int) else None,
        "shape": _shape(known),
        "queues": int(lines[1]),
        "nodes": max(1, int(lines[2])),
        "caches": _caches(lines[3:]),
        "host_caches": host.caches(),
        "card": card.give(folder, wanted) if wanted["card"] else None,
    }
    kind, options, size = lines[0].split()
    disks = [f"{wanted['name']}.img", wanted["data_disk"]]
    own = capture(
        ["findmnt", "--noheadings", "--output", "FSTYPE", "--target", places.home()], check=False
    ).stdout.strip()
    return {
        "vcpus": known["cpus"],
        "memory_bytes": wanted["memory_mib"] * 2**20,
        "host_memory_bytes": _sum(process["resident_bytes"], process["huge_bytes"]),
        "disk_bytes": sum(_taken(os.path.join(libvirt.pool_folder(), name)) for name in disks),
        "data_disk": {
            "file_system": kind,
            "options": options,
            "bytes": int(size),
            "host_file_system": own or observe.NOT_AVAILABLE,
        },
        "settings": applied.rows(profile, wanted, live, process, guest, refused),
        "versions": versions(),
    }


def processes(folder: str) -> list[int]:
    """The QEMU process of the machine of a system's folder, in a list."""
    return [process_of((read_json(os.path.join(folder, "vm.json")) or {})["name"])]


def process_of(name: str) -> int:
    """The id of a running domain's process.  Raises UserError where libvirt names none."""
    found = libvirt.process(name)
    if found is None:
        raise UserError(f"libvirt names no process for the domain {name}")
    return found


def _taken(path: str) -> int:
    """Bytes that a file takes on its disk, holes left out."""
    return os.stat(path).st_blocks * 512


def _sum(*values: int | str) -> int | str:
    numbers = [value for value in values if isinstance(value, int)]
    return sum(numbers) if numbers else observe.NOT_AVAILABLE


def _shape(inside: Fields) -> Fields | None:
    keys = {"sockets": "sockets", "cores": "cores_per_socket", "threads": "threads_per_core"}
    found = {name: inside[key] for name, key in keys.items()}
    return found if all(isinstance(value, int) for value in found.values()) else None


def _caches(lines: list[str]) -> str:
    kinds = {"Data": "d", "Instruction": "i"}
    words = (line.split() for line in lines)
    return ", ".join(f"L{level}{kinds.get(kind, '')} {size}" for level, kind, size in words)


def versions() -> dict[str, str]:
    """Versions of what runs the machine; "not available" where nobody says."""
    found = {}
    text = libvirt.virsh("version", check=False)
    for name, pattern in (("libvirt", r"library: libvirt ([\d.]+)"), ("qemu", r"hypervisor: QEMU ([\d.]+)")):
        match = re.search(pattern, text)
        found[name] = match[1] if match else observe.NOT_AVAILABLE
    for name in ("vagrant", "vagrant-libvirt"):
        text = ""
        if shutil.which("dpkg-query"):
            text = capture(["dpkg-query", "--show", "--showformat", "${Version}", name], check=False).stdout.strip()
        found[name] = text or observe.NOT_AVAILABLE
    return found

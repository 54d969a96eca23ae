"""A look at a machine that is up: what a profile asked for against what is seen in the guest and in QEMU's process.

Nothing is taken from a configuration but where neither shows it: then libvirt's domain is asked.
"""

import os
import re
from collections.abc import Mapping

from strata.base.amounts import numbers
from strata.base.process import capture
from strata.base.shapes import Fields, WantedMachine
from strata.host import observe
from strata.host.observe import NOT_AVAILABLE
from strata.vm import card, domain, libvirt, ssh

DATA_LABEL = "strata-data"
# Why something was not applied, where nothing else is known of it.
NOT_SHOWN = "the machine does not show it"
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
    process = process_of(libvirt.process(wanted["name"]))
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
        "settings": rows(profile, wanted, live, process, guest, refused),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Versions of what runs the machine; "not available" where nobody says."""
    said = libvirt.virsh("version", check=False)
    patterns = {"libvirt": r"library: libvirt ([\d.]+)", "qemu": r"hypervisor: QEMU ([\d.]+)"}
    found = {name: re.search(pattern, said) for name, pattern in patterns.items()}
    return {name: match[1] if match else NOT_AVAILABLE for name, match in found.items()}


def process_of(pid: int | None, proc: str = "/proc") -> Fields:
    """What QEMU's process shows: ``{huge_mib, vcpus: {number: CPUs}, emulator: CPUs, vhost, bound}``.

    huge_mib is None where it is not known; `emulator` is the affinity of the main thread; `vhost` is
    whether it has that open, None where its open files cannot be read; `bound` is of :func:`bound`.
    """
    folder = f"{proc}/{pid}"
    status = _read(f"{folder}/status")
    facts: Fields = {"emulator": _cpus(status), "vcpus": {}, "bound": bound(_read(f"{folder}/numa_maps"))}
    huge = re.search(r"^HugetlbPages:\s+(\d+) kB", status, re.MULTILINE)
    facts["huge_mib"] = int(huge[1]) // 1024 if huge else None
    for task in sorted(os.listdir(f"{folder}/task")) if os.path.isdir(f"{folder}/task") else []:
        name = re.fullmatch(r"CPU (\d+)/(KVM|TCG)", _read(f"{folder}/task/{task}/comm").strip())
        if name:
            facts["vcpus"][name[1]] = _cpus(_read(f"{folder}/task/{task}/status"))
    try:
        files = [os.readlink(f"{folder}/fd/{name}") for name in os.listdir(f"{folder}/fd")]
        facts["vhost"] = "/dev/vhost-net" in files
    except OSError:
        facts["vhost"] = None
    return facts


def bound(maps: str) -> dict[str, int]:
    """MiB in use by the memory node to which they are bound, from a process' numa_maps."""
    found: dict[str, int] = {}
    for line in maps.splitlines():
        policy = re.match(r"\S+ bind(?:=\w+)?:(\d+) ", line)
        size = re.search(r"kernelpagesize_kB=(\d+)", line)
        if policy and size:
            pages = sum(int(count) for count in re.findall(rf" N{policy[1]}=(\d+)", line))
            found[policy[1]] = found.get(policy[1], 0) + pages * int(size[1])
    return {node: kib // 1024 for node, kib in sorted(found.items()) if kib >= 1024}


def _read(path: str) -> str:
    return observe.read_files([path]).get(path, "")


def _cpus(status: str) -> str | None:
    match = re.search(r"^Cpus_allowed_list:\s+(\S+)", status, re.MULTILINE)
    return match[1] if match else None


def _pairs(pairs: Mapping[str, str | None]) -> str:
    return ", ".join(f"{vcpu}→{cpus}" for vcpu, cpus in sorted(pairs.items(), key=lambda pair: int(pair[0]))) or "none"


def _on_nodes(shares: Mapping[str, int]) -> str:
    return ", ".join(f"{mib} MiB on node {node}" for node, mib in shares.items())


def _shape(shape: Fields | None) -> str | None:
    if shape is None or not all(isinstance(value, int) for value in shape.values()):
        return None
    return " × ".join(f"{count} {name if count > 1 else name[:-1]}" for name, count in shape.items())


def rows(
    profile: Fields, settings: WantedMachine, live: Fields, process: Fields, guest: Fields, refused: dict[str, str]
) -> list[Fields]:
    """``[{name, asked, seen, applied, why}, …]``, one for each thing that the profile asks for.

    profile: complete.  settings: of :func:`strata.vm.settings.resolve`.  live: of :func:`strata.vm.domain.read`.
    process: of :func:`process_of`.  guest: ``{cpus, memory_bytes, shape: {sockets, cores, threads}, caches, queues}``.
    refused: key of the profile → why it was left out before the start.
    """
    extra, mib, disks = settings["extra"], settings["memory_mib"], live["disks"]
    without_kvm = "emulation does not offer it" if settings["driver"] == "qemu" else NOT_SHOWN
    found: list[Fields] = []

    def row(
        key: str, name: str, asked: object, seen: object, applied: bool | None = None, why: str = NOT_SHOWN
    ) -> None:
        """A row for what a key of the profile asks for; applied: whether it is, if that is not that both are equal."""
        good = seen == asked if applied is None else applied
        shown = NOT_AVAILABLE if seen is None else str(seen)
        why_not = None if good else refused.get(key, why)
        found.append({"name": name, "asked": str(asked), "seen": shown, "applied": good, "why": why_not})

    row("cpus", "vCPUs", settings["cpus"], guest["cpus"])
    size = (guest["memory_bytes"] or 0) // 2**20
    seen = f"{size} MiB that the guest's kernel manages" if size else None
    row("memory", "memory", f"{mib} MiB", seen, 0.85 < size / mib <= 1)
    if profile["pin"]:
        row("pin", "vCPUs pinned one to one", _pairs(settings["affinity"] or {}), _pairs(process["vcpus"]))
    if profile["topology"] == "host":
        shape, parts = _shape(settings["topology"]), [cell["memory"] for cell in settings["numa"] or [{"memory": mib}]]
        why = NOT_SHOWN if shape else "the host's is uneven, or there are more vCPUs than CPUs"
        row("topology", "topology of the host", shape or "the host's", _shape(guest["shape"]), why=why)
        row("topology", "memory nodes", len(parts), guest["nodes"])
        if nodes := extra["memory_nodes"]:
            shares = {str(node): part for node, part in zip(nodes, parts, strict=True)}
            bound, same = _on_nodes(process["bound"]) or None, set(process["bound"]) == set(shares)
            row("topology", "memory beside its vCPUs", _on_nodes(shares), bound, same)
        caches = guest["host_caches"] or NOT_AVAILABLE
        row("topology", "caches of the host", caches, guest["caches"] or None, why=without_kvm)
    if profile["huge_pages"]:
        held = process["huge_mib"]
        words = None if held is None else f"{held} MiB in use"
        row("huge_pages", "memory in huge pages", f"{mib} MiB", words, bool(held))
    for key, name in (("cache", "cache mode of the disks"), ("io", "disk I/O")):
        if (asked := profile[f"disk_{key}"]) != "default":
            row(f"disk_{key}", name, asked, ", ".join(sorted({disk[key] or "default" for disk in disks})))
    if profile["iothread"]:
        asked, seen = (f"for {count} disks" for count in (len(disks), sum(bool(disk["iothread"]) for disk in disks)))
        row("iothread", "thread of its own for disk I/O", asked, seen)
    if profile["pin_emulator"]:
        asked, seen = extra["emulator"], process["emulator"]
        row("pin_emulator", "QEMU's other threads", asked, seen, numbers(seen or "") == numbers(asked))
    if profile["vhost"]:
        vhost = {True: "open", False: "not open", None: None}[process["vhost"]]
        row("vhost", "vhost-net", "open", vhost, why=without_kvm)
    if profile["queues"] != 1:
        row("queues", "queues of the network card", extra["queues"] or 1, guest["queues"])
    for address in profile["passthrough"]:
        seen = "in the domain" if address in live["devices"] else "missing"
        row("passthrough", f"device {address}", "in the domain", seen)
    if own := profile.get("card"):
        row("card", "address of its card", own["address"], guest.get("card"))
    return found

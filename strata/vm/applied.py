"""What a profile asked for against what the live machine shows: in libvirt's domain, in QEMU's process, in the guest.

Nothing is taken from a configuration: each row says what was asked, what is seen, and where they differ, why.
"""

import os
import re
from collections.abc import Mapping

from strata.base.amounts import numbers
from strata.base.shapes import Fields, WantedMachine
from strata.host import observe
from strata.host.observe import NOT_AVAILABLE


def process(pid: int | None, proc: str = "/proc") -> Fields:
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
    process: of :func:`process`.  guest: ``{cpus, memory_bytes, shape: {sockets, cores, threads}, caches, queues}``.
    refused: key of the profile → why it was left out before the start.
    """
    extra, mib, disks = settings["extra"], settings["memory_mib"], live["disks"]
    without_kvm = "emulation does not offer it" if settings["driver"] == "qemu" else None
    found: list[Fields] = []

    def row(key: str, name: str, asked: object, seen: object, why: str, applied: object = None) -> None:
        """A row for what a key of the profile asks for; applied: whether it is, if that is not that both are equal."""
        good = seen == asked if applied is None else bool(applied)
        shown = NOT_AVAILABLE if seen is None else str(seen)
        why_not = None if good else refused.get(key, why)
        found.append({"name": name, "asked": str(asked), "seen": shown, "applied": good, "why": why_not})

    row("cpus", "vCPUs", settings["cpus"], guest["cpus"], "the guest sees others")
    size = guest["memory_bytes"] and guest["memory_bytes"] // 2**20
    seen = size and f"{size} MiB that the guest's kernel manages"
    good = size and 0.85 < size / mib <= 1
    row("memory", "memory", f"{mib} MiB", seen, "the guest sees another size", applied=bool(good))
    if profile["pin"]:
        pins, threads = _pairs(settings["affinity"] or {}), _pairs(process["vcpus"])
        row("pin", "vCPUs pinned one to one", pins, threads, "QEMU's threads are elsewhere")
    if profile["topology"] == "host":
        shape, parts = _shape(settings["topology"]), [cell["memory"] for cell in settings["numa"] or [{"memory": mib}]]
        why = "the guest sees another" if shape else "the host's is uneven, or there are more vCPUs than CPUs"
        row("topology", "topology of the host", shape or "the host's", _shape(guest["shape"]), why)
        row("topology", "memory nodes", len(parts), guest["nodes"], "the guest sees another number")
        if nodes := extra["memory_nodes"]:
            shares = {str(node): part for node, part in zip(nodes, parts, strict=True)}
            bound, same = _on_nodes(process["bound"]) or None, set(process["bound"]) == set(shares)
            why = "it is not bound to these nodes"
            row("topology", "memory beside its vCPUs", _on_nodes(shares), bound, why, same)
        caches, why = guest["host_caches"] or NOT_AVAILABLE, without_kvm or "the guest sees others"
        row("topology", "caches of the host", caches, guest["caches"] or None, why)
    if profile["huge_pages"]:
        held = process["huge_mib"]
        words = None if held is None else f"{held} MiB in use"
        row("huge_pages", "memory in huge pages", f"{mib} MiB", words, "QEMU holds none", bool(held))
    for key, name in (("cache", "cache mode of the disks"), ("io", "disk I/O")):
        if (asked := profile[f"disk_{key}"]) != "default":
            modes = ", ".join(sorted({disk[key] or "default" for disk in disks}))
            row(f"disk_{key}", name, asked, modes, "the domain says otherwise")
    if profile["iothread"]:
        asked, seen = (f"for {count} disks" for count in (len(disks), sum(bool(disk["iothread"]) for disk in disks)))
        row("iothread", "thread of its own for disk I/O", asked, seen, "the domain has none")
    if profile["pin_emulator"]:
        asked, seen = extra["emulator"], process["emulator"]
        same = numbers(seen or "") == numbers(asked)
        row("pin_emulator", "QEMU's other threads", asked, seen, "they run elsewhere", same)
    if profile["vhost"]:
        vhost = {True: "open", False: "not open", None: None}[process["vhost"]]
        row("vhost", "vhost-net", "open", vhost, without_kvm or "QEMU has not opened it")
    if profile["queues"] != 1:
        queues = extra["queues"] or 1
        row("queues", "queues of the network card", queues, guest["queues"], "the guest's card has others")
    for address in profile["passthrough"]:
        seen = "in the domain" if address in live["devices"] else "missing"
        row("passthrough", f"device {address}", "in the domain", seen, "it is not in the domain")
    if card := profile.get("card"):
        why = "the guest's card has no link, or another address"
        row("card", "address of its card", card["address"], guest.get("card"), why)
    return found

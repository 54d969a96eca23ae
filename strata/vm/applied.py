"""What a profile asked for against what the live machine shows: in libvirt's domain, in QEMU's process, in the guest.

Nothing is taken from a configuration: each row says what was asked, what is seen, and where they differ, why.
"""

import os
import re
from collections.abc import Mapping

from strata.base.shapes import Any, Fields, WantedMachine
from strata.host.observe import NOT_AVAILABLE


def process(pid: int, proc: str = "/proc") -> Fields:
    """What QEMU's process shows: ``{resident_bytes, huge_bytes, vcpus: {number: CPUs}, emulator: CPUs, vhost, bound}``.

    resident_bytes and huge_bytes may be "not available"; `emulator` is the affinity of the main thread; `bound` is of
    :func:`bound`.
    """
    facts: Fields = {"resident_bytes": NOT_AVAILABLE, "huge_bytes": NOT_AVAILABLE, "vcpus": {}, "emulator": None}
    folder = f"{proc}/{pid}"
    status = _read(f"{folder}/status")
    for key, field in (("resident_bytes", "VmRSS"), ("huge_bytes", "HugetlbPages")):
        match = re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)
        if match:
            facts[key] = int(match[1]) * 1024
    facts["emulator"] = _cpus(status)
    for task in sorted(os.listdir(f"{folder}/task")) if os.path.isdir(f"{folder}/task") else []:
        name = re.fullmatch(r"CPU (\d+)/(KVM|TCG)", _read(f"{folder}/task/{task}/comm").strip())
        if name:
            facts["vcpus"][name[1]] = _cpus(_read(f"{folder}/task/{task}/status"))
    facts["vhost"] = _has_open(f"{folder}/fd", "/dev/vhost-net")
    facts["bound"] = bound(_read(f"{folder}/numa_maps"))
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
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _cpus(status: str) -> str | None:
    match = re.search(r"^Cpus_allowed_list:\s+(\S+)", status, re.MULTILINE)
    return match[1] if match else None


def _has_open(folder: str, target: str) -> bool | None:
    """Whether a process has a file open; None where its open files cannot be read."""
    try:
        return any(os.readlink(os.path.join(folder, name)) == target for name in os.listdir(folder))
    except OSError:
        return None


def _pairs(pairs: Mapping[str, str | None]) -> str:
    return ", ".join(f"{vcpu}→{cpus}" for vcpu, cpus in sorted(pairs.items(), key=lambda pair: int(pair[0]))) or "none"


def _on_nodes(shares: dict[str, int]) -> str:
    return ", ".join(f"{mib} MiB on node {node}" for node, mib in shares.items())


def _shape(shape: Fields | None) -> str | None:
    if shape is None or not all(isinstance(value, int) for value in shape.values()):
        return None
    words = [f"{count} {name if count > 1 else name[:-1]}" for name, count in shape.items()]
    return " × ".join(words)


def rows(
    profile: Fields, settings: WantedMachine, live: Fields, process: Fields, guest: Fields, refused: dict[str, str]
) -> list[Fields]:
    """``[{name, asked, seen, applied, why}, …]``, one for each thing that the profile asks for.

    profile: complete.  settings: of :func:`strata.vm.settings.resolve`.  live: of :func:`strata.vm.domain.read`.
    process: of :func:`process`.  guest: ``{cpus, memory_bytes, shape: {sockets, cores, threads}, caches, queues}``.
    refused: key of the profile → why it was left out before the start.
    """
    extra, disks, mib = settings["extra"], live["disks"], settings["memory_mib"]
    without_kvm = "emulation does not offer it" if settings["driver"] == "qemu" else None
    shape, nodes = _shape(settings["topology"]), extra["memory_nodes"] or []
    uneven = None if shape else "the host's is uneven, or there are more vCPUs than CPUs"
    parts = [cell["memory"] for cell in settings["numa"] or [{"memory": mib}]]
    shares = {str(node): part for node, part in zip(nodes, parts, strict=bool(nodes))} if nodes else {}
    bound = _on_nodes(process["bound"]) if set(process["bound"]) == set(shares) else None
    hosts, huge, vhost = profile["topology"] == "host", process["huge_bytes"], process["vhost"]
    size = guest["memory_bytes"] // 2**20 if guest["memory_bytes"] else None
    held = huge // 2**20 if isinstance(huge, int) else None
    modes = {key: ", ".join(sorted({disk[key] or "default" for disk in disks})) for key in ("cache", "io")}
    threaded = sum(bool(disk["iothread"]) for disk in disks)
    passed = live["caches"] == "passthrough" and guest["caches"] == guest["host_caches"]
    card = (profile.get("card") or {}).get("address")
    # Key of the profile, whether it asks for it, its name, what was asked, what is seen, why they may differ, and
    # where that is not whether they are the same, whether it was applied.
    table: list[tuple[Any, ...]] = [
        ("cpus", True, "vCPUs", settings["cpus"], guest["cpus"], "the guest sees others"),
        (
            *("memory", True, "memory", f"{mib} MiB", size and f"{size} MiB that the guest's kernel manages"),
            *("the guest sees another size", size is not None and 0.85 < size / mib <= 1),
        ),
        (
            *("pin", profile["pin"], "vCPUs pinned one to one", _pairs(settings["affinity"] or {})),
            *(_pairs(process["vcpus"]), "QEMU's threads are elsewhere"),
        ),
        (
            *("topology", hosts, "topology of the host", shape or "the host's", _shape(guest["shape"])),
            uneven or "the guest sees another",
        ),
        ("topology", hosts, "memory nodes", len(parts), guest["nodes"], "the guest sees another number"),
        (
            *("topology", hosts and nodes, "memory beside its vCPUs", _on_nodes(shares)),
            *(_on_nodes(process["bound"]) or None, "it is not bound to these nodes", bound is not None),
        ),
        (
            *("topology", hosts, "caches of the host", guest["host_caches"] or NOT_AVAILABLE, guest["caches"] or None),
            *(without_kvm or "the guest sees others", passed),
        ),
        (
            *("huge_pages", profile["huge_pages"], "memory in huge pages", f"{mib} MiB"),
            *(None if held is None else f"{held} MiB in use", "QEMU holds none", live["huge_pages"] and bool(held)),
        ),
        *(
            (key, profile[key] != "default", words, profile[key], modes[key[5:]], "the domain says otherwise")
            for key, words in (("disk_cache", "cache mode of the disks"), ("disk_io", "disk I/O"))
        ),
        (
            *("iothread", profile["iothread"], "thread of its own for disk I/O", f"1 for {len(disks)} disks"),
            *(f"{live['iothreads']} for {threaded} of {len(disks)} disks", "the domain has none"),
            live["iothreads"] >= 1 and threaded == len(disks),
        ),
        (
            *("pin_emulator", profile["pin_emulator"], "QEMU's other threads", extra["emulator"]),
            *(process["emulator"], "they run elsewhere"),
        ),
        (
            *("vhost", profile["vhost"], "vhost-net", "open", {True: "open", False: "not open", None: None}[vhost]),
            without_kvm or "QEMU has not opened it",
        ),
        (
            *("queues", profile["queues"] != 1, "queues of the network card", extra["queues"] or 1, guest["queues"]),
            "the guest's card has others",
        ),
        *(
            (
                *("passthrough", True, f"device {address}", "in the guest"),
                *("in the domain" if address in live["devices"] else "missing", "it is not in the domain"),
                address in live["devices"],
            )
            for address in profile["passthrough"]
        ),
        (
            *("card", card, "address of its card", card, guest.get("card")),
            "the guest's card has no link, or another address",
        ),
    ]
    found = []
    for key, wanted, name, asked, seen, why, *applied in table:
        if wanted:
            good = bool(applied[0]) if applied else seen == asked
            shown = NOT_AVAILABLE if seen is None else str(seen)
            why = None if good else refused.get(key, why)
            found.append({"name": name, "asked": str(asked), "seen": shown, "applied": good, "why": why})
    return found

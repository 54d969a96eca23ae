"""What a profile asked for against what the live machine shows: in libvirt's domain, in QEMU's process, in the guest.

Nothing is taken from a configuration: each row says what was asked, what is seen, and where they differ, why.
"""

import os
import re

from strata.host.observe import NOT_AVAILABLE


def process(pid: int, proc: str = "/proc") -> dict:
    """What QEMU's process shows: ``{resident_bytes, huge_bytes, vcpus: {number: CPUs}, emulator: CPUs, vhost, bound}``.

    resident_bytes and huge_bytes may be "not available"; `emulator` is the affinity of the main thread; `bound` is of
    :func:`bound`.
    """
    facts: dict = {"resident_bytes": NOT_AVAILABLE, "huge_bytes": NOT_AVAILABLE, "vcpus": {}, "emulator": None}
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


def _pairs(pairs: dict[str, str | None]) -> str:
    return ", ".join(f"{vcpu}→{cpus}" for vcpu, cpus in sorted(pairs.items(), key=lambda pair: int(pair[0]))) or "none"


def _on_nodes(shares: dict[str, int]) -> str:
    return ", ".join(f"{mib} MiB on node {node}" for node, mib in shares.items())


def _row(name: str, asked: str, seen: str | None, good: bool, why: str | None) -> dict:
    return {
        "name": name,
        "asked": asked,
        "seen": NOT_AVAILABLE if seen is None else seen,
        "applied": good,
        "why": None if good else why,
    }


def _shape(shape: dict | None) -> str | None:
    if shape is None or not all(isinstance(value, int) for value in shape.values()):
        return None
    words = [f"{count} {name if count > 1 else name[:-1]}" for name, count in shape.items()]
    return " × ".join(words)


def rows(profile: dict, settings: dict, live: dict, process: dict, guest: dict, refused: dict[str, str]) -> list[dict]:
    """``[{name, asked, seen, applied, why}, …]``, one for each thing that the profile asks for.

    profile: complete.  settings: of :func:`strata.vm.settings.resolve`.  live: of :func:`strata.vm.domain.read`.
    process: of :func:`process`.  guest: ``{cpus, memory_bytes, shape: {sockets, cores, threads}, caches, queues}``.
    refused: key of the profile → why it was left out before the start.
    """
    emulated = settings["driver"] == "qemu"
    without_kvm = "emulation does not offer it"
    found = [
        _row(
            "vCPUs",
            str(settings["cpus"]),
            str(guest["cpus"]),
            guest["cpus"] == settings["cpus"],
            "the guest sees others",
        ),
        _row(
            "memory",
            f"{settings['memory_mib']} MiB",
            f"{guest['memory_bytes'] // 2**20} MiB that the guest's kernel manages" if guest["memory_bytes"] else None,
            bool(guest["memory_bytes"]) and 0.85 < guest["memory_bytes"] / 2**20 / settings["memory_mib"] <= 1,
            "the guest sees another size",
        ),
    ]
    if profile["pin"]:
        good = process["vcpus"] == settings["affinity"]
        found.append(
            _row(
                "vCPUs pinned one to one",
                _pairs(settings["affinity"]),
                _pairs(process["vcpus"]),
                good,
                "QEMU's threads are elsewhere",
            )
        )
    if profile["topology"] == "host":
        asked = _shape(settings["topology"])
        good = asked is not None and _shape(guest["shape"]) == asked
        why = "the host's is uneven, or there are more vCPUs than CPUs" if asked is None else "the guest sees another"
        found.append(_row("topology of the host", asked or "the host's", _shape(guest["shape"]), good, why))
        nodes = len(settings["numa"]) if settings["numa"] else 1
        found.append(
            _row(
                "memory nodes",
                str(nodes),
                str(guest["nodes"]),
                guest["nodes"] == nodes,
                "the guest sees another number",
            )
        )
        places = settings["extra"]["memory_nodes"]
        if places:
            shares = [cell["memory"] for cell in settings["numa"]]
            shown = _on_nodes({str(node): mib for node, mib in zip(places, shares, strict=True)})
            good = set(process["bound"]) == {str(node) for node in places}
            why = "it is not bound to these nodes"
            found.append(_row("memory beside its vCPUs", shown, _on_nodes(process["bound"]) or None, good, why))
        good = live["caches"] == "passthrough" and guest["caches"] == guest["host_caches"]
        found.append(
            _row(
                "caches of the host",
                guest["host_caches"] or NOT_AVAILABLE,
                guest["caches"] or None,
                good,
                without_kvm if emulated else "the guest sees others",
            )
        )
    if profile["huge_pages"]:
        held = process["huge_bytes"]
        good = live["huge_pages"] and isinstance(held, int) and held > 0
        seen = f"{held // 2**20} MiB in use" if isinstance(held, int) else None
        found.append(
            _row(
                "memory in huge pages",
                f"{settings['memory_mib']} MiB",
                seen,
                good,
                refused.get("huge_pages", "QEMU holds none"),
            )
        )
    disks = live["disks"]
    for key, words in (("cache", "cache mode of the disks"), ("io", "disk I/O")):
        asked = profile[f"disk_{key}"]
        if asked != "default":
            modes = sorted({disk[key] or "default" for disk in disks})
            found.append(
                _row(
                    words,
                    asked,
                    ", ".join(modes),
                    modes == [asked],
                    refused.get(f"disk_{key}", "the domain says otherwise"),
                )
            )
    if profile["iothread"]:
        good = live["iothreads"] >= 1 and all(disk["iothread"] for disk in disks)
        seen = f"{live['iothreads']} for {sum(bool(disk['iothread']) for disk in disks)} of {len(disks)} disks"
        found.append(
            _row(
                "thread of its own for disk I/O",
                f"1 for {len(disks)} disks",
                seen,
                good,
                refused.get("iothread", "the domain has none"),
            )
        )
    if profile["pin_emulator"]:
        asked = settings["extra"]["emulator"]
        found.append(
            _row("QEMU's other threads", asked, process["emulator"], process["emulator"] == asked, "they run elsewhere")
        )
    if profile["vhost"]:
        seen = {True: "open", False: "not open", None: None}[process["vhost"]]
        found.append(
            _row(
                "vhost-net",
                "open",
                seen,
                process["vhost"] is True,
                without_kvm if emulated else "QEMU has not opened it",
            )
        )
    if profile["queues"] != 1:
        queues = settings["extra"]["queues"] or 1
        found.append(
            _row(
                "queues of the network card",
                str(queues),
                str(guest["queues"]),
                guest["queues"] == queues,
                "the guest's card has others",
            )
        )
    for address in profile["passthrough"]:
        good = address in live["devices"]
        found.append(
            _row(
                f"device {address}",
                "in the guest",
                "in the domain" if good else "missing",
                good,
                refused.get("passthrough", "it is not in the domain"),
            )
        )
    if profile.get("card"):
        address, seen = profile["card"]["address"], guest["card"]
        why = refused.get("card", "the guest's card has no link, or another address")
        found.append(_row("address of its card", address, seen, seen == address, why))
    return found

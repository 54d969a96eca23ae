"""A look at a machine that is up: what a profile asked for against what is seen in the guest and in QEMU's process.

Nothing is taken from a configuration but where neither shows it: then libvirt's domain is asked.
"""

import contextlib
import glob
import os
import re
from collections import Counter
from collections.abc import Mapping

from strata.host import observe, starting_state
from strata.host.observe import NOT_AVAILABLE
from strata.util.data_types import Fields, WantedMachine
from strata.util.errors import UserError
from strata.util.process import capture
from strata.util.units import numbers, ranges
from strata.vm import domain, libvirt, passthrough, ssh

DATA_LABEL = "strata-data"
# A line for each cache of the first CPU: its level, type and size.
_CACHES = """
for cache in /sys/devices/system/cpu/cpu0/cache/index*/; do
    if [ -e "$cache/size" ]; then echo "L$(cat "$cache/level") $(cat "$cache/type") $(cat "$cache/size")"; fi
done
"""
# Gives the sessions of ssh the declared limits, mounts the data disk where that was not done yet, and prints the
# numbers of queues (of the card by which it is reached) and nodes, and the caches.
_SCRIPT = f"""
for process in $(grep -l '^sshd' /proc/[0-9]*/comm 2>/dev/null); do
    process=${{process#/proc/}}
    prlimit --pid "${{process%/comm}}" {" ".join(starting_state.prlimit_words())} || true
done
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

    profile: complete.  refused: key → why it was left out.  Raises UserError where it runs on processors of the host
    to which the experiment is not held.
    """
    queues, nodes, *caches = inside(folder)
    known = observe.understand(observe.split(ssh.run(folder, observe.command(), check=False)))
    seen = {
        **domain.read(libvirt.virsh("dumpxml", wanted["name"])),
        **process_of(libvirt.process(wanted["name"])),
        "cpus": known["cpus"],
        "memory_bytes": known["memory_bytes"],
        "shape": [known[key] for key in ("sockets", "cores_per_socket", "threads_per_core")],
        "queues": int(queues),
        "nodes": max(1, int(nodes)),
        "caches": ", ".join(caches),
        "host_caches": ", ".join(capture(["sh", "-c", _CACHES]).stdout.splitlines()),
        "card": passthrough.give(folder, wanted) if wanted["card"] else None,
    }
    used = {
        number
        for cpus in [seen["emulator"], *seen["vcpus"].values()]
        for number in numbers(cpus or "")
    }
    if (mask := wanted["extra"]["mask"]) and not used <= set(numbers(mask)):
        raise UserError(
            f"the machine runs on the processors {ranges(used)}, and the experiment is held to {mask}"
        )
    return {
        "vcpus": known["cpus"],
        "memory_bytes": wanted["memory_mib"] * 2**20,
        "settings": rows(profile, wanted, seen, refused),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Versions of what runs the machine; "not available" where nobody says."""
    said = dict(
        re.findall(r"(library|hypervisor): \w+ ([\d.]+)", libvirt.virsh("version", check=False))
    )
    return {
        name: said.get(key, NOT_AVAILABLE)
        for name, key in (("libvirt", "library"), ("qemu", "hypervisor"))
    }


def process_of(pid: int | None, proc: str = "/proc") -> Fields:
    """What QEMU's process shows: ``{huge_mib, vcpus: {number: CPUs}, emulator: CPUs, vhost, bound}``.

    huge_mib is None where it is not known; `emulator` is the affinity of the main thread; `vhost` is
    whether it has that open, None where its open files cannot be read; `bound` is of :func:`bound`.
    """
    folder = f"{proc}/{pid}"
    files = observe.read_files(
        [f"{folder}/status", f"{folder}/numa_maps", *glob.glob(f"{folder}/task/*/status")]
    )
    main = observe.fields(files.pop(f"{folder}/status", ""))
    huge = observe.number(main.get("HugetlbPages"))
    facts: Fields = {
        "huge_mib": None if huge is None else huge // 1024,
        "vcpus": {},
        "emulator": main.get("Cpus_allowed_list"),
        "vhost": None,
        "bound": bound(files.pop(f"{folder}/numa_maps", "")),
    }
    for task in map(observe.fields, files.values()):
        if name := re.fullmatch(r"CPU (\d+)/(KVM|TCG)", task.get("Name", "")):
            facts["vcpus"][name[1]] = task.get("Cpus_allowed_list", NOT_AVAILABLE)
    with contextlib.suppress(OSError):
        facts["vhost"] = "/dev/vhost-net" in [
            os.readlink(f"{folder}/fd/{name}") for name in os.listdir(f"{folder}/fd")
        ]
    return facts


def bound(maps: str) -> dict[str, int]:
    """MiB in use by the memory node to which they are bound, from a process' numa_maps."""
    kib: Counter[str] = Counter()
    used = r"^\S+ bind(?:=\w+)?:(\d+) .*\bN\1=(\d+) .*kernelpagesize_kB=(\d+)"
    for node, pages, size in re.findall(used, maps, re.MULTILINE):
        kib[node] += int(pages) * int(size)
    return {node: count // 1024 for node, count in kib.items() if count >= 1024}


def _listed(form: str, pairs: Mapping[str, object]) -> str | None:
    """Pairs of a number and something in words, by number; None if there are none."""
    return (
        ", ".join(
            form.format(*pair) for pair in sorted(pairs.items(), key=lambda pair: int(pair[0]))
        )
        or None
    )


def _shape(*counts: int) -> str:
    names = ("sockets", "cores", "threads")
    return " × ".join(
        f"{count} {name if count > 1 else name[:-1]}"
        for count, name in zip(counts, names, strict=True)
    )


def rows(
    profile: Fields, settings: WantedMachine, seen: Fields, refused: dict[str, str]
) -> list[Fields]:
    """``[{name, asked, seen, applied, why}, …]``, one for each thing that the profile asks for.

    profile: complete.  settings: of :func:`strata.vm.settings.resolve`.  seen: of :func:`strata.vm.domain.read`, of
    :func:`process_of`, and of the guest ``{cpus, memory_bytes, shape: [sockets, cores of each, threads of each],
    queues, nodes, caches, host_caches, card}``.  refused: key of the profile → why it was left out before the start.
    """
    extra, mib, disks = settings["extra"], settings["memory_mib"], seen["disks"]
    without_kvm = "emulation does not offer it" if settings["driver"] == "qemu" else ""
    found: list[Fields] = []

    def row(
        key: str,
        name: str,
        asked: object,
        shown: object,
        applied: bool | None = None,
        why: str = "",
    ) -> None:
        """A row for what a key of the profile asks for; applied: whether it is, if that is not that both are equal."""
        good = shown == asked if applied is None else applied
        reason = None if good else refused.get(key) or why or "the machine does not show it"
        shown = NOT_AVAILABLE if shown is None else str(shown)
        found.append(
            {"name": name, "asked": str(asked), "seen": shown, "applied": good, "why": reason}
        )

    row("cpus", "vCPUs", settings["cpus"], seen["cpus"])
    size = 0 if seen["memory_bytes"] == NOT_AVAILABLE else seen["memory_bytes"] // 2**20
    managed = f"{size} MiB that the guest's kernel manages" if size else None
    row("memory", "memory", f"{mib} MiB", managed, 0.85 < size / mib <= 1)
    if profile["pin"]:
        row(
            "pin",
            "vCPUs pinned one to one",
            _listed("{}→{}", settings["affinity"]),
            _listed("{}→{}", seen["vcpus"]),
        )
    if profile["topology"] == "host":
        form, parts = (
            settings["topology"],
            [cell["memory"] for cell in settings["numa"] or [{"memory": mib}]],
        )
        why = "" if form else "the host's is uneven, or there are more vCPUs than CPUs"
        asked = _shape(*form.values()) if form else "the host's"
        shown = None if NOT_AVAILABLE in seen["shape"] else _shape(*seen["shape"])
        row("topology", "topology of the host", asked, shown, why=why)
        row("topology", "memory nodes", len(parts), seen["nodes"])
        if nodes := extra["memory_nodes"]:
            shares = {str(node): part for node, part in zip(nodes, parts, strict=True)}
            places, bound = (
                _listed("{1} MiB on node {0}", mibs) for mibs in (shares, seen["bound"])
            )
            row(
                "topology",
                "memory beside its vCPUs",
                places,
                bound,
                shares.keys() == seen["bound"].keys(),
            )
        caches = seen["host_caches"] or NOT_AVAILABLE
        row("topology", "caches of the host", caches, seen["caches"] or None, why=without_kvm)
    if profile["huge_pages"]:
        held = seen["huge_mib"]
        shown = None if held is None else f"{held} MiB in use"
        row("huge_pages", "memory in huge pages", f"{mib} MiB", shown, bool(held))
    for key, name in (("disk_cache", "cache mode of the disks"), ("disk_io", "disk I/O")):
        if profile[key] != "default":
            modes = {disk[key.removeprefix("disk_")] or "default" for disk in disks}
            row(key, name, profile[key], ", ".join(sorted(modes)))
    if profile["iothread"]:
        own = sum(bool(disk["iothread"]) for disk in disks)
        row(
            "iothread",
            "thread of its own for disk I/O",
            f"for {len(disks)} disks",
            f"for {own} disks",
        )
    if profile["pin_emulator"]:
        asked, cpus = extra["emulator"], seen["emulator"]
        row(
            "pin_emulator",
            "QEMU's other threads",
            asked,
            cpus,
            numbers(cpus or "") == numbers(asked),
        )
    if profile["vhost"]:
        vhost = {True: "open", False: "not open", None: None}[seen["vhost"]]
        row("vhost", "vhost-net", "open", vhost, why=without_kvm)
    if profile["queues"] != 1:
        row("queues", "queues of the network card", extra["queues"] or 1, seen["queues"])
    for address in profile["passthrough"]:
        there = "in the domain" if address in seen["devices"] else "missing"
        row("passthrough", f"device {address}", "in the domain", there)
    if profile.get("card"):
        row("card", "address of its card", profile["card"]["address"], seen["card"])
    return found

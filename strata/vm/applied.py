"""Whether a machine that is up has what its profile asks for, as the guest and QEMU show it.

libvirt's domain, which is a configuration, counts only for what neither of them shows.
"""

import contextlib
import glob
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from strata.host import observe, starting_state
from strata.host.observe import NOT_AVAILABLE
from strata.util.data_types import Fields, WantedMachine
from strata.util.errors import UserError
from strata.util.process import capture
from strata.util.units import format_ranges, parse_ranges
from strata.vm import domain, libvirt, passthrough, ssh

DATA_LABEL = "strata-data"
# Prints a line for each cache of the first CPU: its level, type and size.
_PRINT_CACHES = """
for cache in /sys/devices/system/cpu/cpu0/cache/index*/; do
    if [ -e "$cache/size" ]; then
        echo "L$(cat "$cache/level") $(cat "$cache/type") $(cat "$cache/size")"
    fi
done
"""
# Gives the sessions of ssh the declared limits, mounts the data disk where it is not mounted yet,
# and prints the number of queues of the card by which the guest is reached, the number of memory
# nodes, and the caches.
_GUEST_SCRIPT = f"""
for process in $(grep -l '^sshd' /proc/[0-9]*/comm 2>/dev/null); do
    process=${{process#/proc/}}
    prlimit --pid "${{process%/comm}}" {" ".join(starting_state.prlimit_options())} || true
done
mkdir -p /data
mountpoint -q /data || mount -o defaults LABEL={DATA_LABEL} /data || exit 1
address=$(echo "$SSH_CONNECTION" | cut -d' ' -f3)
card=$(ip -4 -o address | awk -v start="$address/" 'index($4, start) == 1 {{ print $2 }}')
ls -d "/sys/class/net/$card"/queues/rx-* | wc -l
ls -d /sys/devices/system/node/node[0-9]* 2>/dev/null | wc -l
{_PRINT_CACHES}
"""
# A memory area that is bound to one node, with its pages there and their size in KiB.
_BOUND_AREA = re.compile(
    r"^\S+ bind(?:=\w+)?:(\d+) .*\bN\1=(\d+) .*kernelpagesize_kB=(\d+)", re.MULTILINE
)


def prepare_guest(folder: str) -> list[str]:
    """Mount the guest's data disk and set its limits.

    Returns its numbers of queues and nodes, and its caches.
    """
    return ssh.run(folder, ["sh", "-c", _GUEST_SCRIPT]).splitlines()


def observe_machine(
    folder: str, wanted: WantedMachine, profile: Fields, refused: dict[str, str]
) -> Fields:
    """Prepare the guest and return the observed part of ``system.vm`` (docs/files.md).

    profile: complete.  refused: key of the profile → why it was left out before the start.

    Raises UserError where the machine runs on other processors than those to which the experiment
    is held.
    """
    queues, nodes, *caches = prepare_guest(folder)
    guest = observe.parse_facts(
        observe.split_files(ssh.run(folder, observe.print_command(), check=False))
    )
    host_caches = capture(["sh", "-c", _PRINT_CACHES]).stdout.splitlines()
    seen = {
        **domain.read(libvirt.virsh("dumpxml", wanted["name"])),
        **observe_process(libvirt.domain_process(wanted["name"])),
        "cpus": guest["cpus"],
        "memory_bytes": guest["memory_bytes"],
        "shape": [guest[key] for key in ("sockets", "cores_per_socket", "threads_per_core")],
        "queues": int(queues),
        "nodes": max(1, int(nodes)),
        "caches": ", ".join(caches),
        "host_caches": ", ".join(host_caches),
        "card": passthrough.set_address(folder, wanted) if wanted["card"] else None,
    }
    _require_mask(wanted["extra"]["mask"], seen)
    return {
        "vcpus": guest["cpus"],
        "memory_bytes": wanted["memory_mib"] * 2**20,
        "settings": compare_settings(profile, wanted, seen, refused),
        "versions": versions(),
    }


def _require_mask(mask: str | None, seen: Fields) -> None:
    """Raise UserError where QEMU's threads may run on processors that are not in the mask."""
    used: set[int] = set()
    for cpus in [seen["emulator"], *seen["vcpus"].values()]:
        used.update(parse_ranges(cpus or ""))
    if mask and not used <= set(parse_ranges(mask)):
        raise UserError(
            f"the machine runs on the processors {format_ranges(used)}, and the experiment is held to "
            f"{mask}"
        )


def versions() -> dict[str, str]:
    """Return the versions of libvirt and QEMU; "not available" where virsh does not print one."""
    printed = libvirt.virsh("version", check=False)
    by_name = dict(re.findall(r"(library|hypervisor): \w+ ([\d.]+)", printed))
    return {
        "libvirt": by_name.get("library", NOT_AVAILABLE),
        "qemu": by_name.get("hypervisor", NOT_AVAILABLE),
    }


def observe_process(pid: int | None, proc: str = "/proc") -> Fields:
    """Return what QEMU's process shows: ``{huge_mib, vcpus, emulator, vhost, bound}``.

    huge_mib: MiB in huge pages; None where the kernel does not count them.  vcpus: number of each →
    CPUs on which it may run.  emulator: CPUs of the main thread.  vhost: whether it uses vhost-net;
    None where its open files cannot be read.  bound: of :func:`bound_memory`.
    """
    folder = f"{proc}/{pid}"
    maps, status = f"{folder}/numa_maps", f"{folder}/status"
    texts = observe.read_files([status, maps, *glob.glob(f"{folder}/task/*/status")])
    process = observe.parse_fields(texts.pop(status, ""))
    huge_kib = observe.parse_number(process.get("HugetlbPages"))
    facts: Fields = {
        "huge_mib": None if huge_kib is None else huge_kib // 1024,
        "vcpus": {},
        "emulator": process.get("Cpus_allowed_list"),
        "vhost": None,
        "bound": bound_memory(texts.pop(maps, "")),
    }
    for thread in map(observe.parse_fields, texts.values()):
        if name := re.fullmatch(r"CPU (\d+)/(KVM|TCG)", thread.get("Name", "")):
            facts["vcpus"][name[1]] = thread.get("Cpus_allowed_list", NOT_AVAILABLE)
    with contextlib.suppress(OSError):
        opened = [os.readlink(f"{folder}/fd/{name}") for name in os.listdir(f"{folder}/fd")]
        facts["vhost"] = "/dev/vhost-net" in opened
    return facts


def bound_memory(numa_maps: str) -> dict[str, int]:
    """Return memory node → MiB in use that are bound to it, from a process' numa_maps.

    Less than 1 MiB is left out.
    """
    kib: Counter[str] = Counter()
    for node, pages, page_kib in _BOUND_AREA.findall(numa_maps):
        kib[node] += int(pages) * int(page_kib)
    return {node: count // 1024 for node, count in kib.items() if count >= 1024}


def compare_settings(
    profile: Fields, wanted: WantedMachine, seen: Fields, refused: dict[str, str]
) -> list[Fields]:
    """Return ``[{name, asked, seen, applied, why}, …]``, a row for each request of the profile.

    profile: complete.  wanted: of :func:`strata.vm.settings.resolve`.  seen: of
    :func:`strata.vm.domain.read` and :func:`observe_process`, and of the guest ``{cpus,
    memory_bytes, shape: [sockets, cores of each, threads of each], queues, nodes, caches,
    host_caches, card}``.  refused: key of the profile → why it was left out before the start.
    """
    rows = []
    for row in (
        *_size_rows(profile, wanted, seen),
        *_topology_rows(profile, wanted, seen),
        *_huge_page_rows(profile, wanted, seen),
        *_disk_rows(profile, seen),
        *_thread_rows(profile, wanted, seen),
        *_device_rows(profile, wanted, seen),
    ):
        key, why = row.pop("key"), row["why"]
        row["why"] = None
        if not row["applied"]:
            row["why"] = refused.get(key) or why or "the machine does not show it"
        rows.append(row)
    return rows


def _row(
    key: str, name: str, asked: object, seen: object, applied: bool | None = None, why: str = ""
) -> Fields:
    """Return a row for a key of the profile.

    seen: None where it cannot be seen.  applied: None where that is whether both values are equal.
    why: the reason why it may not be applied, where one is known.
    """
    return {
        "key": key,
        "name": name,
        "asked": str(asked),
        "seen": NOT_AVAILABLE if seen is None else str(seen),
        "applied": seen == asked if applied is None else applied,
        "why": why,
    }


def _size_rows(profile: Fields, wanted: WantedMachine, seen: Fields) -> Iterator[Fields]:
    """Yield rows for processors and memory."""
    yield _row("cpus", "vCPUs", wanted["cpus"], seen["cpus"])
    mib, managed = wanted["memory_mib"], 0
    if seen["memory_bytes"] != NOT_AVAILABLE:
        managed = seen["memory_bytes"] // 2**20
    text = f"{managed} MiB that the guest's kernel manages" if managed else None
    yield _row("memory", "memory", f"{mib} MiB", text, 0.85 < managed / mib <= 1)


def _huge_page_rows(profile: Fields, wanted: WantedMachine, seen: Fields) -> Iterator[Fields]:
    """Yield the row for huge pages."""
    if profile["huge_pages"]:
        held = seen["huge_mib"]
        text = None if held is None else f"{held} MiB in use"
        asked = f"{wanted['memory_mib']} MiB"
        yield _row("huge_pages", "memory in huge pages", asked, text, bool(held))


def _topology_rows(profile: Fields, wanted: WantedMachine, seen: Fields) -> Iterator[Fields]:
    """Yield rows for pinned processors, and for the host's topology, memory nodes and caches."""
    if profile["pin"]:
        asked, shown = _listed("{}→{}", wanted["affinity"]), _listed("{}→{}", seen["vcpus"])
        yield _row("pin", "vCPUs pinned one to one", asked, shown)
    if profile["topology"] != "host":
        return
    shape = wanted["topology"]
    why = "" if shape else "the host's is uneven, or there are more vCPUs than CPUs"
    asked = _shape(*shape.values()) if shape else "the host's"
    shown = None if NOT_AVAILABLE in seen["shape"] else _shape(*seen["shape"])
    yield _row("topology", "topology of the host", asked, shown, why=why)
    shares = [cell["memory"] for cell in wanted["numa"] or [{"memory": wanted["memory_mib"]}]]
    yield _row("topology", "memory nodes", len(shares), seen["nodes"])
    if nodes := wanted["extra"]["memory_nodes"]:
        by_node = {str(node): share for node, share in zip(nodes, shares, strict=True)}
        place = "{1} MiB on node {0}"
        asked, shown = _listed(place, by_node) or "", _listed(place, seen["bound"])
        same = by_node.keys() == seen["bound"].keys()
        yield _row("topology", "memory beside its vCPUs", asked, shown, same)
    caches = seen["host_caches"] or NOT_AVAILABLE
    why = _emulation_reason(wanted)
    yield _row("topology", "caches of the host", caches, seen["caches"] or None, why=why)


def _disk_rows(profile: Fields, seen: Fields) -> Iterator[Fields]:
    """Yield rows for the disks' cache mode, I/O and thread."""
    disks = seen["disks"]
    for key, name in (("disk_cache", "cache mode of the disks"), ("disk_io", "disk I/O")):
        if profile[key] != "default":
            modes = {disk[key.removeprefix("disk_")] or "default" for disk in disks}
            yield _row(key, name, profile[key], ", ".join(sorted(modes)))
    if profile["iothread"]:
        served = sum(bool(disk["iothread"]) for disk in disks)
        name = "thread of its own for disk I/O"
        yield _row("iothread", name, f"for {len(disks)} disks", f"for {served} disks")


def _thread_rows(profile: Fields, wanted: WantedMachine, seen: Fields) -> Iterator[Fields]:
    """Yield rows for QEMU's other threads."""
    if profile["pin_emulator"]:
        asked, cpus = wanted["extra"]["emulator"], seen["emulator"]
        same = parse_ranges(cpus or "") == parse_ranges(asked)
        yield _row("pin_emulator", "QEMU's other threads", asked, cpus, same)


def _device_rows(profile: Fields, wanted: WantedMachine, seen: Fields) -> Iterator[Fields]:
    """Yield rows for the network card and for devices that are passed through."""
    if profile["vhost"]:
        opened = {True: "open", False: "not open", None: None}[seen["vhost"]]
        yield _row("vhost", "vhost-net", "open", opened, why=_emulation_reason(wanted))
    if profile["queues"] != 1:
        queues = wanted["extra"]["queues"] or 1
        yield _row("queues", "queues of the network card", queues, seen["queues"])
    for address in profile["passthrough"]:
        state = "in the domain" if address in seen["devices"] else "missing"
        yield _row("passthrough", f"device {address}", "in the domain", state)
    if profile.get("card"):
        yield _row("card", "address of its card", profile["card"]["address"], seen["card"])


def _emulation_reason(wanted: WantedMachine) -> str:
    """Return why a setting that only KVM offers is not applied; empty under KVM."""
    return "emulation does not offer it" if wanted["driver"] == "qemu" else ""


def _listed(template: str, by_number: Mapping[str, object]) -> str | None:
    """Return numbers and their values as a text, in the order of the numbers.

    None if there are none.
    """
    pairs = sorted(by_number.items(), key=lambda pair: int(pair[0]))
    return ", ".join(template.format(*pair) for pair in pairs) or None


def _shape(*counts: int) -> str:
    """Return sockets, cores of each and threads of each as a text."""
    texts = []
    for count, name in zip(counts, ("sockets", "cores", "threads"), strict=True):
        texts.append(f"{count} {name if count > 1 else name[:-1]}")
    return " × ".join(texts)

"""Compare a running machine, as the guest and QEMU show it, with its profile's requests.

libvirt's domain, which is only a configuration, counts for what neither of the two shows.
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
# Sets the declared resource limits of the ssh sessions, mounts the data disk if it is not mounted,
# and prints the number of queues of the network interface that ssh uses, the number of memory
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
# In numa_maps, a memory area that is bound to one node: the node, the number of pages there, and
# their size in KiB.
_BOUND_AREA = re.compile(
    r"^\S+ bind(?:=\w+)?:(\d+) .*\bN\1=(\d+) .*kernelpagesize_kB=(\d+)", re.MULTILINE
)


def prepare_guest(folder: str) -> list[str]:
    """Mount the guest's data disk at /data, and set the resource limits of its ssh sessions.

    folder: the system's, with the ssh configuration.  It may be called again.
    Returns lines: the number of queues of the network interface, the number of memory nodes, then
    one for each cache of the first CPU.  Raises UserError if the disk cannot be mounted.
    """
    return ssh.run(folder, ["sh", "-c", _GUEST_SCRIPT]).splitlines()


def observe_machine(
    folder: str, requested: WantedMachine, profile: Fields, refused: dict[str, str]
) -> Fields:
    """Prepare the guest, and return the observed part of ``system.vm`` (docs/files.md).

    folder: the system's, with the ssh configuration.
    profile: the complete profile of the machine.
    refused: key of the profile → why the setting was left out before the start.
    Raises UserError if the machine may run on CPUs that the experiment does not use.
    """
    queues, nodes, *caches = prepare_guest(folder)
    guest = observe.parse_facts(
        observe.split_files(ssh.run(folder, observe.print_command(), check=False))
    )
    host_caches = capture(["sh", "-c", _PRINT_CACHES]).stdout.splitlines()
    observed = {
        **domain.read(libvirt.virsh("dumpxml", requested["name"])),
        **observe_process(libvirt.domain_process(requested["name"])),
        "cpus": guest["cpus"],
        "memory_bytes": guest["memory_bytes"],
        "shape": [guest[key] for key in ("sockets", "cores_per_socket", "threads_per_core")],
        "queues": int(queues),
        "nodes": max(1, int(nodes)),
        "caches": ", ".join(caches),
        "host_caches": ", ".join(host_caches),
        "card": passthrough.set_address(folder, requested) if requested["card"] else None,
    }
    _require_mask(requested["extra"]["mask"], observed)
    return {
        "vcpus": guest["cpus"],
        "memory_bytes": requested["memory_mib"] * 2**20,
        "settings": compare_settings(profile, requested, observed, refused),
        "versions": versions(),
    }


def _require_mask(mask: str | None, observed: Fields) -> None:
    """Raise UserError if QEMU's threads may run on CPUs outside the mask; None allows all."""
    used: set[int] = set()
    for cpus in [observed["emulator"], *observed["vcpus"].values()]:
        used.update(parse_ranges(cpus or ""))
    if mask and not used <= set(parse_ranges(mask)):
        raise UserError(
            f"the machine runs on the processors {format_ranges(used)}, and the experiment is held to "
            f"{mask}"
        )


def versions() -> dict[str, str]:
    """Return the versions of libvirt and QEMU; "not available" if virsh does not print one."""
    printed = libvirt.virsh("version", check=False)
    by_name = dict(re.findall(r"(library|hypervisor): \w+ ([\d.]+)", printed))
    return {
        "libvirt": by_name.get("library", NOT_AVAILABLE),
        "qemu": by_name.get("hypervisor", NOT_AVAILABLE),
    }


def observe_process(pid: int | None, proc: str = "/proc") -> Fields:
    """Return what QEMU's process shows: ``{huge_mib, vcpus, emulator, vhost, bound}``.

    pid: None, or a process that ended, shows nothing.
    huge_mib: MiB in huge pages; None if the kernel does not count them.
    vcpus: the number of each vCPU → the host's CPUs on which it may run.
    emulator: the host's CPUs on which the main thread may run; None if unknown.
    vhost: whether the process uses vhost-net; None if its open files cannot be read.
    bound: the result of :func:`bound_memory`.
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
    """Return memory node → MiB in use that are bound to the node.

    numa_maps: the content of the process's file of that name.  Nodes with less than 1 MiB are left
    out.
    """
    kib: Counter[str] = Counter()
    for node, pages, page_kib in _BOUND_AREA.findall(numa_maps):
        kib[node] += int(pages) * int(page_kib)
    return {node: count // 1024 for node, count in kib.items() if count >= 1024}


def compare_settings(
    profile: Fields, requested: WantedMachine, observed: Fields, refused: dict[str, str]
) -> list[Fields]:
    """Return ``[{name, asked, seen, applied, why}, …]``, a row for each request of the profile.

    profile: the complete profile of the machine.
    requested: the result of :func:`strata.vm.settings.resolve`.
    observed: the results of :func:`strata.vm.domain.read` and :func:`observe_process`, and of the guest
    ``{cpus, memory_bytes, shape: [sockets, cores of each, threads of each], queues, nodes, caches,
    host_caches, card}``.
    refused: key of the profile → why the setting was left out before the start.
    `why` is None if the setting is applied.  The records keep the rows in this order.
    """
    rows = []
    for row in (
        *_size_rows(profile, requested, observed),
        *_topology_rows(profile, requested, observed),
        *_huge_page_rows(profile, requested, observed),
        *_disk_rows(profile, observed),
        *_thread_rows(profile, requested, observed),
        *_device_rows(profile, requested, observed),
    ):
        key, why = row.pop("key"), row["why"]
        row["why"] = None
        if not row["applied"]:
            row["why"] = refused.get(key) or why or "the machine does not show it"
        rows.append(row)
    return rows


def _row(
    key: str,
    name: str,
    requested_text: object,
    observed: object,
    applied: bool | None = None,
    why: str = "",
) -> Fields:
    """Return a row for a key of the profile.

    name: the setting, as the records call it.
    observed: the observed value; None if it cannot be observed.
    applied: whether the setting is applied; None: it is if both values are equal.
    why: the reason if it is known why the setting may not be applied.
    """
    return {
        "key": key,
        "name": name,
        "requested": str(requested_text),
        "observed": NOT_AVAILABLE if observed is None else str(observed),
        "applied": observed == requested_text if applied is None else applied,
        "why": why,
    }


def _size_rows(profile: Fields, requested: WantedMachine, observed: Fields) -> Iterator[Fields]:
    """Yield the rows for the numbers of vCPUs and of MiB of memory.

    The guest's kernel manages less memory than the machine has: from 85 % on, it is as requested.
    """
    yield _row("cpus", "vCPUs", requested["cpus"], observed["cpus"])
    mib, managed = requested["memory_mib"], 0
    if observed["memory_bytes"] != NOT_AVAILABLE:
        managed = observed["memory_bytes"] // 2**20
    text = f"{managed} MiB that the guest's kernel manages" if managed else None
    yield _row("memory", "memory", f"{mib} MiB", text, 0.85 < managed / mib <= 1)


def _huge_page_rows(
    profile: Fields, requested: WantedMachine, observed: Fields
) -> Iterator[Fields]:
    """Yield the row for huge pages, if the profile requests them.

    The setting counts as applied if any of the machine's memory is in huge pages.
    """
    if profile["huge_pages"]:
        held = observed["huge_mib"]
        text = None if held is None else f"{held} MiB in use"
        requested_text = f"{requested['memory_mib']} MiB"
        yield _row("huge_pages", "memory in huge pages", requested_text, text, bool(held))


def _topology_rows(profile: Fields, requested: WantedMachine, observed: Fields) -> Iterator[Fields]:
    """Yield the rows for pinned vCPUs, and for the host's topology, memory nodes and caches."""
    if profile["pin"]:
        requested_text, shown = (
            _listed("{}→{}", requested["affinity"]),
            _listed("{}→{}", observed["vcpus"]),
        )
        yield _row("pin", "vCPUs pinned one to one", requested_text, shown)
    if profile["topology"] != "host":
        return
    shape = requested["topology"]
    why = "" if shape else "the host's is uneven, or there are more vCPUs than CPUs"
    requested_text = _shape(*shape.values()) if shape else "the host's"
    shown = None if NOT_AVAILABLE in observed["shape"] else _shape(*observed["shape"])
    yield _row("topology", "topology of the host", requested_text, shown, why=why)
    shares = [cell["memory"] for cell in requested["numa"] or [{"memory": requested["memory_mib"]}]]
    yield _row("topology", "memory nodes", len(shares), observed["nodes"])
    if nodes := requested["extra"]["memory_nodes"]:
        by_node = {str(node): share for node, share in zip(nodes, shares, strict=True)}
        place = "{1} MiB on node {0}"
        requested_text, shown = _listed(place, by_node) or "", _listed(place, observed["bound"])
        same = by_node.keys() == observed["bound"].keys()
        yield _row("topology", "memory beside its vCPUs", requested_text, shown, same)
    caches = observed["host_caches"] or NOT_AVAILABLE
    why = _emulation_reason(requested)
    yield _row("topology", "caches of the host", caches, observed["caches"] or None, why=why)


def _disk_rows(profile: Fields, observed: Fields) -> Iterator[Fields]:
    """Yield the rows for the disks' cache mode, I/O mode and I/O thread."""
    disks = observed["disks"]
    for key, name in (("disk_cache", "cache mode of the disks"), ("disk_io", "disk I/O")):
        if profile[key] != "default":
            modes = {disk[key.removeprefix("disk_")] or "default" for disk in disks}
            yield _row(key, name, profile[key], ", ".join(sorted(modes)))
    if profile["iothread"]:
        served = sum(bool(disk["iothread"]) for disk in disks)
        name = "thread of its own for disk I/O"
        yield _row("iothread", name, f"for {len(disks)} disks", f"for {served} disks")


def _thread_rows(profile: Fields, requested: WantedMachine, observed: Fields) -> Iterator[Fields]:
    """Yield the row for the CPUs of QEMU's other threads, if the profile pins them."""
    if profile["pin_emulator"]:
        requested_text, cpus = requested["extra"]["emulator"], observed["emulator"]
        same = parse_ranges(cpus or "") == parse_ranges(requested_text)
        yield _row("pin_emulator", "QEMU's other threads", requested_text, cpus, same)


def _device_rows(profile: Fields, requested: WantedMachine, observed: Fields) -> Iterator[Fields]:
    """Yield the rows for the network interface and for the devices that are passed through."""
    if profile["vhost"]:
        opened = {True: "open", False: "not open", None: None}[observed["vhost"]]
        yield _row("vhost", "vhost-net", "open", opened, why=_emulation_reason(requested))
    if profile["queues"] != 1:
        queues = requested["extra"]["queues"] or 1
        yield _row("queues", "queues of the network card", queues, observed["queues"])
    for address in profile["passthrough"]:
        state = "in the domain" if address in observed["devices"] else "missing"
        yield _row("passthrough", f"device {address}", "in the domain", state)
    if profile.get("card"):
        yield _row("card", "address of its card", profile["card"]["address"], observed["card"])


def _emulation_reason(requested: WantedMachine) -> str:
    """Return the reason why emulation does not apply a setting of KVM's; empty under KVM."""
    return "emulation does not offer it" if requested["driver"] == "qemu" else ""


def _listed(template: str, by_number: Mapping[str, object]) -> str | None:
    """Return numbers and their values as a text, in the order of the numbers.

    template: the text of one pair, with places for the number and for its value.
    None if there are no pairs.
    """
    pairs = sorted(by_number.items(), key=lambda pair: int(pair[0]))
    return ", ".join(template.format(*pair) for pair in pairs) or None


def _shape(*counts: int) -> str:
    """Return the text for the numbers of sockets, cores of each and threads of each."""
    texts = []
    for count, name in zip(counts, ("sockets", "cores", "threads"), strict=True):
        texts.append(f"{count} {name if count > 1 else name[:-1]}")
    return " × ".join(texts)

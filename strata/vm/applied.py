"""Compare a running machine, as the guest and QEMU show it, with its profile's requests.

libvirt's domain is only a configuration, and counts only for settings that neither of them shows.
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
from strata.util.process import capture_output
from strata.util.units import format_ranges, parse_ranges
from strata.vm import domain, libvirt, passthrough, ssh

# The label of the data disk's file system.
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
    prlimit --pid "${{process%/comm}}" {" ".join(starting_state.build_prlimit_options())} || true
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

    folder: the folder of the system, with the ssh configuration.
    A second call changes nothing.
    Returns the lines of :data:`_GUEST_SCRIPT`: the number of queues of the network interface, the
    number of memory nodes, then a line for each cache of the first CPU.  :func:`observe_machine`
    reads them in this order.
    Raises UserError if the disk cannot be mounted.
    """
    return ssh.run_in_machine(folder, ["sh", "-c", _GUEST_SCRIPT]).splitlines()


def observe_machine(
    folder: str, machine_settings: WantedMachine, profile: Fields, refusals: dict[str, str]
) -> Fields:
    """Prepare the guest, and return the observed part of ``system.vm`` (docs/files.md).

    folder: the folder of the system, with the ssh configuration.
    machine_settings: the settings that Vagrant and libvirt got.
    profile: the complete profile of the machine.
    refusals: key of the profile → why the setting was left out before the start.
    Mounts the data disk, and sets the address of a passed-through network card in the guest.
    The keys are `vcpus`, `memory_bytes`, `settings` and `versions`; the machine must answer by ssh.
    Raises UserError if the data disk cannot be mounted, the card has no link, or the machine may
    run on CPUs that the experiment does not use.
    """
    queues, nodes, *caches = prepare_guest(folder)
    # check=False: `tail` fails if a file does not exist, and its fact is then "not available".
    output = ssh.run_in_machine(folder, observe.build_file_print_command(), check=False)
    guest = observe.parse_system_facts(observe.split_printed_files(output))
    host_caches = capture_output(["sh", "-c", _PRINT_CACHES]).stdout.splitlines()
    observed: Fields = {
        **domain.parse_domain_settings(libvirt.run_virsh("dumpxml", machine_settings["name"])),
        **observe_qemu_process(libvirt.find_domain_process(machine_settings["name"])),
        "cpus": guest["cpus"],
        "memory_bytes": guest["memory_bytes"],
        "shape": [guest[key] for key in ("sockets", "cores_per_socket", "threads_per_core")],
        "queues": int(queues),
        # A kernel without NUMA shows no node.
        "nodes": max(1, int(nodes)),
        "caches": ", ".join(caches),
        "host_caches": ", ".join(host_caches),
        "card": None,
    }
    if machine_settings["card"]:
        observed["card"] = passthrough.set_card_address(folder, machine_settings)
    _require_cpus_within_mask(machine_settings["extra"]["mask"], observed)
    return {
        "vcpus": guest["cpus"],
        "memory_bytes": machine_settings["memory_mib"] * 2**20,
        "settings": compare_settings(profile, machine_settings, observed, refusals),
        "versions": read_libvirt_versions(),
    }


def _require_cpus_within_mask(mask: str | None, observed: Fields) -> None:
    """Check that QEMU's threads run only on the CPUs that the experiment is restricted to.

    mask: a list of these CPUs, such as "0-1,3"; None: all.
    observed: the result of :func:`observe_qemu_process`; a CPU list of None is not checked.
    Raises UserError if a thread may run on another CPU.
    """
    machine_cpus: set[int] = set()
    for cpu_list in [observed["emulator"], *observed["vcpus"].values()]:
        machine_cpus.update(parse_ranges(cpu_list or ""))
    if mask and not machine_cpus <= set(parse_ranges(mask)):
        raise UserError(
            f"the machine runs on the processors {format_ranges(machine_cpus)}, and the experiment "
            f"is held to {mask}"
        )


def read_libvirt_versions() -> dict[str, str]:
    """Return the versions of libvirt and QEMU as ``{libvirt, qemu}``.

    A version that virsh does not print is "not available".
    """
    output = libvirt.run_virsh("version", check=False)
    # For example "Using library: libvirt 9.0.0" and "Running hypervisor: QEMU 7.2.9".
    versions = dict(re.findall(r"(library|hypervisor): \w+ ([\d.]+)", output))
    return {
        "libvirt": versions.get("library", NOT_AVAILABLE),
        "qemu": versions.get("hypervisor", NOT_AVAILABLE),
    }


def observe_qemu_process(pid: int | None, proc: str = "/proc") -> Fields:
    """Return facts of QEMU's process on the host: ``{huge_mib, vcpus, emulator, vhost, bound}``.

    pid: the process ID.  If it is None or the process has ended, all values are None or empty.
    proc: the folder of the proc file system.
    huge_mib: MiB in huge pages; None if the kernel does not count them.
    vcpus: the number of each vCPU, as text → the host's CPUs that it may run on, as in "0-1,3".
    emulator: the host's CPUs that the main thread may run on; None if unknown.
    vhost: whether the process uses vhost-net; None if its open files cannot be read.
    bound: the result of :func:`parse_bound_memory`.
    """
    folder = f"{proc}/{pid}"
    maps = f"{folder}/numa_maps"
    status = f"{folder}/status"
    files = observe.read_files([status, maps])
    process_status = observe.parse_named_values(files.get(status, ""))
    huge_kib = observe.parse_number(process_status.get("HugetlbPages"))
    facts: Fields = {
        "huge_mib": None if huge_kib is None else huge_kib // 1024,
        "vcpus": {},
        "emulator": process_status.get("Cpus_allowed_list"),
        "vhost": None,
        "bound": parse_bound_memory(files.get(maps, "")),
    }
    for text in observe.read_files(glob.glob(f"{folder}/task/*/status")).values():
        thread_status = observe.parse_named_values(text)
        # QEMU names the thread of a vCPU "CPU 0/KVM" or "CPU 0/TCG".
        if match := re.fullmatch(r"CPU (\d+)/(KVM|TCG)", thread_status.get("Name", "")):
            facts["vcpus"][match[1]] = thread_status.get("Cpus_allowed_list", NOT_AVAILABLE)
    # Only root may list the open files of root's process.
    with contextlib.suppress(OSError):
        open_paths = [os.readlink(f"{folder}/fd/{name}") for name in os.listdir(f"{folder}/fd")]
        facts["vhost"] = "/dev/vhost-net" in open_paths
    return facts


def parse_bound_memory(numa_maps: str) -> dict[str, int]:
    """Return a process's memory that is bound to memory nodes: node, as digits → MiB in use.

    numa_maps: the content of the process's file of this name in /proc.
    MiB are rounded down.  Nodes with less than 1 MiB are left out.
    """
    kib_by_node: Counter[str] = Counter()
    for node, pages, page_kib in _BOUND_AREA.findall(numa_maps):
        kib_by_node[node] += int(pages) * int(page_kib)
    return {node: kib // 1024 for node, kib in kib_by_node.items() if kib >= 1024}


def compare_settings(
    profile: Fields, machine_settings: WantedMachine, observed: Fields, refusals: dict[str, str]
) -> list[Fields]:
    """Return ``[{name, requested, observed, applied, why}, …]``, a row per request of the profile.

    profile: the complete profile of the machine.
    machine_settings: the result of :func:`strata.vm.settings.resolve_machine_settings`.
    observed: the results of :func:`strata.vm.domain.parse_domain_settings` and
    :func:`observe_qemu_process`, and the facts of the guest, ``{cpus, memory_bytes, shape:
    [sockets, cores of each, threads of each], queues, nodes, caches, host_caches, card}``.
    refusals: key of the profile → why the setting was left out before the start.
    `why` is None if the setting is applied.  The records keep the rows in this order.
    """
    rows = []
    # Each of these rows has its `key` of the profile, which the records leave out.
    for row in (
        *_build_size_rows(profile, machine_settings, observed),
        *_build_topology_rows(profile, machine_settings, observed),
        *_build_huge_page_rows(profile, machine_settings, observed),
        *_build_disk_rows(profile, observed),
        *_build_thread_rows(profile, machine_settings, observed),
        *_build_device_rows(profile, machine_settings, observed),
    ):
        key = row.pop("key")
        reason = refusals.get(key) or row["why"] or "the machine does not show it"
        row["why"] = None if row["applied"] else reason
        rows.append(row)
    return rows


def _build_setting_row(
    key: str,
    name: str,
    requested_value: object,
    observed_value: object,
    is_applied: bool | None = None,
    why: str = "",
) -> Fields:
    """Return the row of a setting, ``{key, name, requested, observed, applied, why}``.

    key: the key of the profile, by which :func:`compare_settings` looks for a refusal.
    name: the setting's name in the records.
    requested_value: the requested value as text, or a number.
    observed_value: the observed value, of the same type; None if it cannot be observed.
    is_applied: whether the setting is applied; None: it is applied if both values are equal.
    why: the reason for the case that the setting is not applied; empty if none is known.
    """
    if is_applied is None:
        is_applied = observed_value == requested_value
    return {
        "key": key,
        "name": name,
        "requested": str(requested_value),
        "observed": NOT_AVAILABLE if observed_value is None else str(observed_value),
        "applied": is_applied,
        "why": why,
    }


def _build_size_rows(
    profile: Fields, machine_settings: WantedMachine, observed: Fields
) -> Iterator[Fields]:
    """Yield the rows for the number of vCPUs and the size of the memory.

    The guest's kernel manages less memory than the machine has, since it reserves some for itself.
    Memory counts as applied if the kernel manages more than 85 % of it.
    """
    yield _build_setting_row("cpus", "vCPUs", machine_settings["cpus"], observed["cpus"])
    machine_mib = machine_settings["memory_mib"]
    observed_text = None
    is_applied = False
    if observed["memory_bytes"] != NOT_AVAILABLE:
        managed_mib = observed["memory_bytes"] // 2**20
        observed_text = f"{managed_mib} MiB that the guest's kernel manages"
        is_applied = 0.85 < managed_mib / machine_mib <= 1
    yield _build_setting_row("memory", "memory", f"{machine_mib} MiB", observed_text, is_applied)


def _build_huge_page_rows(
    profile: Fields, machine_settings: WantedMachine, observed: Fields
) -> Iterator[Fields]:
    """Yield the row for huge pages, if the profile requests them.

    The setting counts as applied if any of the machine's memory is in huge pages.
    """
    if profile["huge_pages"]:
        huge_mib = observed["huge_mib"]
        observed_text = None if huge_mib is None else f"{huge_mib} MiB in use"
        requested_text = f"{machine_settings['memory_mib']} MiB"
        yield _build_setting_row(
            "huge_pages", "memory in huge pages", requested_text, observed_text, bool(huge_mib)
        )


def _build_topology_rows(
    profile: Fields, machine_settings: WantedMachine, observed: Fields
) -> Iterator[Fields]:
    """Yield the rows for pinned vCPUs, and for the host's topology, memory nodes and caches.

    Only settings that the profile requests have rows.  Several rows have the key `topology`.
    """
    if profile["pin"]:
        requested_pins = _format_pairs("{}→{}", machine_settings["affinity"])
        observed_pins = _format_pairs("{}→{}", observed["vcpus"])
        yield _build_setting_row("pin", "vCPUs pinned one to one", requested_pins, observed_pins)
    if profile["topology"] != "host":
        return
    requested_shape = "the host's"
    why = "the host's is uneven, or there are more vCPUs than CPUs"
    if shape := machine_settings["topology"]:
        # The order of the values is that of settings.compute_cpu_topology and of observe_machine.
        requested_shape = _format_topology(*shape.values())
        why = ""
    observed_shape = None
    if NOT_AVAILABLE not in observed["shape"]:
        observed_shape = _format_topology(*observed["shape"])
    yield _build_setting_row(
        "topology", "topology of the host", requested_shape, observed_shape, why=why
    )
    # Without memory nodes, the guest has a single one with all its memory.
    guest_nodes = machine_settings["numa"] or [{"memory": machine_settings["memory_mib"]}]
    yield _build_setting_row("topology", "memory nodes", len(guest_nodes), observed["nodes"])
    if host_nodes := machine_settings["extra"]["memory_nodes"]:
        mib_by_node = {
            str(host_node): guest_node["memory"]
            for host_node, guest_node in zip(host_nodes, guest_nodes, strict=True)
        }
        template = "{1} MiB on node {0}"
        requested_memory = _format_pairs(template, mib_by_node)
        observed_memory = _format_pairs(template, observed["bound"])
        # The amounts are not compared: only memory in use is bound.
        is_applied = mib_by_node.keys() == observed["bound"].keys()
        name = "memory beside its vCPUs"
        yield _build_setting_row("topology", name, requested_memory, observed_memory, is_applied)
    host_caches = observed["host_caches"] or NOT_AVAILABLE
    guest_caches = observed["caches"] or None
    why = _explain_missing_kvm(machine_settings)
    yield _build_setting_row("topology", "caches of the host", host_caches, guest_caches, why=why)


def _build_disk_rows(profile: Fields, observed: Fields) -> Iterator[Fields]:
    """Yield the rows for the disks' cache mode, I/O mode and I/O thread.

    Only settings that the profile requests have rows.
    """
    disks = observed["disks"]
    for key, name in (("disk_cache", "cache mode of the disks"), ("disk_io", "disk I/O")):
        if profile[key] != "default":
            modes = {disk[key.removeprefix("disk_")] or "default" for disk in disks}
            yield _build_setting_row(key, name, profile[key], ", ".join(sorted(modes)))
    if profile["iothread"]:
        disks_with_thread = [disk for disk in disks if disk["iothread"]]
        name = "thread of its own for disk I/O"
        requested_text = f"for {len(disks)} disks"
        observed_text = f"for {len(disks_with_thread)} disks"
        yield _build_setting_row("iothread", name, requested_text, observed_text)


def _build_thread_rows(
    profile: Fields, machine_settings: WantedMachine, observed: Fields
) -> Iterator[Fields]:
    """Yield the row for the CPUs of QEMU's other threads, if the profile pins them."""
    if profile["pin_emulator"]:
        requested_cpus = machine_settings["extra"]["emulator"]
        observed_cpus = observed["emulator"]
        # One list of CPUs can be written in several forms.
        is_applied = parse_ranges(observed_cpus or "") == parse_ranges(requested_cpus)
        yield _build_setting_row(
            "pin_emulator", "QEMU's other threads", requested_cpus, observed_cpus, is_applied
        )


def _build_device_rows(
    profile: Fields, machine_settings: WantedMachine, observed: Fields
) -> Iterator[Fields]:
    """Yield the rows for the network interface and for the devices that are passed through.

    Only settings that the profile requests have rows.
    """
    if profile["vhost"]:
        device_state = {True: "open", False: "not open", None: None}[observed["vhost"]]
        why = _explain_missing_kvm(machine_settings)
        yield _build_setting_row("vhost", "vhost-net", "open", device_state, why=why)
    if profile["queues"] != 1:
        queues = machine_settings["extra"]["queues"] or 1
        yield _build_setting_row("queues", "queues of the network card", queues, observed["queues"])
    for address in profile["passthrough"]:
        state = "in the domain" if address in observed["devices"] else "missing"
        yield _build_setting_row("passthrough", f"device {address}", "in the domain", state)
    if profile.get("card"):
        yield _build_setting_row(
            "card", "address of its card", profile["card"]["address"], observed["card"]
        )


def _explain_missing_kvm(machine_settings: WantedMachine) -> str:
    """Return why a setting that needs KVM is not applied under emulation; empty under KVM."""
    return "emulation does not offer it" if machine_settings["driver"] == "qemu" else ""


def _format_pairs(template: str, by_number: Mapping[str, object]) -> str | None:
    """Return pairs of a number and its value as a text, ordered by number; None if there are none.

    template: the format of one pair, with {0} for the number and {1} for its value.
    by_number: number, as digits → value.
    The text is, for example, "0→0, 1→2".
    """
    if not by_number:
        return None
    numbers = sorted(by_number, key=int)
    return ", ".join(template.format(number, by_number[number]) for number in numbers)


def _format_topology(*counts: int) -> str:
    """Return a text such as "1 socket × 2 cores × 1 thread".

    counts: the numbers of sockets, cores of each socket and threads of each core.
    """
    phrases = []
    for count, name in zip(counts, ("socket", "core", "thread"), strict=True):
        phrases.append(f"{count} {name}s" if count > 1 else f"{count} {name}")
    return " × ".join(phrases)

"""Compute all settings of a virtual machine from its profile, the host and the accelerator.

The functions read no file and change nothing.

``vagrant/Vagrantfile`` reads the result.  What Vagrant cannot write, :mod:`strata.vm.domain` adds
to libvirt's domain before the machine starts.
"""

import math
from collections import Counter
from typing import Any

from strata.host.sizing import select_value_at_scale
from strata.util.data_types import Fields, WantedMachine
from strata.util.units import parse_size

GIB = 1024**3
MIB = 1024**2

# Without these kernel arguments, a guest distrusts the emulated clock, and takes a busy host for a
# stuck CPU.
EMULATED_ARGUMENTS = "tsc=reliable no_timer_check nowatchdog rcupdate.rcu_cpu_stall_suppress=1"
# The value of `memory` that gives a machine as much as the workloads need.
NEEDED = "needed"
# The largest share of such a machine's memory that the workloads may fill: its kernel needs some.
MAX_MEMORY_SHARE = 0.9
# The least memory of such a machine, in GiB.
MIN_GIB = 4
# The settings that a profile leaves out; schemas/vm.schema.json explains each.
DEFAULTS: dict[str, Any] = {
    "cpus": "host",
    "memory": "host",
    "pin": False,
    "topology": "flat",
    "huge_pages": False,
    "disk_cache": "default",
    "disk_io": "default",
    "iothread": False,
    "pin_emulator": False,
    "vhost": False,
    "queues": 1,
    "data_disk": "24GiB",
    "passthrough": [],
}


def complete_profile(profile: Fields | None, scale: str, memory_bytes: int = 0) -> Fields:
    """Return a profile with all its settings, each with its value at this scale.

    The result is in the plan, which identifies cells: if a default changes, they are measured
    again.
    profile: the settings in config.yaml; None: all settings have their defaults.
    scale: the name of the experiment's scale.
    memory_bytes: the memory of the largest workload, for a machine with ``memory: needed``.
    """
    merged = DEFAULTS | (profile or {})
    settings = {key: select_value_at_scale(value, scale) for key, value in merged.items()}
    if settings["memory"] == NEEDED:
        gib = max(MIN_GIB, math.ceil(memory_bytes / MAX_MEMORY_SHARE / GIB))
        settings["memory"] = f"{gib}GiB"
    return settings


def compute_spare_memory(total: int) -> int:
    """Return the bytes of memory that a host can give to machines, a multiple of 64 MiB.

    total: the host's memory in bytes.
    The host keeps an eighth for its kernel, its page cache and QEMU: at least 2 GiB, but never more
    than half.  Other numbers would change the memory, and so the results, of machines whose profile
    has ``memory: host``.
    """
    host_bytes = max(total // 8, 2 * GIB)
    spare_bytes = max(total - host_bytes, total // 2)
    return spare_bytes // (64 * MIB) * (64 * MIB)


def compute_cpu_topology(cpus: list[Fields]) -> dict[str, int] | None:
    """Return ``{sockets, cores, threads}`` of CPUs: cores of each socket, threads of each core.

    cpus: CPUs of the host, as :func:`strata.host.capacity.read_topology` returns them; their keys
    `socket` and `core` are read.
    Returns None if the CPUs are unevenly distributed, so that three numbers do not describe them.
    vagrant/Vagrantfile reads the result, and :mod:`strata.vm.applied` relies on its order.
    """
    threads_of_core = Counter((cpu["socket"], cpu["core"]) for cpu in cpus)
    cores_of_socket = Counter(socket for socket, _ in threads_of_core)
    thread_counts = set(threads_of_core.values())
    core_counts = set(cores_of_socket.values())
    if len(thread_counts) != 1 or len(core_counts) != 1:
        return None
    return {
        "sockets": len(cores_of_socket),
        "cores": core_counts.pop(),
        "threads": thread_counts.pop(),
    }


def _divide_memory_by_node(cpus: list[Fields], memory_mib: int) -> list[Fields]:
    """Return ``[{cpus, memory}, …]``, the guest's memory nodes: a range of vCPUs, and MiB.

    cpus: the host's CPU of each vCPU, ordered by node.
    memory_mib: the guest's memory.
    Each node's memory is proportional to its number of vCPUs, in whole huge pages of 2 MiB; the
    last node also gets the remainder.  vagrant/Vagrantfile and strata.vm.hugepages read the keys.
    """
    nodes: list[Fields] = []
    first = 0
    for count in Counter(cpu["node"] for cpu in cpus).values():
        share = memory_mib * count // len(cpus) // 2 * 2
        nodes.append({"cpus": f"{first}-{first + count - 1}", "memory": share})
        first += count
    nodes[-1]["memory"] += memory_mib - sum(node["memory"] for node in nodes)
    return nodes


def _list_machine_cpus(
    part: int, vcpus: int, topology: list[Fields], machine_count: int
) -> list[Fields]:
    """Return the host's CPU for each vCPU of one of several equal machines.

    part: the machine's number, from 0.
    vcpus: its number of vCPUs.
    topology: the host's CPUs, in the order in which machines get them.
    machine_count: the number of machines.
    Machines share CPUs only if the host has fewer CPUs than all machines have vCPUs.
    """
    first = part * max(_count_cpus_per_machine(topology, machine_count), vcpus)
    return [topology[(first + number) % len(topology)] for number in range(vcpus)]


def _count_cpus_per_machine(topology: list[Fields], machine_count: int) -> int:
    """Return how many of the host's CPUs each of several equal machines gets; at least one.

    topology: the host's CPUs.
    machine_count: the number of machines.
    If the division leaves a remainder, these CPUs belong to no machine.
    """
    return max(1, len(topology) // machine_count)


def resolve_machine_settings(
    profile: Fields,
    topology: list[Fields],
    memory_bytes: int,
    accelerator: str,
    part: int = 0,
    machine_count: int = 1,
    mask: str | None = None,
) -> WantedMachine:
    """Return all settings of a machine that follow from its profile and the host.

    profile: a complete profile, as :func:`complete_profile` returns it.
    topology: the host's CPUs, as :func:`strata.host.capacity.read_topology` returns them.
    memory_bytes: the host's memory.
    accelerator: "kvm" or "tcg" (emulation).
    part: the machine's number, from 0.
    machine_count: the number of equal machines, which share CPUs and memory evenly.
    mask: a list such as "0-1,3" of the CPUs that the experiment is restricted to; None: all.
    A setting that does not apply is None or empty.  vagrant/Vagrantfile relies on the keys.  A
    snapshot fits only machines whose settings are all equal.
    :func:`strata.vm.domain.add_domain_settings` reads `extra`, except the kernel's `arguments`.
    """
    uses_kvm = accelerator == "kvm"
    vcpus = _count_cpus_per_machine(topology, machine_count)
    if profile["cpus"] != "host":
        vcpus = int(profile["cpus"])
    cpus = _list_machine_cpus(part, vcpus, topology, machine_count)
    memory_mib = _resolve_memory(profile["memory"], memory_bytes, machine_count)
    guest_topology = None
    if profile["topology"] == "host" and vcpus <= len(topology):
        guest_topology = compute_cpu_topology(cpus)
    # The guest has memory nodes only if it has the host's topology.
    guest_nodes = None
    host_nodes = None
    if guest_topology:
        guest_nodes = _divide_memory_by_node(cpus, memory_mib)
        host_nodes = _list_host_nodes(cpus, topology) if profile["pin"] else None
    affinity = {}
    if profile["pin"]:
        affinity = {str(vcpu): str(cpu["cpu"]) for vcpu, cpu in enumerate(cpus)}
    emulator_cpus = None
    if profile["pin_emulator"]:
        emulator_cpus = _list_emulator_cpus(vcpus, topology, part, machine_count)
    disk_modes = {}
    for key in ("cache", "io"):
        if profile[f"disk_{key}"] != "default":
            disk_modes[key] = profile[f"disk_{key}"]
    queues = vcpus if profile["queues"] == "cpus" else int(profile["queues"])
    return {
        "cpus": vcpus,
        "memory_mib": memory_mib,
        "driver": "kvm" if uses_kvm else "qemu",
        "cpu": _choose_cpu_model(profile["topology"], uses_kvm),
        "topology": guest_topology,
        "affinity": affinity,
        "numa": guest_nodes,
        "huge_pages": profile["huge_pages"],
        "disk": disk_modes,
        "data_disk_bytes": parse_size(profile["data_disk"]),
        "passthrough": profile["passthrough"],
        "card": profile.get("card"),
        "extra": {
            # All threads that the profile does not pin run on these CPUs.
            "mask": mask,
            # Only the CPU model host-passthrough can show the host's caches.
            "host_caches": guest_topology is not None and uses_kvm,
            "emulator": emulator_cpus,
            "iothread": profile["iothread"],
            # QEMU under emulation has no vhost-net.
            "vhost": profile["vhost"] and uses_kvm,
            "queues": queues if queues > 1 else None,
            "memory_nodes": host_nodes,
            "arguments": None if uses_kvm else EMULATED_ARGUMENTS,
        },
    }


def _resolve_memory(profile_memory: str, memory_bytes: int, machine_count: int) -> int:
    """Return the MiB of memory of one of several equal machines, in whole huge pages of 2 MiB.

    profile_memory: the size in the profile, such as "2GiB"; "host": an equal share of the memory
    that the host spares.
    memory_bytes: the host's memory.
    machine_count: the number of machines, at least 1.
    The result is rounded down.
    """
    if profile_memory == "host":
        machine_bytes = compute_spare_memory(memory_bytes) // machine_count
    else:
        machine_bytes = parse_size(profile_memory)
    return machine_bytes // MIB // 2 * 2


def _choose_cpu_model(topology: str, uses_kvm: bool) -> Fields:
    """Return libvirt's CPU model, ``{mode, features}``; under emulation also `model`.

    topology: the profile's topology, "flat" or "host"; for "host", the guest's CPU must be equal to
    the host's.
    uses_kvm: whether the machine runs under KVM; otherwise it is emulated.
    vagrant/Vagrantfile reads the keys.
    """
    if not uses_kvm:
        # A model without AVX, whose emulation is slow, and without cx16: QEMU 7.2 corrupts flags
        # when it emulates cmpxchg16b, and Linux 6.12 panics.
        return {
            "mode": "custom",
            "model": "Nehalem",
            "features": [{"name": "cx16", "policy": "disable"}],
        }
    return {"mode": "host-passthrough" if topology == "host" else "host-model", "features": []}


def _list_emulator_cpus(vcpus: int, topology: list[Fields], part: int, machine_count: int) -> str:
    """Return the CPUs for QEMU's other threads, as a list separated by commas.

    vcpus: the number of vCPUs of each machine.
    topology: the host's CPUs, in the order in which machines get them.
    part: the machine's number, from 0.
    machine_count: the number of machines.
    The list has the CPUs without a vCPU of any machine, for example "2,3".  If there are none, it
    is the first CPU of this machine.
    """
    vcpu_cpus: set[int] = set()
    for number in range(machine_count):
        cpus = _list_machine_cpus(number, vcpus, topology, machine_count)
        vcpu_cpus.update(cpu["cpu"] for cpu in cpus)
    free_cpus = sorted({cpu["cpu"] for cpu in topology} - vcpu_cpus)
    first_cpu = _list_machine_cpus(part, vcpus, topology, machine_count)[0]["cpu"]
    return ",".join(map(str, free_cpus or [first_cpu]))


def _list_host_nodes(cpus: list[Fields], topology: list[Fields]) -> list[int] | None:
    """Return the host's memory node to which each of the guest's memory nodes is bound, in order.

    cpus: the host's CPU of each vCPU, ordered by node.
    topology: all CPUs of the host.
    Returns None if the host has one memory node.
    """
    if len({cpu["node"] for cpu in topology}) == 1:
        return None
    return list(dict.fromkeys(cpu["node"] for cpu in cpus))

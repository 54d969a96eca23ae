"""A machine's settings follow from its profile and the host, under KVM and under emulation."""

import tuned

from strata.host import capacity
from strata.vm import settings

GIB = 2**30


def cpus(sockets=1, cores=2):
    """The CPUs of a host as strata.host.capacity gives them, with a memory node for each socket."""
    every = [(socket, core) for socket in range(sockets) for core in range(cores)]
    return [
        {"cpu": number, "socket": socket, "core": core, "node": socket}
        for number, (socket, core) in enumerate(every)
    ]


TUNED = {**tuned.PROFILE, "memory": "host", "passthrough": []}


def resolve(profile, topology=None, accelerator="kvm", memory=256 * GIB, **more):
    return settings.resolve_machine_settings(
        settings.complete_profile(profile, "paper"), topology or cpus(), memory, accelerator, **more
    )


def test_memory_is_bound_to_nodes_where_vcpus_stay_on_them():
    def nodes(host, **profile):
        return resolve({**TUNED, **profile}, host)["extra"]["memory_nodes"]

    two = cpus(2, 2)
    assert nodes(two) == [0, 1]
    assert nodes(two, cpus=2) == [0]
    assert nodes(cpus(1, 4)) is None
    assert nodes(two, pin=False) is None
    assert nodes(two, topology="flat") is None
    machines = [resolve(TUNED, two, part=part, machine_count=2) for part in range(2)]
    assert [machine["extra"]["memory_nodes"] for machine in machines] == [[0], [1]]


def test_emulation_never_asks_for_what_only_hardware_has():
    machine = resolve(TUNED, accelerator="tcg")
    assert machine["driver"] == "qemu"
    assert machine["cpu"] == {
        "mode": "custom",
        "model": "Nehalem",
        "features": [{"name": "cx16", "policy": "disable"}],
    }
    assert "no_timer_check" in machine["extra"]["arguments"]
    assert machine["topology"] == {"sockets": 1, "cores": 2, "threads": 1}
    assert not machine["extra"]["host_caches"]
    assert not machine["extra"]["vhost"]


def test_equal_machines_share_the_host_without_overlap():
    machines = [resolve({"pin": True}, cpus(2, 8), part=part, machine_count=8) for part in range(8)]
    assert {machine["cpus"] for machine in machines} == {2}
    used = [cpu for machine in machines for cpu in machine["affinity"].values()]
    assert sorted(used, key=int) == [str(cpu) for cpu in range(16)]
    assert 8 * machines[0]["memory_mib"] * 2**20 <= settings.compute_spare_memory(256 * GIB)


def test_more_machines_than_cpus_take_turns_and_none_has_more_than_another():
    machines = [resolve({"pin": True}, cpus(1, 2), part=part, machine_count=4) for part in range(4)]
    assert [list(machine["affinity"].values()) for machine in machines] == [
        ["0"],
        ["1"],
        ["0"],
        ["1"],
    ]


# Two sockets with a memory node each, as `lscpu --parse=CPU,SOCKET,CORE,NODE` prints them.
LSCPU = """# CPU,Socket,Core,Node
0,0,0,0
1,1,1,1
2,0,2,0
3,1,3,1
4,0,0,0
5,1,1,1
6,0,2,0
7,1,3,1
8,1,4,1
"""


def test_the_topology_is_as_lscpu_tells_it():
    cpus_found = capacity.parse_topology(LSCPU, set(range(8)))
    assert [cpu["cpu"] for cpu in cpus_found] == [0, 4, 2, 6, 1, 5, 3, 7]
    assert [cpu["node"] for cpu in cpus_found] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert settings.compute_cpu_topology(cpus_found) == {"sockets": 2, "cores": 2, "threads": 2}
    assert settings.compute_cpu_topology(cpus_found[:3]) is None
    assert settings.compute_cpu_topology(capacity.parse_topology("0,,,\n1,,,\n", {0, 1})) == {
        "sockets": 1,
        "cores": 2,
        "threads": 1,
    }
    # Where lscpu prints nothing usable, each CPU is a core of its own.
    for text in ("", "0\n1,1\n", "0,-,x,\n1,0,1,0\n", "words\n\0,\n1,,,\n"):
        assert settings.compute_cpu_topology(capacity.parse_topology(text, {0, 1})) == {
            "sockets": 1,
            "cores": 2,
            "threads": 1,
        }
    assert len(capacity.read_topology()) == capacity.read_host_facts()["cpus"]

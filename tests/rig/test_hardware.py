"""A host of two sockets and memory nodes, with an SR-IOV card behind an IOMMU."""

import json

import pytest

from rig.hardware import Hardware
from rig.test_short import LEFT

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]

HARDWARE = Hardware(cpus=2, sockets=2, card=True)
# With a driver for the card's functions.
IMAGE = {"kernel": "hardware"}
PAGE = """
import json, sys
from strata.util.yaml_files import read_yaml_mapping
page = read_yaml_mapping("config.yaml")
page["image"] = {"kernel": "hardware"}
page["workloads"]["redis"] = {"connections": [1, 4], "requests": 500, \
"warmup_requests": 100, "keyspace": 100}
page["vm"]["profiles"]["latency"] = json.loads(sys.argv[1])
layers = [{"vm": {"profile": "latency", "fresh": "snapshot"}}]
page["environments"] = {name: page["environments"][name] for name in ("native", "vm-tuned")}
page["environments"]["vm-latency"] = {"label": "{vm}, latency", "layers": layers}
page["environments"]["native-pinned"] = {"label": "Pinned", \
"layers": [{"chroot": {"numactl": sys.argv[2]}}]}
page |= {"scale": "tiny", "repetitions": 1, "interference": {"action": "flag"}, \
**json.loads(sys.argv[3])}
json.dump(page, open("config.yaml", "w"))
"""
# VMware calls such a machine latency-sensitive: it has reserved memory, its own CPUs and its own
# card.
LATENCY = {
    "memory": "1GiB",
    "pin": True,
    "topology": "host",
    "huge_pages": True,
    "pin_emulator": True,
}


ON_NODE_1 = "--cpunodebind=1 --membind=1"
# Looks for a command of the native system that runs on the second node's CPU with its memory there.
SEEN = """
for i in $(seq 3000); do
    for process in $(cat /sys/fs/cgroup/strata.slice/*/cgroup.procs 2>/dev/null); do
        grep -q "^Cpus_allowed_list:.1$" /proc/$process/status && \
grep -q " bind:1 " /proc/$process/numa_maps && exit 0
    done
    sleep 0.1
done 2>/dev/null
exit 1
"""


def write_page(run, latency, **more):
    words = f"'{latency}' '{ON_NODE_1}' '{json.dumps(more)}'"
    run(f"git checkout -q config.yaml && rm -rf results && python -c '{PAGE}' {words}")


@pytest.fixture(scope="module")
def function(there):
    """The PCI address of a virtual function of the card, and that of the card."""
    card = there.good("basename $(dirname $(ls /sys/bus/pci/devices/*/sriov_totalvfs))").strip()
    there.good(f"echo 2 >/sys/bus/pci/devices/{card}/sriov_numvfs; sleep 5")
    return there.good(f"basename $(readlink /sys/bus/pci/devices/{card}/virtfn0)").strip(), card


@pytest.fixture
def measure(run, records):
    """Measure one workload in an environment with this latency profile.

    Returns the machine's settings, by name, and the record.
    """

    def one(environment, profile, workload="stream", **more):
        write_page(run, json.dumps(profile), **more)
        run(
            f"snakemake --cores 1 --quiet rules -- results/raw/{environment}/{workload}/1.log", 3600
        )
        record = records()[environment, workload, 1]
        return {row["name"]: row for row in record["system"]["vm"]["settings"]}, record

    return one


def test_a_tuned_machine_has_the_hosts_sockets_and_memory_on_its_nodes(measure, there):
    found, _ = measure("vm-tuned", LATENCY)
    assert [row for row in found.values() if not row["applied"]] == []
    assert found["topology of the host"]["observed"] == "2 sockets × 1 core × 1 thread"
    assert found["memory nodes"]["observed"] == "2"
    assert found["memory beside its vCPUs"]["observed"] == "1024 MiB on node 0, 1024 MiB on node 1"
    assert found["vCPUs pinned one to one"]["observed"] == "0→0, 1→1"
    assert there.good(LEFT) == ""


def test_native_is_held_to_a_node_by_numactl(run):
    write_page(run, json.dumps(LATENCY))
    log = "results/raw/native-pinned/stream/1.log"
    run(
        f"snakemake --cores 1 --quiet rules -- {log} >pinned.log 2>&1 </dev/null & ({SEEN}) && wait"
    )
    run(f"test -e {log} || (cat pinned.log; exit 1)")


def test_a_machine_gets_a_virtual_function_and_gives_it_back(measure, there, function):
    address, _ = function
    driver = f"basename $(readlink /sys/bus/pci/devices/{address}/driver) || true"
    before = there.good(driver)
    found, record = measure("vm-latency", {**LATENCY, "passthrough": [address]})
    assert [row for row in found.values() if not row["applied"]] == []
    assert found[f"device {address}"]["observed"] == "in the domain"
    assert record["system"]["vm"]["started"] == "boot"
    assert there.good(LEFT) == ""
    assert there.good(driver) == before


def test_a_client_reaches_the_machine_over_the_function(measure, there, function):
    address, card = function
    there.good(f"ip link set $(ls /sys/bus/pci/devices/{card}/net) up")
    ends = {"address": "10.0.9.20/24", "client": "10.0.9.21/24"}
    found, record = measure(
        "vm-latency", {**LATENCY, "passthrough": [address], "card": ends}, "redis"
    )
    assert [row for row in found.values() if not row["applied"]] == []
    assert found["address of its card"]["observed"] == ends["address"]
    assert record["observed"]["client"]["link"]["kind"] == "the card whose function the machine has"
    assert there.good(LEFT) == ""


# A second machine is a namespace with an sshd, and the card's other function is plugged into it.
OTHER = "python tests/helpers/second_machine.py {} /root/other"
PLUG = """
card=$(basename /sys/bus/pci/devices/{card}/virtfn1/net/*)
ip link set "$card" netns strata-other
ip -n strata-other address add {address} dev "$card"
ip -n strata-other link set "$card" up
"""


def test_a_second_machine_reaches_it_over_the_cards_other_function(measure, there, run, function):
    address, card = function
    run(OTHER.format("up"))
    try:
        there.good(PLUG.format(card=card, address="10.0.9.22/24"))
        profile = {**LATENCY, "passthrough": [address], "card": {"address": "10.0.9.20/24"}}
        client = {"ssh": "other", "ssh_config": "/root/other/ssh_config"}
        _, record = measure("vm-latency", profile, "redis", client=client)
        assert record["observed"]["client"]["link"] == {
            "kind": "network of a second machine",
            "mtu": 1500,
            "rate": "not limited",
        }
        assert there.run("ip netns exec strata-other ping -c 1 -W 1 10.0.9.20")[0] != 0
        assert (
            there.good("findmnt --raw --noheadings --output TARGET | grep strata-client || true")
            == ""
        )
    finally:
        # What goes with the namespace is back on the host.
        run(OTHER.format("down"))
    assert there.good(LEFT) == ""


def test_what_cannot_be_handed_over_is_refused_with_its_reason(run, function):
    address, _ = function
    ask = (
        "from strata.vm.passthrough import explain_unusable_device; import sys; "
        'print(explain_unusable_device(sys.argv[1], "kvm"))'
    )

    def words(device):
        return run(f"python -c '{ask}' {device}").strip()

    assert words(address) == "None"
    assert "there is no PCI device 0000:7f:1f.7" in words("0000:7f:1f.7")

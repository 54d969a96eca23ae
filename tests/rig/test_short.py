"""Real KVM, on Debian 13 with systemd and control groups of version 2.

Strata finds it, machines use it, and it is left as it was.
"""

import json

import pytest

from strata.util import constants

pytestmark = [pytest.mark.long, pytest.mark.timeout(5400)]

ENVIRONMENTS = ["native", "docker", "vm", "vm-tuned"]
ONLY = f"only={{environments: [{', '.join(ENVIRONMENTS)}], workloads: [stream]}}"
# What is left on a host, a line each; nothing of it is there before a run.
LEFT = """
virsh --connect qemu:///system list --all --name | grep .
virsh --connect qemu:///system net-list --all --name | grep strata
docker ps --all --quiet --filter name=strata
findmnt --raw --noheadings --output TARGET | grep strata/ | grep -v '^/var/cache/strata$'
ip -brief link | grep strata
ip netns
pgrep --list-full qemu-system
find /sys/fs/cgroup/strata.slice -mindepth 1 -maxdepth 1 -type d 2>/dev/null
grep -v '^0$' /proc/sys/vm/nr_hugepages
cd /var/cache/strata && ls -A systems vm/snapshots vm/pool 2>/dev/null | grep strata-........-
true
"""


def test_the_trial_guest_reports_under_kvm(run):
    assert "control groups version 2" in run("python -m strata doctor || true")
    run("python -m strata image")
    found = json.loads(run("cat /var/cache/strata/acceleration.json"))["finding"]
    assert found == {
        "accelerator": "kvm",
        "accelerator_reason": "a short guest booted under KVM and reported back",
    }


def test_one_cell_each_without_and_with_a_machine(run, records):
    logs = " ".join(f"results/raw/{name}/stream/1.log" for name in ENVIRONMENTS)
    config = (
        f"'{ONLY}' repetitions=1 'interference={{action: flag}}' "
        "'workloads={stream: {laps: 1}}'"
    )
    run(f"snakemake --cores 1 --quiet rules --config {config} -- {logs}", 3600)
    found = {environment: record for (environment, _, _), record in records().items()}
    assert set(found) == set(ENVIRONMENTS)
    machine = constants.read_constants("hosts")["emulated"]
    assert {record["observed"]["host"]["static"]["machine"] for record in found.values()} == set(
        machine
    )
    for name in ("vm", "vm-tuned"):
        seen = found[name]["system"]["vm"]
        assert (seen["accelerator"], seen["started"]) == ("kvm", "snapshot")
        assert [row for row in seen["settings"] if not row["applied"]] == []
    rows = [row["name"] for row in found["vm-tuned"]["system"]["vm"]["settings"]]
    assert len(rows) == 13, rows
    plan = json.loads(run("cat results/plan.json"))["environments"]
    assert (plan["vm"]["label"], plan["vm-tuned"]["label"]) == ("KVM", "KVM, tuned")
    assert "strata.slice" in found["native"]["observed"]["inside"]["cgroup"]


def test_nothing_of_it_is_left(there, run):
    assert there.good(LEFT) == ""
    assert "nothing of Strata's was left" in run("python -m strata clean")

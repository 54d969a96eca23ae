"""A host with systemd: its own daemons, killed runs, and a paper with machines labelled KVM."""

import csv
import io
import json
import re
import subprocess

import pytest

from rig import host
from rig.test_short import LEFT
from strata.util import constants

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]


def test_daemons_are_brought_up_by_the_service_manager(there, run):
    there.good(
        "systemctl stop docker.socket docker "
        "libvirtd.socket libvirtd-ro.socket libvirtd-admin.socket libvirtd"
    )
    assert there.run("docker version")[0] != 0
    run("scripts/dockerd.sh && scripts/libvirtd.sh")
    assert there.good("systemctl is-active docker libvirtd").split() == ["active", "active"]
    assert (
        there.good(
            "find /run -maxdepth 1 -name 'strata-dockerd*' -o -maxdepth 1 -name 'strata-libvirt*'"
        )
        == ""
    )


# What tells that the system of an environment is up.
UP = {
    "native": "find /sys/fs/cgroup/strata.slice -maxdepth 1 -name 'strata-*' | grep -q .",
    "docker": "docker ps --quiet --filter name=strata | grep -q .",
    "vm": "virsh --connect qemu:///system list --name | grep -q strata",
}


@pytest.mark.parametrize("environment", list(UP))
def test_a_run_that_is_killed_leaves_nothing_once_it_was_cleaned(environment, there, run):
    log = f"results/raw/{environment}/stream/1.log"
    start = (
        f"setsid snakemake --cores 1 --config repetitions=1 -- {log} >killed.log 2>&1 </dev/null"
    )
    start += " & echo $! >killed.pid"
    run(f"rm -rf results; {start}")
    wait = (
        f"for i in $(seq 400); do if {UP[environment]}; then exit 0; fi; sleep 1; done; "
        "tail killed.log; exit 1"
    )
    run(f"({wait})", 1200)
    run("kill -KILL -- -$(cat killed.pid)")
    run("python -m strata clean")
    assert there.good(LEFT) == ""
    assert there.run(f"cd {host.PROJECT} && test -e {log}")[0] != 0


def test_a_native_server_answers_beside_other_commands_and_ends(there, run, records):
    small = "redis: {connections: [1, 4], requests: 500, warmup_requests: 100, keyspace: 100}"
    config = (
        f"'workloads={{{small}}}' "
        "'only={environments: [native], workloads: [redis]}' repetitions=1"
    )
    log = "results/raw/native/redis/1.log"
    run(
        f"rm -rf results; snakemake --cores 1 --quiet rules --config {config} "
        f"'interference={{action: flag}}' -- {log}",
        2400,
    )
    record = records()["native", "redis", 1]
    # It was asked for its state, and to end, while it ran: by commands of the same system.
    assert [server["exit"] for server in record["servers"]] == [0]
    assert "strata.slice" in record["observed"]["inside"]["cgroup"]
    assert there.good(LEFT) == ""


CONFIG = (
    "'only={workloads: [stream]}' 'workloads={stream: {laps: 1}}' "
    "repetitions=2 'interference={action: flag}'"
)
MACHINES = {"vm", "vm-tuned", "vm-docker", "vm-docker-hostnet"}


def test_the_paper_has_nine_environments_of_which_four_say_kvm(there, run, tmp_path):
    run(f"rm -rf results; snakemake --cores 1 --config {CONFIG} -- paper/report.pdf", 5400)
    plan = json.loads(run("cat results/plan.json"))["environments"]
    assert [entry["reason"] for entry in plan.values() if not entry["available"]] == []
    assert len(plan) == 9
    assert {name for name, entry in plan.items() if "KVM" in entry["label"]} == MACHINES
    assert not any(entry["emulated"] for entry in plan.values())
    there.fetch([f"-C {host.PROJECT} paper/report.pdf"], tmp_path)
    text = subprocess.check_output(
        ["pdftotext", "-layout", tmp_path / "paper/report.pdf", "-"], text=True
    )
    assert "Emulated Virtual Machines" not in text
    assert "Virtual Machines" in text.partition("Abstract")[0]
    pages = text.strip("\f").split("\f")
    assert [page for page in pages if constants.read_constants("hosts")["mark"] not in page] == []
    assert there.good(LEFT) == ""


def test_claims_about_machines_are_tested_there(run):
    rows = list(csv.DictReader(io.StringIO(run("cat results/claims.csv"))))
    # A claim about several environments shows the one on which it depends.  A claim that was
    # published for another product is tested separately.
    tested = {row["id"] for row in rows if row["verdict"] not in ("not tested", "tested in part")}
    assert {"ibm-stream-identical", "vmw-stream-vm-2-3pct"} <= tested
    assert [row for row in rows if row["reason"] == "emulation"] == []


def test_another_accelerator_measures_the_machines_again_and_nothing_else(there, run):
    kept = "/var/cache/strata/acceleration.json"

    def cells():
        printed = run(f"python -m strata plan --config {CONFIG}")
        return set(re.findall(r"^  ([a-z-]+) +\d+: stream \d+$", printed, re.MULTILINE))

    assert cells() == set()
    there.good(f'cp {kept} /tmp/kept.json && sed -i \'s/: "kvm"/: "tcg"/\' {kept}')
    try:
        # Natively too, at the size of emulated machines.
        assert cells() == MACHINES | {"native-beside"}
    finally:
        there.good(f"mv /tmp/kept.json {kept}")
    assert cells() == set()

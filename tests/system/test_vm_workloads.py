"""Workloads with a server, a client or a disk in them, at smoke scale, in the environments with a machine.

The long test measures all of them everywhere; the short one each of them once, and one in every environment.
"""

import json
import os

import listening
import projects
import pytest
import yaml
from test_workloads import PORTS, WORKLOADS, record, rows

from strata.vm import acceleration, disk

PAGE = yaml.safe_load((projects.ROOT / "config.yaml").read_text())["environments"]
ENVIRONMENTS = {name: entry for name, entry in PAGE.items() if any("vm" in layer for layer in entry["layers"])}
# What containers and guests with emulated processors may lack: percentiles need samples, cycles need counters.
UNCERTAIN = ("latency_percentile", "memory", "cycles_per_byte")
# Shorter sweeps than those of the other environments: each point takes its time under emulation.
MEASURED = {
    **dict.fromkeys(WORKLOADS),
    "randomaccess": None,
    "fio": {"jobs": ["sequential-fill", "random-read-16", "mixed-random-rw-32x8"]},
    "redis": {"connections": [1, 4], "requests": 2000},
}
# Does nothing itself but leave a process to the system, in a session of its own.
LEAVING = {
    **projects.NOOP,
    "run": [{"argv": ["/bin/sh", "-c", "setsid sleep 300 >/dev/null 2>&1 & echo 7"], "timeout": 60}],
}
SHORT = {
    "vm": ["netperf"],
    "vm-tuned": ["netperf", "fio", "redis", "startup"],
    "vm-docker": ["netperf", "nuttcp", "mysql", "randomaccess"],
    "vm-docker-hostnet": ["netperf"],
}
LONG = {name: list(MEASURED) for name in ENVIRONMENTS}
LEFT_IN = ("vm-tuned", "vm-docker")
watchers: dict = {}
# Every machine boots, some are emulated.
pytestmark = pytest.mark.timeout(3600)


def snakemake(folder, *words):
    return projects.run(folder, "snakemake", "--cores", "1", *words, timeout=3500)


@pytest.fixture(
    scope="module", params=[SHORT, pytest.param(LONG, marks=pytest.mark.long)], ids=["each once", "all everywhere"]
)
def cells(request):
    """The workloads that are measured, by environment."""
    return request.param


@pytest.fixture(scope="module")
def logs(cells):
    """The logs of these, and of the one that leaves something."""
    found = [f"results/raw/{name}/{workload}/1.log" for name, workloads in cells.items() for workload in workloads]
    return found + [f"results/raw/{name}/leaving/1.log" for name in LEFT_IN]


@pytest.fixture(scope="module")
def made(image, logs, tmp_path_factory):
    """A project in which they were measured once in the machines, up to the tables."""
    folder = tmp_path_factory.mktemp("machines") / "p"
    page = projects.default(environments=ENVIRONMENTS, workloads={**MEASURED, "leaving": None}, repetitions=1)
    projects.beside_real(folder, page, {"leaving": LEAVING})
    # As on a machine on which nothing was tried yet: the run finds out what accelerates it.
    if os.path.exists(acceleration.path()):
        os.unlink(acceleration.path())
    for words in (logs, ["--config", "partial=true", "--", *(f"results/tidy/{name}.csv" for name in MEASURED)]):
        with listening.Watcher({port for ports in PORTS.values() for port in ports}) as watcher:
            done = snakemake(folder, *words)
        assert done.returncode == 0, done.stderr
        watchers.setdefault(folder, watcher)
    return folder


def test_cells_say_what_machine_they_ran_in(made, logs, image):
    proven = acceleration.known()["accelerator"]
    kernel = disk.require(image["recipe"], proven)["kernel"]
    records = projects.records(made)
    assert len(records) == len(logs)
    for one in records:
        vm, seen = one["system"]["vm"], one["observed"]["inside"]
        assert vm["accelerator"] == proven
        assert vm["started"] == "snapshot"
        assert vm["restore_seconds"] > 0
        assert vm["host_memory_bytes"] > 50e6
        assert 0 < vm["disk_bytes"] < vm["image_disk_bytes"]
        assert vm["data_disk"]["file_system"] == "ext4"
        assert one["environment"] == "vm-tuned" or all(row["applied"] for row in vm["settings"])
        assert kernel in seen["kernel"]
        assert seen["cpus"] == os.cpu_count()
        assert seen["memory_bytes"] <= vm["memory_bytes"] < 1.2 * seen["memory_bytes"]
        assert one["image"]["id"] == image["id"]


def test_a_machine_is_booted_once_for_each_profile(made):
    boots = {one["system"]["id"]: one["system"]["vm"]["boot_seconds"] for one in projects.records(made)}
    assert sum(seconds is not None for seconds in boots.values()) == len({"default", "tuned"})
    # Every environment got it fresh from the snapshot, and so did those that a start-up left nothing of.
    assert len(boots) >= len(ENVIRONMENTS)


def test_nothing_of_a_cell_lasts_into_the_next_one(made):
    systems = {}
    for one in projects.records(made):
        key = (one["environment"], one["workload"])
        note = (made / f"results/logs/cells/{key[0]}/{key[1]}/1.log").read_text()
        # What looks for listening sockets may be met in the machine, too.
        assert ("left running" in note and "sleep 300" in note) == (key[1] == "leaving"), note
        systems[key] = one["system"]["id"]
    for name in LEFT_IN:
        later = list(systems)[list(systems).index((name, "leaving")) + 1 :]
        assert systems[name, "leaving"] not in [systems[key] for key in later]


def test_emulation_is_named_and_a_second_run_has_nothing_to_do(made, logs):
    plan = json.loads((made / "results/plan.json").read_text())
    shown = acceleration.shown(acceleration.known()["accelerator"])
    labels = [entry["label"] for entry in plan["environments"].values()]
    assert labels == [shown, f"{shown}, tuned", f"Docker in {shown}", f"Docker in {shown}, host network"]
    again = snakemake(made, "-n", *logs)
    assert "Nothing to be done" in again.stderr + again.stdout


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_machine_gives_the_same_series(made, cells, workload):
    series = {
        name: [
            (row["metric"], row["factors"])
            for row in rows(made, workload, environment=name)
            if row["metric"] not in UNCERTAIN
        ]
        for name in ENVIRONMENTS
        if workload in cells[name]
    }
    first = next(iter(series.values()))
    assert first
    assert all(found == first for found in series.values())
    assert all(float(row["value"]) > 0 for row in rows(made, workload))


@pytest.mark.parametrize("workload", ["mysql", "netperf", "nuttcp", "redis"])
def test_load_came_to_the_machine_from_outside_of_it(made, cells, workload):
    host = os.uname().release
    for environment in [name for name in ENVIRONMENTS if workload in cells[name]]:
        found = record(made, environment, workload)
        client, inside = found["observed"]["client"], found["observed"]["inside"]
        assert client["link"]["kind"] == "veth pair"
        assert host in client["kernel"]
        assert host not in inside["kernel"]
        assert client["versions"] == inside["versions"]
        assert all(server["exit"] in (0, 143) for server in found["servers"])


def test_a_start_is_that_of_a_machine_of_its_own(made, cells):
    for environment in [name for name in ENVIRONMENTS if "startup" in cells[name]]:
        (start,) = [json.loads(line) for line in open(made / f"results/raw/{environment}/startup/1.log")]
        assert start["start"] in ("boot", "snapshot")
        assert start["up_seconds"] > 0
        assert start["memory_bytes"] > 50e6


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_servers_in_machines_listen_where_their_client_comes(made, cells, environment):
    watcher = watchers[made]
    seen = watcher.seen[environment]
    assert watcher.misplaced(environment) == []
    there = {port for place, _, port in seen if place == "inside"}
    # Those that are up for the whole of a cell; emulated machines are asked every few seconds.
    expected = {PORTS[name][0] for name in cells[environment] if name in PORTS}
    assert there >= expected

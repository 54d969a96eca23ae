"""Workloads with a server, a client or a disk, at tiny scale, in environments with a machine.

The long test measures all of them everywhere.  The short one measures one with a disk in one tuned
machine, and one with a server in a container in it.  Both kill the machine under a cell.
"""

import contextlib
import copy
import json
import os
import threading

import projects
import pytest
import yaml
from test_faults import pausing
from test_vm import kill_machines, libvirt_knows, somebody_else
from test_workloads import PORTS, WORKLOADS, read_record, rows, series

from strata.vm import acceleration, libvirt

PAGE = yaml.safe_load((projects.ROOT / "config.yaml").read_text())["environments"]
ENVIRONMENTS = {
    name: entry for name, entry in PAGE.items() if any("vm" in layer for layer in entry["layers"])
}
# Shorter sweeps than those of the other environments: each point takes its time under emulation.
MEASURED = {
    **dict.fromkeys(WORKLOADS),
    "randomaccess": None,
    "fio": {"jobs": ["sequential-fill", "random-read-16", "mixed-random-rw-32x8"], "laps": 1},
    "redis": {"connections": [4], "requests": 1000, "laps": 1},
}
SHORT = {
    "vm": ["fio"],
    "vm-docker": ["redis"],
}
LONG = {name: [*MEASURED] for name in ENVIRONMENTS}
# Settings that a tuned machine gets under KVM and under emulation.
TUNED = (
    "vCPUs pinned one to one",
    "topology of the host",
    "cache mode of the disks",
    "disk I/O",
    "thread of its own for disk I/O",
)
# The cell under which the machine is killed.
KILLED = "results/raw/vm/pausing/1.log"
# Every machine boots, some are emulated.
pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(
    scope="module",
    params=[SHORT, pytest.param(LONG, marks=pytest.mark.long)],
    ids=["one machine", "all everywhere"],
)
def cells(request):
    """The workloads that are measured, by environment."""
    return request.param


@pytest.fixture(scope="module")
def environments(cells):
    """The environments of the plan; in the short test all have one tuned machine, booted once."""
    chosen = copy.deepcopy(ENVIRONMENTS)
    for entry in chosen.values() if cells is SHORT else []:
        entry["layers"][0]["vm"]["profile"] = "tuned"
    return chosen


@pytest.fixture(scope="module")
def logs(cells):
    """The logs of these cells."""
    return [
        f"results/raw/{name}/{workload}/1.log"
        for name, workloads in cells.items()
        for workload in workloads
    ]


@contextlib.contextmanager
def machine_killed_under(folder, log):
    """Kill the machine as soon as the cell of this log is measured in it."""
    over = threading.Event()
    begun = folder / log.replace("/raw/", "/tmp/")

    def wait_and_kill():
        while not over.wait(0.2):
            if begun.exists() and "begun" in begun.read_text():
                kill_machines()
                return

    killer = threading.Thread(target=wait_and_kill)
    killer.start()
    try:
        yield
    finally:
        over.set()
        killer.join()


@pytest.fixture(scope="module")
def run(image, cells, environments, logs, tmp_path_factory):
    """A project in which they were measured up to the tables, and the process of that run."""
    folder = tmp_path_factory.mktemp("machines") / "p"
    extra = {"pausing": pausing(40)}
    # Docker takes seconds in a machine to open each port that a workload declares.
    declared = {
        name: MEASURED[name] for name in MEASURED if any(name in names for names in cells.values())
    }
    page = projects.default(
        environments=environments, workloads=declared | dict.fromkeys(extra), repetitions=1
    )
    projects.beside_real(folder, page, extra)
    # Without the finding, as on a new machine, the run itself tries whether KVM works.
    if os.path.exists(acceleration.get_trial_result_path()):
        os.unlink(acceleration.get_trial_result_path())
    with somebody_else() as name:
        with machine_killed_under(folder, KILLED):
            words = ("snakemake", "--cores", "1", "--keep-going", *logs, KILLED)
            done = projects.run(folder, *words, timeout=3500)
        assert libvirt_knows(name), "what is not ours should stay when ours goes"
    assert all((folder / log).exists() for log in logs), done.stderr
    tables = {
        f"results/tidy/{name}.csv" for names in cells.values() for name in names if name in MEASURED
    }
    projects.good(
        folder, "snakemake", "--cores", "1", "--config", "partial=true", "--", *sorted(tables)
    )
    return folder, done


@pytest.fixture(scope="module")
def made(run):
    """The project."""
    return run[0]


def test_a_machine_killed_under_a_cell_costs_that_cell_alone(run):
    folder, done = run
    assert "vm · pausing · repetition 1" in done.stderr
    assert "its run step was ended: its virtual machine ended" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    assert not (folder / KILLED).exists()
    assert [path.parent.name for path in folder.glob("results/failed/*/*/*.json")] == ["pausing"]
    assert f"snakemake --cores 1 {KILLED}" in done.stderr
    assert libvirt.list_domains() == []


def test_cells_say_what_machine_they_ran_in(made, logs, image):
    proven = acceleration.read_known_accelerator()["accelerator"]
    (kernel,) = (
        path.name.partition("-")[2]
        for path in projects.Path(image["folder"]).glob("tree/boot/vmlinuz-*")
    )
    records = projects.records(made)
    assert len(records) == len(logs)
    for one in records:
        vm, seen = one["system"]["vm"], one["observed"]["inside"]
        assert vm["accelerator"] == proven
        assert vm["started"] == "snapshot"
        assert vm["restore_seconds"] > 0
        rows = {row["name"]: row for row in vm["settings"]}
        if vm["profile"] == "tuned":
            assert all(rows[name]["applied"] for name in TUNED), rows
        assert all(
            row["applied"] or (vm["profile"] == "tuned" and row["why"]) for row in rows.values()
        ), rows
        assert kernel in seen["kernel"]
        assert seen["cpus"] == os.cpu_count()
        assert seen["memory_bytes"] <= vm["memory_bytes"] < 1.2 * seen["memory_bytes"]
        assert one["image"]["id"] == image["id"]


def test_a_machine_is_booted_once_for_each_profile(made, cells, environments):
    boots = {
        one["system"]["id"]: one["system"]["vm"]["boot_seconds"] for one in projects.records(made)
    }
    profiles = {environments[name]["layers"][0]["vm"]["profile"] for name in cells}
    assert sum(seconds is not None for seconds in boots.values()) == len(profiles)
    # A cell that itself starts systems restores them, too.
    for log in made.glob("results/raw/*/startup/1.log"):
        assert json.loads(log.read_text().splitlines()[-1])["boot_seconds"] is None


def test_nothing_of_a_cell_lasts_into_the_next_one(made):
    records = projects.records(made)
    assert len({one["system"]["id"] for one in records}) == len(records)


def test_every_machine_gives_the_same_series(made, cells):
    for workload in {name for names in cells.values() for name in names if name in WORKLOADS}:
        found = list(series(made, workload, cells).values())
        assert found[0], workload
        assert all(one == found[0] for one in found), workload
        assert all(float(row["value"]) > 0 for row in rows(made, workload))


def test_load_came_to_the_machine_from_outside_of_it(made, cells):
    host = os.uname().release
    served = [(name, workload) for name in cells for workload in cells[name] if workload in PORTS]
    assert served
    for environment, workload in served:
        found = read_record(made, environment, workload)
        client, inside = found["observed"]["client"], found["observed"]["inside"]
        assert client["link"]["kind"] == "veth pair"
        assert host in client["kernel"]
        assert host not in inside["kernel"]
        assert client["versions"] == inside["versions"]
        assert all(server["exit"] in (0, 143) for server in found["servers"])

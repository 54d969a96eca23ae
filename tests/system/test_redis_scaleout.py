"""Redis at scale with real servers: on the host, in a container, spread over systems, and killed under load."""

import csv
import json
import os
import signal
import subprocess
import time

import projects
import pytest

from strata.system import state

pytestmark = pytest.mark.long

PROGRAMS = ("redis-server", "redis-benchmark", "nutcracker", "haproxy")


def running():
    """Names of the programs of the workload that run on this machine, those in containers too."""
    return [
        name
        for name in PROGRAMS
        if subprocess.run(["pgrep", "-x", name[:15]], stdout=subprocess.DEVNULL).returncode == 0
    ]


@pytest.fixture
def project(tmp_path, machine_stays):
    """A project with this workload alone, whose image was built."""

    def make(**parameters):
        page = projects.default(workloads={"redis-scaleout": parameters or None}, repetitions=1)
        folder = projects.make(tmp_path / "p", page)
        done = projects.run(folder, "strata", "image", timeout=1800)
        assert done.returncode == 0, done.stderr
        return folder

    return make


def rows(folder, environment):
    with open(folder / "results/tidy/redis-scaleout.csv", newline="") as file:
        return [row for row in csv.DictReader(file) if row["environment"] == environment]


def measure(folder, *environments):
    logs = [f"results/raw/{name}/redis-scaleout/1.log" for name in environments]
    done = projects.run(folder, "snakemake", "--cores", "1", *logs, timeout=900)
    assert done.returncode == 0, done.stderr
    done = projects.run(
        folder, "snakemake", "--cores", "1", "--config", "partial=true", "--", "results/tidy/redis-scaleout.csv"
    )
    assert done.returncode == 0, done.stderr
    assert running() == []


def test_many_servers_and_one_answer_natively_and_in_a_container(project):
    folder = project()
    measure(folder, "native", "docker")
    series = {name: [(row["metric"], row["factors"]) for row in rows(folder, name)] for name in ("native", "docker")}
    assert series["native"] == series["docker"]
    for setup, servers in (("baseline", 1), ("half", 2), ("scale-out", 2), ("pinned", 2)):
        assert ("throughput", f"setup={setup};servers={servers}") in series["native"]
    for record in projects.records(folder):
        assert [server["exit"] for server in record["servers"]] == [0, 0]
        pinned = [line for line in record["servers"][1]["output"].splitlines() if line.startswith('{"pinned"')]
        assert [json.loads(line)["cpu"] for line in pinned] in ([0, 1], [0, 0])
        assert record["seconds"] < 360


def test_servers_are_spread_over_systems(project):
    folder = project(systems=2, ports=[17000], pinned_ports=[19048], setups=["baseline", "scale-out"])
    measure(folder, "docker")
    assert ("speedup", "setup=scale-out;servers=2") in [
        (row["metric"], row["factors"]) for row in rows(folder, "docker")
    ]
    log = (folder / "results/raw/docker/redis-scaleout/1.log").read_text()
    kept = [json.loads(line)["kept"] for line in log.splitlines() if line.startswith('{"checked"')]
    assert all(count > 0 for count in kept[1])


@pytest.mark.parametrize("environment", ["native", "docker"])
def test_a_killed_cell_leaves_no_server(project, environment):
    folder = project(seconds=60)
    argv = projects.command("snakemake", "--cores", "1", f"results/raw/{environment}/redis-scaleout/1.log")
    run = subprocess.Popen(argv, cwd=folder, env=projects.environment(), start_new_session=True, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 300
    while "nutcracker" not in running() or state.read()["cell"] is None:
        assert run.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.2)
    os.kill(state.read()["cell"]["pid"], signal.SIGKILL)
    run.communicate(timeout=300)
    assert run.returncode != 0
    # What was up is removed by the run's keeper, which outlives it by that.
    deadline = time.monotonic() + 60
    while running() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert running() == []
    assert not (folder / f"results/raw/{environment}/redis-scaleout/1.log").exists()

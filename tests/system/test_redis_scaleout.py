"""Redis at scale with real servers: on the host, in a container, and spread over systems."""

import json
import subprocess

import projects
import pytest
import serving

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
    """A project that measures it with some parameters."""
    return lambda **parameters: serving.built(tmp_path / "p", {"redis-scaleout": parameters})


def rows(folder, environment):
    found = projects.table(folder / "results/tidy/redis-scaleout.csv")
    return [row for row in found if row["environment"] == environment]


def measure(folder, *environments):
    records = serving.measure(folder, "redis-scaleout", *environments)
    assert running() == []
    return records


def test_many_servers_and_one_answer_natively_and_in_a_container(project):
    folder = project()
    records = measure(folder, "native", "docker")
    series = {
        name: [(row["metric"], projects.factors(row)) for row in rows(folder, name)]
        for name in ("native", "docker")
    }
    assert series["native"] == series["docker"]
    for setup, servers in (("baseline", 1), ("half", 2), ("scale-out", 2), ("pinned", 2)):
        factors = {"setup": setup, "servers": str(servers)}
        assert ("throughput", factors) in series["native"]
    for record in records:
        assert [server["exit"] for server in record["servers"]] == [0, 0]
        pinned = [
            line
            for line in record["servers"][1]["output"].splitlines()
            if line.startswith('{"pinned"')
        ]
        # They come up at the same time.
        told = sorted(map(json.loads, pinned), key=lambda line: line["pinned"])
        assert [line["cpu"] for line in told] in ([0, 1], [0, 0])


def test_servers_are_spread_over_systems(project):
    folder = project(
        systems=2, ports=[17000], pinned_ports=[17512], setups=["baseline", "scale-out"]
    )
    measure(folder, "docker")
    assert ("speedup", {"setup": "scale-out", "servers": "2"}) in [
        (row["metric"], projects.factors(row)) for row in rows(folder, "docker")
    ]
    log = (folder / "results/raw/docker/redis-scaleout/1.log").read_text()
    kept = [json.loads(line)["kept"] for line in log.splitlines() if line.startswith('{"checked"')]
    assert all(count > 0 for count in kept[1])

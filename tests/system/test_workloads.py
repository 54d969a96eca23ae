"""Every workload with a server, a client or a disk in it, at smoke scale, in every environment without a machine."""

import csv
import json

import projects
import pytest

WORKLOADS = ["fio", "mysql", "netperf", "nuttcp", "redis", "startup"]
ENVIRONMENTS = ["native", "docker", "docker-hostnet", "docker-layered"]


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def made(image, tmp_path_factory):
    """A project in which each of them was measured once everywhere, up to the tables."""
    folder = tmp_path_factory.mktemp("workloads") / "p"
    projects.make(folder, projects.default(workloads=dict.fromkeys(WORKLOADS), repetitions=1))
    targets = [f"results/summary/{name}.csv" for name in WORKLOADS]
    done = projects.run(folder, "snakemake", "--cores", "1", *targets, timeout=1500)
    assert done.returncode == 0, done.stderr
    return folder


def rows(folder, workload, **wanted):
    found = table(folder / f"results/tidy/{workload}.csv")
    return [row for row in found if all(row[key] == value for key, value in wanted.items())]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_environment_gives_the_same_series(made, workload):
    series = {
        name: [(row["metric"], row["factors"]) for row in rows(made, workload, environment=name)]
        for name in ENVIRONMENTS
    }
    # Percentiles need enough samples, and a host its counters: what one environment lacks may be those alone.
    certain = {
        name: [one for one in found if one[0] not in ("latency_percentile", "memory", "cycles_per_byte")]
        for name, found in series.items()
    }
    assert all(found == certain["native"] for found in certain.values())
    assert certain["native"]
    assert all(float(row["value"]) > 0 for row in rows(made, workload))


def record(folder, environment, workload):
    return json.loads((folder / f"results/raw/{environment}/{workload}/1.json").read_text())


def test_load_came_from_outside_and_servers_ended_well(made):
    for workload in ("mysql", "netperf", "nuttcp", "redis"):
        for environment in ENVIRONMENTS:
            found = record(made, environment, workload)
            assert found["observed"]["client"]["link"]["kind"] == "veth pair"
            assert all(server["exit"] in (0, 143) for server in found["servers"])
            assert any(command.get("at") == "client" for command in found["commands"])
    assert record(made, "native", "fio")["observed"]["client"] is None


def test_a_start_is_that_of_a_system_of_its_own(made):
    for environment in ENVIRONMENTS:
        (start,) = [json.loads(line) for line in open(made / f"results/raw/{environment}/startup/1.log")]
        assert start["start"] == "created"
        assert start["up_seconds"] > 0
        assert (start["memory_bytes"] is None) == (environment == "native")


def test_data_were_prepared_once_and_are_the_same_everywhere(made, image):
    import os

    kept = os.listdir(os.path.join(image["folder"], "prepared"))
    assert len([name for name in kept if name.startswith("mysql-")]) == 1
    # What a read-write run changed is not there for the next: each cell counts the same rows at its start.
    left = {
        environment: [line for line in open(made / f"results/raw/{environment}/mysql/1.log") if '"rows_left"' in line]
        for environment in ENVIRONMENTS
    }
    assert all(len(found) == 1 for found in left.values())


def test_a_cell_can_be_run_first_alone_and_twice(image, tmp_path, machine_stays):
    folder = projects.make(tmp_path / "p", projects.default(workloads=dict.fromkeys(WORKLOADS), repetitions=2))
    for workload in ("redis", "mysql"):
        log = f"results/raw/docker/{workload}/2.log"
        for words in ([], ["--force"]):
            done = projects.run(folder, "snakemake", "--cores", "1", *words, "--", log, timeout=600)
            assert done.returncode == 0, done.stderr
    assert len(projects.records(folder)) == 2

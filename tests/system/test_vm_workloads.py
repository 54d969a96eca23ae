"""Every workload with a server, a client or a disk in it, at smoke scale, in every environment with a machine."""

import json

import projects
import pytest
import yaml
from test_workloads import WORKLOADS, record, rows

from strata.vm import acceleration

PAGE = yaml.safe_load((projects.ROOT / "config.yaml").read_text())["environments"]
ENVIRONMENTS = {name: entry for name, entry in PAGE.items() if any("vm" in layer for layer in entry["layers"])}
# What containers and guests with emulated processors may lack: percentiles need samples, cycles need counters.
UNCERTAIN = ("latency_percentile", "memory", "cycles_per_byte")


@pytest.fixture(scope="module")
def made(image, tmp_path_factory):
    """A project in which each of them was measured once in every machine, up to the tables."""
    folder = tmp_path_factory.mktemp("machines") / "p"
    page = projects.default(environments=ENVIRONMENTS, workloads=dict.fromkeys(WORKLOADS), repetitions=1)
    projects.make(folder, page)
    targets = [f"results/summary/{name}.csv" for name in WORKLOADS]
    done = projects.run(folder, "snakemake", "--cores", "1", *targets, timeout=3000)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_machine_gives_the_same_series(made, workload):
    series = {
        name: [
            (row["metric"], row["factors"])
            for row in rows(made, workload, environment=name)
            if row["metric"] not in UNCERTAIN
        ]
        for name in ENVIRONMENTS
    }
    assert all(found == series["vm"] for found in series.values())
    assert series["vm"]
    assert all(float(row["value"]) > 0 for row in rows(made, workload))


def test_load_came_to_the_machine_from_outside_of_it(made):
    for workload in ("mysql", "netperf", "nuttcp", "redis"):
        for environment in ENVIRONMENTS:
            found = record(made, environment, workload)
            client, inside = found["observed"]["client"], found["observed"]["inside"]
            assert client["link"]["kind"] == "veth pair"
            assert client["kernel"] == found["observed"]["host"]["kernel"] != inside["kernel"]
            assert client["versions"] == inside["versions"]
            assert all(server["exit"] in (0, 143) for server in found["servers"])


def test_every_record_names_what_accelerated_its_machine(made):
    found = projects.records(made)
    assert len(found) == len(WORKLOADS) * len(ENVIRONMENTS)
    for one in found:
        assert one["system"]["vm"]["accelerator"] == acceleration.known()["accelerator"]


def test_a_start_is_that_of_a_machine_of_its_own(made):
    for environment in ENVIRONMENTS:
        (start,) = [json.loads(line) for line in open(made / f"results/raw/{environment}/startup/1.log")]
        assert start["start"] in ("boot", "snapshot")
        assert start["up_seconds"] > 0
        assert start["memory_bytes"] > 50e6

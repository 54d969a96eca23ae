"""A cell of each application in a machine, and of one in Docker in it; how long each took is printed.

Where no KVM is the machine is emulated, and `make everything` leaves these cells out: here they are asked for.
"""

import csv
import json

import projects
import pytest
import serving
import yaml

# A cell takes minutes in an emulated machine.
pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]

WORKLOADS = ("redis-scaleout", "dvdstore", "cloudstone", "auction")
CELLS = [*(("vm", name) for name in WORKLOADS), ("vm-docker", "redis-scaleout")]


def log_of(environment, workload):
    return f"results/raw/{environment}/{workload}/1.log"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A project in which the cells were measured, in one machine that was booted once; what the run said."""
    page = yaml.safe_load((projects.ROOT / "config.yaml").read_text())["environments"]
    environments = {name: page[name] for name in ("vm", "vm-docker")}
    folder = serving.built(tmp_path_factory.mktemp("applications") / "p", environments=environments)
    words = ("--cores", "1", "--keep-going", *(log_of(*cell) for cell in CELLS))
    done = projects.run(folder, "snakemake", *words, timeout=6000)
    tables = [f"results/tidy/{name}.csv" for name in WORKLOADS if list(folder.glob(f"results/raw/*/{name}/1.log"))]
    words = ("--cores", "1", "--keep-going", "--config", "partial=true", "--", *tables)
    made = projects.run(folder, "snakemake", *words)
    return folder, done.stderr + made.stderr


@pytest.mark.parametrize(("environment", "workload"), CELLS, ids=["-".join(cell) for cell in CELLS])
def test_its_log_is_whole_and_read(run, environment, workload, capsys):
    folder, said = run
    path = folder / log_of(environment, workload).replace(".log", ".json")
    assert path.exists(), said
    record = json.loads(path.read_text())
    vm = record["system"]["vm"]
    with capsys.disabled():
        print(f"\n{environment} ({vm['accelerator']}) · {workload}: {record['seconds']:.0f} s")
    assert "cannot" not in record
    assert all(server["exit"] == 0 for server in record["servers"])
    table = folder / f"results/tidy/{workload}.csv"
    assert table.exists(), said
    with open(table, newline="") as file:
        found = {row["metric"] for row in csv.DictReader(file) if row["environment"] == environment}
    declared = yaml.safe_load((projects.ROOT / "workloads" / workload / "workload.yaml").read_text())["metrics"]
    assert {name for name, metric in declared.items() if not metric.get("optional")} <= found <= set(declared)


def test_one_machine_was_booted_for_all_of_them(run):
    boots = {one["system"]["id"]: one["system"]["vm"]["boot_seconds"] for one in projects.records(run[0])}
    assert sum(seconds is not None for seconds in boots.values()) == 1

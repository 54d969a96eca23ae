"""Measured blocks: compared cells lie together, and disturbed ones are measured again.

Further blocks are added.
"""

import json
import subprocess
import time
from itertools import groupby, pairwise
from pathlib import Path

import projects
import pytest

from strata.host import cgroups
from strata.measure.costs import Spender
from strata.measure.laps import LapMonitor
from strata.util import paths

TABLES = ["results/summary.csv"]


WORKLOADS = {
    "stream": {"elements": 1_000_000, "trials": 3, "laps": 2},
    "randomaccess": {"log2": 12, "passes": 1, "laps": 2},
}


def config(repetitions, workloads=tuple(WORKLOADS), **more):
    return projects.default(
        repetitions=repetitions,
        environments={"native": {"layers": ["chroot"]}, "again": {"layers": ["chroot"]}},
        workloads={name: WORKLOADS[name] for name in workloads},
        **more,
    )


def decisions(folder):
    found = [json.loads(path.read_text()) for path in folder.glob("results/precision/*.json")]
    return sorted(found, key=lambda decision: decision["round"])


def measured(tmp_path, page, *targets):
    folder = projects.make(tmp_path / "project", page)
    projects.good(folder, "snakemake", "--cores", "1", *targets)
    again = projects.run(folder, "snakemake", "--cores", "1", "--dry-run", *targets)
    assert "Nothing to be done" in again.stdout + again.stderr
    return folder


def blocks_of(folder):
    """(workload, repetition) of each block, with its environments, in the order of measurement."""
    records = projects.records(folder)
    runs = groupby(records, key=lambda record: (record["workload"], record["repetition"]))
    return [(key, [record["environment"] for record in cells]) for key, cells in runs]


@pytest.mark.parametrize(
    ("asked", "reason", "workloads"),
    [
        pytest.param(
            {"max": 5, "target": "0.0001%"},
            "largest number",
            WORKLOADS,
            marks=pytest.mark.long,
            id="most blocks",
        ),
        ({"max": 300, "target": "0.0001%", "budget": "6s"}, "budget", ["stream"]),
        pytest.param(
            {"max": 40, "target": "999%"},
            "target",
            WORKLOADS,
            marks=pytest.mark.long,
            id="a first stage",
        ),
    ],
)
def test_blocks_are_added_until_one_of_the_bounds_is_reached(
    image, tmp_path, machine_stays, asked, reason, workloads
):
    folder = measured(tmp_path, config({"min": 3, **asked}, workloads), *TABLES)
    found = decisions(folder)
    assert [decision["enough"] for decision in found] == [False] * (len(found) - 1) + [True]
    assert found[0]["round"] == 3
    assert reason in found[-1]["reason"]
    blocks = blocks_of(folder)
    # No block is torn apart by another's cells, and none is there twice.
    assert all(sorted(environments) == ["again", "native"] for _, environments in blocks)
    assert len({key for key, _ in blocks}) == len(blocks)
    planned = projects.planned(folder)
    assert [projects.cell_of(record) for record in projects.records(folder)] == planned
    for load, state in found[-1]["workloads"].items():
        number = sum(key[0] == load for key, _ in blocks)
        assert number == state["blocks"] > 3
        assert {
            row["n"] for row in projects.table(folder / TABLES[0]) if row["workload"] == load
        } == {str(number)}
    systems = [record["system"]["id"] for record in projects.records(folder)]
    assert all(one != other for one, other in pairwise(systems))


@pytest.mark.parametrize("laps", [1, pytest.param(2, marks=pytest.mark.long)])
def test_runs_go_on_in_slices_that_never_overlap(image, tmp_path, machine_stays, laps):
    page = config(1, ["randomaccess"])
    page["workloads"] = {"randomaccess": {"log2": 22, "passes": 30, "laps": laps}}
    folder = measured(tmp_path, page, *TABLES)
    slices = []
    for environment in page["environments"]:
        lines = (folder / f"results/raw/{environment}/randomaccess/1.log").read_text().splitlines()
        told = [json.loads(line)["slices"] for line in lines if line.startswith('{"slices"')]
        assert len(told) == laps
        record = json.loads((folder / f"results/raw/{environment}/randomaccess/1.json").read_text())
        ways = ["slices", "whole"] if environment == "native" else ["slices"]
        assert record["ways"] == ways
        judged = [len(lap["runs"]) for lap in record.get("laps", [])]
        assert judged == ([len(ways)] * laps if laps > 1 else [])
        slices += [(thawed, frozen, environment) for lap in told for thawed, _, frozen in lap]
    slices.sort()
    assert all(to <= since for (_, to, _), (since, _, _) in pairwise(slices))
    # They alternate until one has ended, mostly.
    assert sum(one[2] != other[2] for one, other in pairwise(slices)) >= len(slices) // 3 > 2 * laps


def test_the_cpu_time_of_a_lap_is_what_its_program_counts_itself(image, tmp_path, machine_stays):
    page = config(1, [])
    page["environments"]["again"] = {
        "layers": [{"docker": {"network": "bridge", "data": "volume"}}]
    }
    page["workloads"] = {"command": {"command": "xz -kc /usr/bin/python3", "laps": 2}}
    folder = measured(tmp_path, page, "results/costs.csv")
    for record in projects.records(folder):
        log = (folder / paths.get_cell_path("raw", *projects.cell_of(record), "log")).read_text()
        runs = [json.loads(line) for line in log.splitlines() if line.startswith('{"run"')]
        # The first run warms up.
        counted = [run["user"] + run["system"] for run in runs[1:]]
        costs = [run["system"] for run in record["costs"]]
        spent = [run["user_seconds"] + run["system_seconds"] for run in costs]
        assert spent == pytest.approx(counted, rel=0.02)
        assert all(run["elapsed_seconds"] > 0.5 * sum(counted) / 2 for run in record["costs"])
    assert {row["part"] for row in projects.table(folder / "results/costs.csv")} > {"waiting"}


def test_what_goes_on_in_a_system_s_control_group_disturbs_no_lap(machine_stays):
    group = "strata-laps-0"
    cgroups.create_groups(group, None)
    try:
        folders = cgroups.find_group_folders(group)
        blind, seeing = (
            LapMonitor({"busy": 0.05}, {"native": Spender(names)}, ()) for names in ((), (group,))
        )
        spin = ["timeout", "0.6", "sh", "-c", "while :; do :; done"]
        # Its parent ends at once, so that it belongs to this process by its group alone.
        command = [
            "sh",
            "-c",
            '"$@" >/dev/null 2>&1 &',
            "sh",
            *cgroups.build_join_command(group),
            *spin,
        ]
        begun = time.monotonic()
        subprocess.run(command, check=True)
        time.sleep(0.8)
        for monitor in (blind, seeing):
            monitor.end_run(1, ["native"], "whole")
        seconds = time.monotonic() - begun
        usages = [
            path for path in (Path(name, "cpuacct.usage") for name in folders) if path.exists()
        ]
        spent = 1e-9 * int(usages[0].read_text()) if usages else None
    finally:
        cgroups.remove_groups(group)
    shares = [monitor.close_and_judge_laps()[0]["runs"][0]["busy"] for monitor in (blind, seeing)]
    if spent is not None:
        assert spent > 0.1
        assert shares[0] - shares[1] == pytest.approx(spent / seconds, abs=0.15)
    assert shares[0] > shares[1]


def test_what_was_disturbed_is_measured_again_twice_and_all_of_it_is_kept(
    image, tmp_path, machine_stays
):
    # No machine on which tests run has a load average of nothing.
    page = config(
        2, interference={"action": "retry", "load": 0, "busy": None, "steal": None, "swap": None}
    )
    folder = measured(tmp_path, page, *TABLES)
    found = decisions(folder)
    assert [decision["workloads"]["stream"]["again"] for decision in found] == [[1, 2], [3, 4], []]
    assert len(blocks_of(folder)) == 2 * 6
    tidy = projects.table(folder / "results/tidy/stream.csv")
    assert {row["repetition"]: row["counts"] for row in tidy} == {
        **dict.fromkeys("1234", "no"),
        "5": "yes",
        "6": "yes",
    }
    summary = projects.table(folder / "results/summary.csv")
    assert {row["n"] for row in summary if row["workload"] == "stream"} == {"2"}

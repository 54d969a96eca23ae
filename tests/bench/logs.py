"""Parsing and comparing the logs of one workload, made from a captured log with records that pass every check."""

import contextlib
import shutil
import sys
from pathlib import Path

import measured
import projects

from bench.rows import Row, Rows
from bench.spent import Failed, environment, run
from strata.experiment import plan

ENVIRONMENTS = 4
# The workload whose logs are the many ones.
LOAD = "stream"
# The parameters with which logs were captured, where they are not those of the tiny scale on two CPUs.
CAPTURED = {**measured.page()["workloads"], "pxz": {"bytes": 25_165_824}, "randomaccess": {"log2": 24}}


def make(folder: Path, load: str, count: int, copy: bool = False) -> Path:
    """A project, so many of whose cells seem to be measured."""
    page = measured.page(
        repetitions=count // ENVIRONMENTS,
        environments=projects.default()["environments"],
        workloads={load: CAPTURED.get(load)},
    )
    projects.make(folder, page, copy=copy)
    with contextlib.chdir(folder):
        experiment = measured.planned()
        plan.write({**experiment, "source": {"revision": None, "changed": None}})
        noise = 0.01 if load == LOAD else 0
        measured.measure(folder, experiment, dict.fromkeys(experiment["environments"], 1.0), noise=noise)
    found = sum(1 for _ in folder.glob("results/raw/*/*/*.log"))
    if found != count:
        raise Failed(f"{found} logs instead of {count}; their number must be a multiple of {ENVIRONMENTS}")
    return folder


def log_bytes(load: str) -> int:
    """Bytes of a workload's captured log."""
    return (projects.ROOT / f"workloads/{load}/fixtures/tiny.log").stat().st_size


def captured() -> list[str]:
    """The workloads of which there is a captured log."""
    return sorted(path.parent.parent.name for path in projects.ROOT.glob("workloads/*/fixtures/tiny.log"))


# The commands of the workflow's rule that make the tidy tables of logs, and all others of these.
COMMANDS = {
    "table": [sys.executable, "-m", "strata", "tidy"],
    "summary": ["Rscript", "analysis/tables.R", "results"],
}


def rounds(loads: list[str], sizes: list[int], count: int, room: Path, rows: Rows, prefix: str = "") -> None:
    """Tables of so many logs of each workload, in every round at every size."""
    variables = environment(room / "home")
    folders = {(load, size): make(room / f"logs-{load}-{size}", load, size) for load in loads for size in sizes}
    for number in range(1, count + 1):
        for (load, size), folder in folders.items():
            for theme, argv in COMMANDS.items():
                rows.add(Row.of(prefix + theme, load, size, number, run(argv, folder, variables)))
    for folder in folders.values():
        shutil.rmtree(folder)

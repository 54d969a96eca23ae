"""Parsing and summarising the logs of one workload, made from a captured log with records that pass every check."""

import contextlib
import shutil
from pathlib import Path

import measured
import projects

from bench.rows import Row, Rows
from bench.spent import Failed, environment, run
from strata.experiment import config, plan
from strata.host import capacity

ENVIRONMENTS = 4
# The workload whose logs are the many ones.
LOAD = "stream"
# The parameters with which logs were captured, where they are not those of the smoke scale on two CPUs.
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
        experiment = config.experiment(config.read(), {**capacity.facts(), "cpus": 2})
        for entry in experiment["environments"].values():
            entry |= {"available": True, "reason": None}
        plan.write({**experiment, "source": {"revision": None, "changed": None}})
        noise = 0.01 if load == LOAD else 0
        measured.measure(folder, experiment, dict.fromkeys(experiment["environments"], 1.0), noise=noise)
    found = sum(1 for _ in folder.glob("results/raw/*/*/*.log"))
    if found != count:
        raise Failed(f"{found} logs instead of {count}; their number must be a multiple of {ENVIRONMENTS}")
    return folder


def log_bytes(load: str) -> int:
    """Bytes of a workload's captured log."""
    return (projects.ROOT / f"workloads/{load}/fixtures/smoke.log").stat().st_size


def captured() -> list[str]:
    """The workloads of which there is a captured log."""
    return sorted(path.parent.parent.name for path in projects.ROOT.glob("workloads/*/fixtures/smoke.log"))


def _commands(load: str) -> dict[str, list[str]]:
    """The commands of the workflow's rules that make a table of logs, and a summary of the table."""
    plan_of = ["--plan", "results/plan.json"]
    table, summary = f"results/tidy/{load}.csv", f"results/summary/{load}.csv"
    return {
        "table": ["Rscript", "analysis/tidy.R", *plan_of, "--workload", load, "--out", table],
        "summary": ["Rscript", "analysis/summary.R", *plan_of, "--tidy", table, "--out", summary],
    }


def rounds(loads: list[str], sizes: list[int], count: int, room: Path, rows: Rows, prefix: str = "") -> None:
    """Table and summary of so many logs of each workload, in every round at every size."""
    variables = environment(room / "home")
    folders = {(load, size): make(room / f"logs-{load}-{size}", load, size) for load in loads for size in sizes}
    for number in range(1, count + 1):
        for (load, size), folder in folders.items():
            for theme, argv in _commands(load).items():
                rows.add(Row.of(prefix + theme, load, size, number, run(argv, folder, variables)))
    for folder in folders.values():
        shutil.rmtree(folder)

"""The bench as a whole: real Snakemake, real parsers and the figure."""

import subprocess
import sys

import projects
from bench import logs, rows

from strata.experiment import workload


def test_logs_are_made_of_every_workload_that_its_parser_reads(tmp_path):
    workload.load.cache_clear()
    found = rows.Rows()
    logs.rounds(["redis"], [4], 1, tmp_path, found)
    assert [(row.theme, row.tool, row.size) for row in found] == [("table", "redis", 4), ("summary", "redis", 4)]
    assert set(logs.captured()) == {path.parent.name for path in projects.ROOT.glob("workloads/*/parse.py")}


def test_the_bench_runs_from_the_first_cell_to_the_figure(tmp_path):
    words = ["--only", "cells,dry,logs", "--cells", "1,3", "--long", "", "--dry", "3", "--logs", "4", "--each", ""]
    done = subprocess.run(
        [sys.executable, "-m", "bench", *words, "--rounds", "1", "--without-reframe", "--to", str(tmp_path / "out")],
        cwd=projects.ROOT, env={**projects.environment(), "PYTHONPATH": "tests"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"cost.csv", "cost.md", "cost.png"}
    text = (tmp_path / "out/cost.md").read_text()
    assert "| cells | Strata | Snakemake | make | shell loop |" in text
    assert "| growth: a cell of the greatest number over one of the number before |" in text

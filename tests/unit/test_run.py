"""The progress of a run, and the command that runs the same experiment again."""

import os
import subprocess
import time

import projects
import pytest

from strata.util import paths, progress, run
from strata.util.errors import UserError
from strata.util.files import write_json, write_text
from strata.workflow import Experiment

COMMANDS = [
    ("cells", "snakemake --cores 1"),
    ("--cores 4 paper/report.pdf -n", "snakemake --cores 1"),
    (
        "--cores 1 --configfile a.yaml b.yaml -- cells",
        "snakemake --cores 1 --configfile a.yaml b.yaml --",
    ),
    (
        "--config seed=7 partial=true --cores 2 -- x",
        "snakemake --cores 1 --config seed=7 partial=true --",
    ),
    (
        "--configfile=a.yaml -C seed=7 --quiet",
        "snakemake --cores 1 --configfile=a.yaml -C seed=7 --",
    ),
    ("--sdm conda --cores 2 -- cells", "snakemake --cores 1 --sdm conda --"),
    ("--use-conda cells", "snakemake --cores 1 --use-conda --"),
    (
        "--config 'only={environments: [native]}'",
        "snakemake --cores 1 --config 'only={environments: [native]}' --",
    ),
]


@pytest.mark.parametrize(("words", "command"), COMMANDS)
def test_the_command_of_the_same_experiment_keeps_its_configuration(words, command):
    import shlex

    assert run.format_rerun_command(["/usr/bin/snakemake", *shlex.split(words)]) == command


def test_a_process_declares_a_run_unless_it_belongs_to_one_that_is_alive(monkeypatch):
    for variable in (run.OWNER, run.COMMAND):
        monkeypatch.delenv(variable, raising=False)
    assert run.identify_run_process()["pid"] == os.getpid()
    run.declare_run_owner(["snakemake", "--config", "seed=7"])
    assert run.identify_run_process()["pid"] == os.getpid()
    assert run.format_target_command("x") == "snakemake --cores 1 --config seed=7 -- x"
    with subprocess.Popen(["sleep", "60"]) as other:
        monkeypatch.setenv(run.OWNER, projects.owner(other))
        run.declare_run_owner(["snakemake"])
        assert run.identify_run_process()["pid"] == other.pid
        assert run.format_target_command("x") == "snakemake --cores 1 --config seed=7 -- x"
        # Another process of the same id is not the run.
        monkeypatch.setenv(run.OWNER, f"{other.pid}:1")
        with pytest.raises(UserError, match=f"process {other.pid}"):
            run.identify_run_process()
        other.kill()
    run.declare_run_owner(["snakemake"])
    assert run.identify_run_process()["pid"] == os.getpid()
    assert run.format_target_command("x") == "snakemake --cores 1 x"


CELLS = [("one", "a", 1), ("two", "a", 1), ("one", "b", 1), ("two", "b", 1)]


@pytest.fixture
def planned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{place},1,{','.join(map(str, cell))}" for place, cell in enumerate(CELLS, 1)]
    write_text(
        paths.CELLS, "\n".join(["position,round,environment,workload,repetition", *lines]) + "\n"
    )


def put(*cells, kind="raw", ago=0.0):
    for cell in cells:
        path = paths.get_cell_path(kind, *cell, "log")
        write_text(path, "7\n")
        os.utime(path, (time.time() - ago,) * 2)


def test_measured_and_pending_cells_are_counted_and_the_rest_is_estimated(
    planned,
):
    progress.record_run_start(0)
    assert progress.estimate_run_progress() == (0, 4, None)
    put(CELLS[0], ago=600)
    write_json(progress.PATH, {"begun": time.time() - 100, "done": 1})
    assert progress.estimate_run_progress() == (1, 4, None)
    put(CELLS[1], kind="pending")
    assert progress.estimate_run_progress() == (2, 4, pytest.approx(200, abs=5))
    put(*CELLS[2:], kind="pending")
    assert progress.estimate_run_progress() == (4, 4, 0)


def test_a_cell_of_another_plan_counts_once_it_has_a_new_log(planned):
    put(*CELLS[:3], ago=60)
    progress.record_run_start(2)
    assert progress.estimate_run_progress()[:2] == (2, 4)
    put(CELLS[0], kind="pending", ago=-1)
    assert progress.estimate_run_progress()[:2] == (3, 4)


def test_nested_blocks_of_one_off_time_count_once(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    before = progress.get_one_off_seconds()
    with progress.count_one_off_time():
        now[0] += 2
        with progress.count_one_off_time():
            now[0] += 3
    assert progress.get_one_off_seconds() - before == 5


def test_a_folder_that_snakemake_cannot_work_in_is_refused():
    with pytest.raises(UserError, match=r"a\{b\}: .*use another folder"):
        Experiment({}, "/home/a{b}")

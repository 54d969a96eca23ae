"""Pending results: of cells that were measured by another cell's job, and are not in place yet."""

import glob
import json
import os
import tempfile

import projects
import pytest

from strata.experiment import plan
from strata.host import node
from strata.measure import pending
from strata.util import paths
from strata.util.errors import UserError
from strata.util.files import write_json


def write(kind, cell, log="7\n", **record):
    path = paths.get_cell_path(kind, *cell, "log")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(log)
    write_json(path.removesuffix("log") + "json", record)


@pytest.fixture
def planned(project):
    """A project of two environments; its plan."""
    environments = {name: {"layers": ["host"]} for name in ("one", "two")}
    folder = project(projects.on_host(environments=environments))
    return projects.plan(folder)


FIRST, OTHER = ("one", "noop", 1), ("two", "noop", 1)
TOGETHER = {"first": "one", "started": "2026-01-01T00:00:00Z"}


def test_a_cell_is_due_without_a_log_of_what_the_plan_says(planned):
    mark = plan.compute_fingerprint(planned, "one", "noop")
    assert pending.is_due(planned, FIRST)
    write("raw", FIRST, fingerprint="other")
    assert pending.is_due(planned, FIRST)
    write("raw", FIRST, fingerprint=mark)
    assert pending.is_measured(planned, FIRST)
    assert not pending.is_due(planned, FIRST)
    os.unlink(paths.get_cell_path("raw", *FIRST, "log"))
    assert pending.is_due(planned, FIRST)


def test_pending_results_are_put_in_place_whole_and_stay_until_the_run_ends(planned):
    assert not pending.is_pending(planned, OTHER)
    write("pending", OTHER, fingerprint=plan.compute_fingerprint(planned, "two", "noop"))
    write("raw", OTHER, "old\n", fingerprint="other")
    assert pending.is_pending(planned, OTHER)
    assert not pending.is_due(planned, OTHER)
    # Another node, which may have died amid the block, measured it.
    write(
        "pending",
        OTHER,
        fingerprint=plan.compute_fingerprint(planned, "two", "noop"),
        node={"name": "node-other", "boot": None},
    )
    assert not pending.is_pending(planned, OTHER)
    write(
        "pending",
        OTHER,
        fingerprint=plan.compute_fingerprint(planned, "two", "noop"),
        node=node.identify_node(),
    )
    assert pending.is_pending(planned, OTHER)
    assert "fingerprint" in pending.copy_results_to_raw(OTHER)
    with open(paths.get_cell_path("raw", *OTHER, "log")) as file:
        assert file.read() == "7\n"
    assert pending.is_measured(planned, OTHER)
    # A signal met the job, and Snakemake removed its log.
    os.unlink(paths.get_cell_path("raw", *OTHER, "log"))
    pending.remove_copied_results(planned, [FIRST, OTHER])
    assert pending.is_pending(planned, OTHER)
    pending.copy_results_to_raw(OTHER)
    pending.copy_results_to_raw(OTHER)
    assert {os.path.basename(path) for path in glob.glob("results/*/two/noop/*")} == {
        "1.json",
        "1.log",
    }
    # A log that is removed after a run is measured again.
    pending.remove_copied_results(planned, [FIRST, OTHER])
    assert not pending.is_pending(planned, OTHER)
    assert pending.is_measured(planned, OTHER)
    os.unlink(paths.get_cell_path("raw", *OTHER, "log"))
    assert pending.is_due(planned, OTHER)
    with pytest.raises(UserError, match=r"results/raw/.*: cannot be written"):
        pending.copy_results_to_raw(OTHER)


def test_results_of_a_block_count_as_long_as_those_of_the_cell_that_measured_it(planned):
    write(
        "pending",
        OTHER,
        fingerprint=plan.compute_fingerprint(planned, "two", "noop"),
        together=TOGETHER,
    )
    mark = plan.compute_fingerprint(planned, "one", "noop")
    assert pending.is_due(planned, OTHER)
    for record in ({}, {"together": {**TOGETHER, "started": "2026-01-02T00:00:00Z"}}):
        write("raw", FIRST, fingerprint=mark, **record)
        assert pending.is_due(planned, OTHER)
        assert not pending.is_pending(planned, OTHER)
    for kind in ("raw", "pending"):
        write(kind, FIRST, fingerprint=mark, together=TOGETHER)
        assert pending.is_pending(planned, OTHER)
        os.unlink(paths.get_cell_path(kind, *FIRST, "log"))
        assert pending.is_due(planned, OTHER)


def test_a_cell_whose_job_was_killed_at_its_end_is_not_measured_again(project):
    """Nor are the others of its block, which count as long as it does."""
    environments = {name: {"layers": ["host"]} for name in ("one", "two")}
    run = [{"argv": ["/bin/sh", "-c", "echo x >>runs; echo 7"], "timeout": 20}]
    folder = project(
        projects.on_host(environments=environments), {"noop": {**projects.NOOP, "run": run}}
    )
    planned = projects.plan(folder)
    for cell in (FIRST, OTHER):
        mark = plan.compute_fingerprint(planned, *cell[:2])
        write("pending", cell, fingerprint=mark, together=TOGETHER, seconds=1.0)
    for cell in (FIRST, OTHER):
        projects.good(folder, "strata", "cell", *map(str, cell))
        with open(paths.get_cell_path("raw", *cell, "json")) as file:
            assert json.load(file)["together"] == TOGETHER
    assert not (folder / "runs").exists()


@pytest.mark.parametrize("parser", [None, "def parse(lines, parameters):\n    return []\n"])
def test_folders_of_results_may_lie_on_other_file_systems(project, parser):
    folder = project(projects.on_host(repetitions=1))
    projects.plan(folder)
    if parser:
        (folder / "workloads/noop/parse.py").write_text(parser)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        for name in ("pending", "failed" if parser else "raw"):
            (folder / "results" / name).symlink_to(f"{elsewhere}/{name}")
            os.mkdir(f"{elsewhere}/{name}")
            assert os.stat(elsewhere).st_dev != os.stat(folder).st_dev
        done = projects.run(folder, "strata", "cell", "bare", "noop", "1")
        assert done.returncode == bool(parser), done.stderr
        kept = folder / f"results/{'failed' if parser else 'raw'}/bare/noop/1.log"
        assert kept.read_text() == "7\n"

"""What is measured beside the cell that was asked for: who is due, what waits, and what a kill leaves of it."""

import glob
import json
import os

import projects
import pytest

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import write_json
from strata.cell import spool
from strata.experiment import plan
from strata.host import node


def put(kind, cell, log="7\n", **told):
    path = places.cell_path(kind, *cell, "log")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(log)
    write_json(path.removesuffix("log") + "json", told)


@pytest.fixture
def planned(project):
    """A project of two environments; its plan."""
    environments = {name: {"layers": ["host"]} for name in ("one", "two")}
    folder = project(projects.on_host(environments=environments))
    return projects.plan(folder)


FIRST, OTHER = ("one", "noop", 1), ("two", "noop", 1)
TOGETHER = {"first": "one", "started": "2026-01-01T00:00:00Z"}


def test_a_cell_is_due_without_a_log_of_what_the_plan_says(planned):
    mark = plan.fingerprint(planned, "one", "noop")
    assert spool.due(planned, FIRST)
    put("raw", FIRST, fingerprint="other")
    assert spool.due(planned, FIRST)
    put("raw", FIRST, fingerprint=mark)
    assert spool.is_measured(planned, FIRST)
    assert not spool.due(planned, FIRST)
    os.unlink(places.cell_path("raw", *FIRST, "log"))
    assert spool.due(planned, FIRST)


def test_what_waits_is_taken_whole_and_stays_until_it_is_forgotten(planned):
    assert not spool.waiting(planned, OTHER)
    put("spool", OTHER, fingerprint=plan.fingerprint(planned, "two", "noop"))
    put("raw", OTHER, "old\n", fingerprint="other")
    assert spool.waiting(planned, OTHER)
    assert not spool.due(planned, OTHER)
    # Another node, which may have died amid the block, measured it.
    put("spool", OTHER, fingerprint=plan.fingerprint(planned, "two", "noop"), node={"name": "node-other", "boot": None})
    assert not spool.waiting(planned, OTHER)
    put("spool", OTHER, fingerprint=plan.fingerprint(planned, "two", "noop"), node=node.facts())
    assert spool.waiting(planned, OTHER)
    assert "fingerprint" in spool.take(OTHER)
    with open(places.cell_path("raw", *OTHER, "log")) as file:
        assert file.read() == "7\n"
    assert spool.is_measured(planned, OTHER)
    # A signal met the job.
    os.unlink(places.cell_path("raw", *OTHER, "log"))
    spool.end(planned, [FIRST, OTHER], False)
    assert spool.waiting(planned, OTHER)
    # Or Snakemake just then, which regards the log as unfinished: its next run removes it.
    spool.take(OTHER)
    spool.end(planned, [FIRST, OTHER], False)
    spool.begin()
    os.unlink(places.cell_path("raw", *OTHER, "log"))
    assert spool.waiting(planned, OTHER)
    spool.take(OTHER)
    spool.take(OTHER)
    assert {os.path.basename(path) for path in glob.glob("results/*/two/noop/*")} == {"1.json", "1.log"}
    spool.end(planned, [FIRST, OTHER], True)
    assert not spool.waiting(planned, OTHER)
    assert spool.is_measured(planned, OTHER)
    with pytest.raises(UserError, match=r"results/raw/.*: cannot be written"):
        spool.take(OTHER)


def test_a_log_that_is_removed_after_a_run_is_measured_again(planned):
    for good in (True, False):
        put("spool", OTHER, fingerprint=plan.fingerprint(planned, "two", "noop"))
        spool.take(OTHER)
        spool.end(planned, [OTHER], good)
        os.unlink(places.cell_path("raw", *OTHER, "log"))
        assert spool.due(planned, OTHER)
        spool.begin()
        assert spool.due(planned, OTHER)
        assert not os.path.exists(places.cell_path("spool", *OTHER, "log.taken"))


def test_a_block_waits_no_longer_than_the_log_of_whoever_measured_it_is_there(planned):
    put("spool", OTHER, fingerprint=plan.fingerprint(planned, "two", "noop"), together=TOGETHER)
    mark = plan.fingerprint(planned, "one", "noop")
    assert spool.due(planned, OTHER)
    for told in ({}, {"together": {**TOGETHER, "started": "2026-01-02T00:00:00Z"}}):
        put("raw", FIRST, fingerprint=mark, **told)
        assert spool.due(planned, OTHER)
        assert not spool.waiting(planned, OTHER)
    for kind in ("raw", "spool"):
        put(kind, FIRST, fingerprint=mark, together=TOGETHER)
        assert spool.waiting(planned, OTHER)
        os.unlink(places.cell_path(kind, *FIRST, "log"))
        assert spool.due(planned, OTHER)


def test_a_cell_whose_job_was_killed_as_it_ended_is_taken_and_not_measured_again(project):
    """With the others of its block, which count as long as it does."""
    environments = {name: {"layers": ["host"]} for name in ("one", "two")}
    run = [{"argv": ["/bin/sh", "-c", "echo x >>runs; echo 7"], "timeout": 20}]
    folder = project(projects.on_host(environments=environments), {"noop": {**projects.NOOP, "run": run}})
    planned = projects.plan(folder)
    for cell in (FIRST, OTHER):
        mark = plan.fingerprint(planned, *cell[:2])
        put("spool", cell, fingerprint=mark, together=TOGETHER, seconds=1.0)
    for cell in (FIRST, OTHER):
        projects.good(folder, "strata", "cell", *map(str, cell))
        with open(places.cell_path("raw", *cell, "json")) as file:
            assert json.load(file)["together"] == TOGETHER
    assert not (folder / "runs").exists()

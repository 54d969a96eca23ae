"""What is measured beside the cell that was asked for: who is due, what waits, and what a kill leaves of it."""

import json
import os
import signal
import subprocess
import time

import projects
import pytest

from strata.base import places
from strata.base.files import write_json
from strata.cell import spool
from strata.experiment import plan
from strata.system import state

LOADS = ("a", "b", "c")
SLOW = "echo $$ >>pids; echo 7; test -e fast || sleep 60"


# By files alone.


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


def test_what_waits_is_taken_once_and_whole(planned):
    assert spool.take(planned, OTHER) is None
    put("spool", OTHER, fingerprint=plan.fingerprint(planned, "two", "noop"))
    put("raw", OTHER, "old\n", fingerprint="other")
    assert spool.waiting(planned, OTHER)
    assert not spool.due(planned, OTHER)
    assert "fingerprint" in spool.take(planned, OTHER)
    with open(places.cell_path("raw", *OTHER, "log")) as file:
        assert file.read() == "7\n"
    assert spool.is_measured(planned, OTHER)
    os.unlink(places.cell_path("raw", *OTHER, "log"))
    assert "fingerprint" in spool.take(planned, OTHER), "a signal met the job"
    spool.forget(OTHER)
    assert spool.take(planned, OTHER) is None


def test_a_block_waits_no_longer_than_the_log_of_whoever_measured_it_is_there(planned):
    put("spool", OTHER, fingerprint=plan.fingerprint(planned, "two", "noop"), together=TOGETHER)
    assert spool.due(planned, OTHER)
    for told in ({}, {"together": {**TOGETHER, "started": "2026-01-02T00:00:00Z"}}):
        put("raw", FIRST, fingerprint=plan.fingerprint(planned, "one", "noop"), **told)
        assert spool.due(planned, OTHER)
        assert spool.take(planned, OTHER) is None
    put("raw", FIRST, fingerprint=plan.fingerprint(planned, "one", "noop"), together=TOGETHER)
    assert spool.waiting(planned, OTHER)
    os.unlink(places.cell_path("raw", *FIRST, "log"))
    assert spool.due(planned, OTHER)


# Units that are measured: an emulated machine's block, and a repetition of the naive order, in one system.


@pytest.fixture
def block(project):
    """A project whose environment measures its three workloads one after the other in one system."""

    def go(kind, script="echo $$ >>pids; echo 7", other=None):
        described = {
            name: {**projects.NOOP, "run": [{"argv": ["/bin/sh", "-c", other or script], "timeout": 90}]}
            for name in LOADS
        }
        described["a"]["run"][0]["argv"][2] = script
        order = {"order": "sequential"} if kind == "sequential" else {}
        folder = project(projects.on_host(workloads=dict.fromkeys(LOADS), **order), described)
        made = projects.plan(folder)
        if kind == "emulated":
            made["environments"]["bare"]["emulated"] = True
            write_json("results/plan.json", made)
        return folder

    return go


def measure(folder, load="a", repetition=1):
    return projects.run(folder, "strata", "cell", "bare", load, str(repetition))


def record(folder, load, kind="raw"):
    path = folder / f"results/{kind}/bare/{load}/1.json"
    return json.loads(path.read_text()) if path.exists() and path.with_suffix(".log").exists() else None


def runs(folder):
    return len((folder / "pids").read_text().split())


@pytest.mark.parametrize("kind", ["sequential", "emulated"])
def test_a_block_is_measured_in_one_system_and_each_cell_waits_until_it_is_asked_for(block, kind):
    folder = block(kind)
    done = measure(folder)
    assert done.returncode == 0, done.stderr
    assert state.all_up() == []
    assert runs(folder) == 3
    assert os.listdir(folder / "results/raw/bare") == ["a"]
    for load in "bc":
        assert record(folder, load, "spool")
        note = folder / f"results/logs/cells/bare/{load}/1.log"
        noted = note.read_text()
        taken = measure(folder, load)
        assert taken.returncode == 0, taken.stderr
        assert f"bare · {load} · repetition 1: " in taken.stderr
        # How it went stays written down.
        assert note.read_text() == noted
    assert runs(folder) == 3
    records = {load: record(folder, load) for load in LOADS}
    assert len({own["system"]["id"] for own in records.values()}) == 1
    assert records["a"]["system"]["cells_before"] == 0
    assert {own["system"]["cells_before"] for own in records.values()} == {0, 1, 2}
    assert {own["position"]["actual"] for own in records.values()} == {1, 2, 3}
    assert not [own for own in records.values() if {"together", "interleaved"} & set(own)]
    if kind == "sequential":
        # Another repetition has a system of its own.
        assert measure(folder, repetition=2).returncode == 0
        assert len({own["system"]["id"] for own in projects.records(folder)}) == 2


@pytest.mark.parametrize("kind", ["sequential", "emulated"])
def test_one_cell_of_a_block_that_is_missing_is_measured_alone(block, kind):
    folder = block(kind)
    for load in LOADS:
        measure(folder, load)
    (folder / "results/raw/bare/b/1.log").unlink()
    before = record(folder, "a"), record(folder, "c")
    done = measure(folder, "b")
    assert done.returncode == 0, done.stderr
    assert runs(folder) == 4
    assert record(folder, "b")["system"]["cells_before"] == 0
    assert before == (record(folder, "a"), record(folder, "c"))


def test_whoever_fails_in_a_block_is_measured_again_by_itself_and_the_others_are_kept(block):
    folder = block("sequential", other="echo $$ >>pids; echo 7; test -e good")
    page = folder / "workloads/c/workload.yaml"
    page.write_text(page.read_text().replace("; test -e good", ""))
    projects.plan(folder)
    done = measure(folder)
    assert done.returncode == 0, done.stderr
    assert "bare · b · repetition 1 failed beside bare · a · repetition 1" in done.stderr
    assert record(folder, "a")
    assert state.all_up() == []
    assert not record(folder, "b", "spool")
    assert (folder / "results/failed/bare/b/1.log").exists()
    failed = measure(folder, "b")
    assert failed.returncode == 1
    assert "cell failed: bare · b · repetition 1" in failed.stderr
    (folder / "good").touch()
    assert measure(folder, "b").returncode == 0
    assert measure(folder, "c").returncode == 0
    # Only the one that failed was measured more than once.
    assert runs(folder) == 2 + 3
    assert record(folder, "a")["system"]["id"] != record(folder, "c")["system"]["id"]
    assert all(record(folder, load) for load in LOADS)
    assert not list((folder / "results/failed").rglob("*.log"))


def begin(folder, number):
    """A process that measures the block, once so many of its cells have begun; the shell that is at work."""
    words = projects.command("strata", "cell", "bare", "a", "1")
    measuring = subprocess.Popen(words, cwd=folder, env=projects.environment(), stderr=subprocess.DEVNULL)
    pids = folder / "pids"
    deadline = time.monotonic() + 30
    while len(pids.read_text().split() if pids.exists() else []) < number:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return measuring, int(pids.read_text().split()[-1])


@pytest.mark.parametrize("kind", ["sequential", "emulated"])
@pytest.mark.parametrize("number", [1, 2])
def test_after_a_kill_in_the_middle_of_a_block_what_ended_is_taken_and_the_rest_measured(block, kind, number):
    script = "echo $$ >>pids; echo 7"
    folder = block(kind, SLOW if number == 1 else script, SLOW)
    measuring, shell = begin(folder, number)
    measuring.kill()
    measuring.wait()
    os.killpg(shell, signal.SIGKILL)
    left = state.all_up()[-1]["id"]
    assert not list((folder / "results/raw").rglob("*.log"))
    assert bool(record(folder, "a", "spool")) is (number == 2)
    (folder / "fast").touch()
    for load in LOADS:
        done = measure(folder, load)
        assert done.returncode == 0, done.stderr
    # The one at which it was killed began twice.
    assert runs(folder) == 4
    assert state.all_up() == []
    assert left not in os.listdir(places.systems())
    assert (record(folder, "a")["system"]["id"] == left) is (number == 2)
    assert record(folder, "b")["system"]["id"] != left

"""Whose system is up, and who waits for whom."""

import os
import subprocess
import time

import pytest

from strata.base import run
from strata.base.errors import UserError
from strata.base.files import write_json
from strata.base.process import identity
from strata.host import cgroups
from strata.snakemake import workflow
from strata.system import keeper, testbed
from strata.vm import snapshot


def test_what_a_run_left_is_told_from_what_others_did(monkeypatch, tmp_path):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))
    mine, other = identity(os.getpid()), identity(os.getppid())
    assert not testbed.left_by(mine)
    testbed.write_state({"system": {"owner": mine}, "cell": None})
    assert testbed.left_by(mine)
    assert not testbed.left_by(other)
    testbed.write_state({"system": None, "cell": None})
    for name, owner in (("a", other), ("b", mine)):
        (tmp_path / "vm/snapshots" / name).mkdir(parents=True)
        write_json(tmp_path / "vm/snapshots" / name / "snapshot.json", {"owner": owner})
    assert testbed.left_by(mine)
    assert snapshot.of(other) == ["a"]
    assert snapshot.of() == ["a", "b"]
    assert snapshot.remove(mine) == ["b"]
    assert not testbed.left_by(mine)
    assert snapshot.of() == ["a"]


@pytest.mark.timeout(60)
def test_a_run_that_left_nothing_does_not_wait_for_another_measurement(project, monkeypatch, capsys):
    project()
    ending = workflow.Workflow.__new__(workflow.Workflow)
    monkeypatch.setattr(workflow.Workflow, "rebuilding", False, raising=False)
    taken = []
    monkeypatch.setattr(testbed, "take_down", lambda: taken.append("system"))
    with testbed.exclusive():
        ending.end()
    assert taken == []
    testbed.write_state({"system": {"owner": run.owner()}, "cell": None})
    # What it did leave is its keeper's to remove where another measures.
    monkeypatch.setattr(keeper, "is_there", lambda owner: True)
    with testbed.exclusive():
        ending.end()
    assert taken == []
    assert "is removed as soon as that has ended" in capsys.readouterr().err
    ending.end()
    assert taken == ["system"]


def test_what_runs_in_groups_is_told_by_its_words(tmp_path):
    groups = [tmp_path / "strata" / name for name in ("a b", "other")]
    running = subprocess.Popen(["sleep", "300"])
    ended = subprocess.Popen(["true"])
    ended.wait()
    try:
        for group, processes in zip(groups, ([running.pid, ended.pid], [os.getpid()]), strict=True):
            group.mkdir(parents=True)
            (group / "cgroup.procs").write_text("".join(f"{process}\n" for process in processes))

        def seen(pattern):
            command = cgroups.look([pattern, f"{tmp_path}/none/*"])
            return cgroups.command_lines(subprocess.check_output(command, text=True))

        both, one = seen(f"{tmp_path}/strata/*"), seen(f"{tmp_path}/strata/o*")
        assert "sleep 300" in both
        assert len(both) == 2
        assert len(one) == 1
        assert set(one) < set(both)
        assert seen(f"{tmp_path}/nowhere/*") == []
    finally:
        running.kill()
        running.wait()


class Left(testbed.System):
    """A system in which something is seen to run for so many looks."""

    def __init__(self, facts, looks):
        self.facts, self.tops, self.looks = facts, [self], looks

    def left(self, *patience):
        if patience:
            return super().left(*patience)
        self.looks -= 1
        return ["sleep 300"] if self.looks >= 0 else []


@pytest.mark.parametrize(("looks", "left"), [(0, []), (3, []), (1000, ["sleep 300"])])
def test_something_left_has_a_moment_to_end(looks, left):
    begun = time.monotonic()
    assert Left({}, looks).left(0.6) == left
    assert (time.monotonic() - begun >= 0.6) == bool(left)


def test_a_system_that_cannot_be_asked_is_not_used_again_and_its_cell_is_good(monkeypatch):
    def gone(*patience):
        raise UserError("no answer")

    system = Left({"owner": identity(os.getppid()), "cells_before": 0}, 0)
    monkeypatch.setattr(system, "left", gone)
    taken = []
    monkeypatch.setattr(testbed, "take_down", lambda: taken.append("system"))
    assert "no answer" in testbed.end_cell(system)[0]
    assert taken == ["system"]

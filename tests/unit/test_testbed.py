"""Whose system is up, and who waits for whom."""

import os

import pytest

from strata import testbed, workflow
from strata.files import write_json
from strata.process import identity
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
def test_a_run_that_left_nothing_does_not_wait_for_another_measurement(project, monkeypatch):
    project()
    ending = workflow.Workflow.__new__(workflow.Workflow)
    monkeypatch.setattr(workflow.Workflow, "rebuilding", False, raising=False)
    taken = []
    monkeypatch.setattr(testbed, "take_down", lambda: taken.append("system"))
    with testbed.exclusive():
        ending.end()
    assert taken == []
    testbed.write_state({"system": {"owner": testbed.owner()}, "cell": None})
    ending.end()
    assert taken == ["system"]

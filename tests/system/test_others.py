"""Another run on this machine: it is waited for, and nothing of it counts as left by a test."""

import contextlib
import os
import subprocess
import sys
from types import SimpleNamespace

import leftovers
import pytest

from strata.base.process import identity
from strata.system import state

# In pytest's place: what is said is not shown, since it is of no real run.
CONFIG = SimpleNamespace(
    pluginmanager=SimpleNamespace(
        getplugin=lambda _: SimpleNamespace(global_and_fixture_disabled=contextlib.nullcontext)
    )
)


@contextlib.contextmanager
def up(system_of, variables):
    """A process with these variables that has a system up."""
    program = "import sys; print(flush=True); sys.stdin.read()"
    argv = [sys.executable, "-S", "-c", program, "-m", "strata", "cell"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables) as owner:
        # Its variables can be read only a moment after it was started.
        owner.stdout.readline()
        state.forget("strata-1")
        state.begin("strata-1", system_of, [], identity(owner.pid))
        yield owner


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("STRATA_HOME", str(tmp_path))


def test_a_run_of_somebody_else_is_told_from_ours(capsys):
    others = {key: value for key, value in os.environ.items() if key != "STRATA_TEST_SESSION"}
    assert leftovers.others_run() is None
    with up("native", dict(os.environ)) as ours:
        assert leftovers.others_run() is None
        assert leftovers.is_ours(ours.pid) is True
    with up("native", others) as other:
        assert leftovers.others_run() == other.pid
        assert str(other.pid) not in leftovers.processes("strata cell")
    # It is dead: what it left is no reason to wait.
    assert leftovers.others_run() is None
    leftovers.wait_for_others(CONFIG)
    assert capsys.readouterr().out == ""


def test_its_end_is_waited_for_before_anything_is_compared(capsys, monkeypatch):
    others = {key: value for key, value in os.environ.items() if key != "STRATA_TEST_SESSION"}
    with up("native", others) as other:
        monkeypatch.setattr(leftovers.time, "sleep", lambda _: other.stdin.close() or other.wait())
        leftovers.wait_for_others(CONFIG)
        assert other.returncode == 0
        assert f"another run (process {other.pid}) is under way" in capsys.readouterr().out


def test_one_that_does_not_end_is_named(monkeypatch):
    others = {key: value for key, value in os.environ.items() if key != "STRATA_TEST_SESSION"}
    monkeypatch.setattr(leftovers, "PATIENCE", 0)
    with up("native", others) as other, pytest.raises(AssertionError, match=rf"another run \(process {other.pid}\)"):
        leftovers.wait_for_others(CONFIG)

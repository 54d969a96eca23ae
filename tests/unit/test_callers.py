"""The caller's signals, streams and variables change no exit code and no result."""

import os
import subprocess
import sys

import projects
import pytest

from strata.util import run
from strata.util.errors import UserError
from strata.util.timeouts import VARIABLE, read_patience

# Shell commands by which a caller starts Strata.
CALLERS = {
    "usual": 'exec "$@"',
    "SIGCHLD ignored": 'trap "" CHLD; exec "$@"',
    "standard error is full": 'exec "$@" 2>/dev/full',
    "standard error is closed": 'exec "$@" 2>&-',
    "standard output is closed": 'exec "$@" >&-',
}


def status(folder, caller, *words):
    argv = ["sh", "-c", CALLERS[caller], "sh", sys.executable, "-m", "strata", *words]
    return subprocess.run(
        argv, cwd=folder, env=projects.environment(), capture_output=True, check=False
    ).returncode


@pytest.mark.parametrize("caller", CALLERS)
def test_a_failure_has_its_exit_code_for_every_caller(project, caller):
    work = {**projects.NOOP, "run": [{"argv": ["/bin/sh", "-c", "exit 3"], "timeout": 20}]}
    folder = project(workloads={"noop": work})
    projects.plan(folder)
    assert status(folder, caller, "cell", "bare", "noop", "1") == 1
    assert status(folder, caller, "cell", "bare", "noop", "99") == 1
    assert status(folder, caller, "verify", "no-such.zip") == 1
    assert status(folder, caller, "compare", "no-such.zip", "other.zip") == 2


@pytest.mark.parametrize("caller", CALLERS)
def test_a_cell_is_measured_for_every_caller(project, caller):
    folder = project()
    projects.plan(folder)
    assert status(folder, caller, "cell", "bare", "noop", "1") == 0
    assert (folder / "results/raw/bare/noop/1.log").read_text().strip() == "7"
    assert (folder / "results/raw/bare/noop/1.log").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("value", ["0", "-3", "abc", "1.5", "99999"])
def test_a_patience_that_is_no_positive_number_is_refused(monkeypatch, value):
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(UserError, match=f"{VARIABLE}: is '{value}'"):
        read_patience()


def test_variables_that_steer_programs_are_removed_and_those_that_name_a_daemon_stay(monkeypatch):
    steering = {"CONTAINERS_CONF", "STORAGE_DRIVER", "TAR_OPTIONS", "DOCKER_DEFAULT_PLATFORM"}
    for name in [*steering, "DOCKER_HOST"]:
        monkeypatch.setenv(name, "x")
    run.remove_steering_variables()
    assert not steering & os.environ.keys()
    assert "DOCKER_HOST" in os.environ

"""The workflow around the cells, on the host alone."""

import contextlib
import os
import signal
import subprocess
import time

import projects
import pytest

from strata.testbed import journal
from strata.util import locks


def count_wake_ups(pid):
    """Return how often all threads of a process have been woken so far."""
    count = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status") as file:
            count += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
    return count


def test_the_controller_is_idle_while_a_cell_measures(project):
    last = {
        **projects.NOOP,
        "run": [{"argv": ["/bin/sh", "-c", "echo 7; test -e first || sleep 4"], "timeout": 20}],
    }
    folder = project(projects.on_host(repetitions=40), {"noop": last})
    (folder / "first").touch()
    run = projects.start(
        folder, "snakemake", "--cores", "1", "--", "cells", output=subprocess.DEVNULL
    )
    try:
        while len(list(folder.glob("results/raw/*/*/*.log"))) < 30:
            assert run.poll() is None
            time.sleep(0.05)
        (folder / "first").unlink()
        time.sleep(1)
        before = count_wake_ups(run.pid)
        time.sleep(2)
        count = count_wake_ups(run.pid) - before
    finally:
        run.terminate()
        run.wait(30)
    assert count <= 4


def end_run(run, number):
    """End a run by a signal, and return its output.

    Like a terminal it signals all processes of the run; SIGKILL goes to Snakemake alone.
    """
    (os.kill if number == signal.SIGKILL else os.killpg)(run.pid, number)
    return run.communicate(timeout=40)[0]


@pytest.mark.parametrize("seconds", [0, 0.1])
def test_a_run_that_reads_a_checkpoint_ends_by_sigterm(project, seconds):
    folder = project(
        projects.on_host(
            environments={name: {"layers": ["host"]} for name in ("native", "bare")},
            repetitions={"min": 3, "max": 30, "target": "0.1%"},
        ),
        {"noop": {**projects.NOOP, "run": [{"argv": ["/bin/date", "+%N"], "timeout": 20}]}},
    )
    run = projects.start(folder, "snakemake", "--cores", "1", "--", "cells")
    try:
        while "Updating checkpoint dependencies" not in (line := run.stdout.readline()):
            assert line, "it ended before it decided"
        time.sleep(seconds)
        os.kill(run.pid, signal.SIGTERM)
        run.communicate(timeout=40)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode != 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_cell_that_waits_for_the_machine_ends_with_its_run_and_measures_nothing(project, number):
    folder = project()
    with locks.hold_machine_lock():
        run = projects.start(folder, "snakemake", "--cores", "1", "--", "cells")
        try:
            while "another measurement is under way" not in (line := run.stdout.readline()):
                assert line, "it ended before its cell waited"
            output = end_run(run, number)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode != 0
    assert "before it began" in output
    assert not list((folder / "results/raw").rglob("*.log"))
    # No process is left that would measure now that the machine is free.
    with locks.hold_machine_lock():
        assert journal.read_entries() == []

"""`strata try` with real systems: an answer, what fails in a system, a signal, and what is left."""

import json
import os
import signal
import subprocess
import sys

import projects
import pytest

from strata.experiment.measuring import LOG

# Words after `strata try`, and what the message names: the cause, and a remedy.
FAILING = [
    (["--", "no-such-program"], ["cannot be started", "--packages"]),
    (["--", "./mine"], ["cannot be started", "--file ./mine"]),
    (["--", "cat", "data"], ["exit code 1", "--file data", "by hand: "]),
    (["--", "sh", "-c", "echo bad luck >&2; exit 7"], ["exit code 7", "bad luck"]),
    (["--", "sh", "-c", "kill -9 $$"], ["signal 9"]),
    (["--budget", "4s", "--", "sleep", "60"], ["no end after 2 s", "--budget"]),
    (["--", "sh", "-c", "setsid sleep 60 & exit 0"], ["left a process", "wait"]),
    (["--", "sh", "-c", "test -t 0 || { echo not a tty >&2; exit 1; }"], ["tty", "terminal"]),
    (["--metric", "rate=([0-9]+) req", "--", "echo", "none"], ["matches", "none"]),
    (["--metric", "rate=(x)", "--", "echo", "x"], ["not a number"]),
    (["--file", "data", "--", "sh", "-c", "cp data out; exit 3"],
     ["exit code 3", "cp -rH -- data"]),
]  # fmt: skip


@pytest.fixture
def place(tmp_path, image):
    """A folder outside of the project, with a program and a file."""
    (tmp_path / "mine").write_text("#!/bin/sh\nwc -c <data >&2\necho rate 12.5\nsleep 0.05\n")
    (tmp_path / "mine").chmod(0o755)
    (tmp_path / "data").write_text("text\n")
    return tmp_path


def attempt(place, *words):
    return projects.run(place, "strata", "try", "--in", "native,docker", *words)


@pytest.mark.parametrize(
    ("words", "names"),
    [FAILING[0], FAILING[5], *(pytest.param(*row, marks=pytest.mark.long) for row in FAILING[1:5]),
     *(pytest.param(*row, marks=pytest.mark.long) for row in FAILING[6:])],
)  # fmt: skip
def test_a_command_that_fails_is_explained_and_leaves_nothing(place, machine_stays, words, names):
    done = attempt(place, *words)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    for name in names:
        assert name in done.stderr
    assert not list(place.glob("try/*"))


def test_files_and_metrics_give_an_answer_that_the_same_command_narrows(place, machine_stays):
    words = ["--file", "mine", "--file", "data", "--metric", "rate:1/s=rate ([0-9.]+)"]
    words += ["--budget", "20s", "--json", "answer.json", "--csv", "answer.csv"]
    done = attempt(place, *words, "--html", "answer.html", "--", "./mine")
    assert done.returncode == 0, done.stderr
    assert "native" in done.stdout
    answer = json.loads((place / "answer.json").read_text())
    rows = {(row["metric"], row["environment"]): row for row in answer["rows"]}
    assert rows["rate", "docker"]["level"] == pytest.approx(12.5)
    assert 0.05 < rows["time", "native"]["level"] < 2
    assert rows["cpu", "docker"]["level"] > 0
    assert rows["memory", "docker"]["level"] > 0
    assert len(projects.table(place / "answer.csv")) == len(rows)
    page = (place / "answer.html").read_text()
    assert "./mine" in page
    assert "2014" not in page
    # It is an experiment like any other.
    logs = len(list(place.glob("try/mine/results/raw/*/*/*.log")))
    assert logs >= 6
    assert projects.run(place / "try/mine", "strata", "plan").returncode == 0
    again = attempt(place, *words, "--", "./mine")
    assert again.returncode == 0, again.stderr
    assert len(list(place.glob("try/mine/results/raw/*/*/*.log"))) >= logs
    assert not list(place.glob("try/mine-2"))


def test_a_signal_gives_the_answer_so_far(place, machine_stays):
    words = [sys.executable, "-m", "strata", "try", "--in", "native,docker", "--margin", "0.001%"]
    process = subprocess.Popen(
        [*words, "--", "sleep", "0.1"], cwd=place, env=projects.environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    log = place / "try/sleep" / LOG
    projects.until(lambda: log.exists() and "round 3:" in log.read_text(), 300)
    os.kill(process.pid, signal.SIGINT)
    printed, _ = process.communicate(timeout=120)
    assert "of native's speed" in printed
    assert "ended early" in printed

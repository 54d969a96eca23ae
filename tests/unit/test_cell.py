"""A cell from its beginning to its end, on the host alone: no image, no container."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time

import projects
import pytest

from strata.image import build
from strata.testbed import journal, lifecycle
from strata.util import locks, paths, process


def workload_with(**changes):
    return {**projects.NOOP, **changes}


def shell(script, timeout=20):
    return [{"argv": ["/bin/sh", "-c", script], "timeout": timeout}]


@pytest.fixture
def run(project):
    """Plans a project with one workload and measures a cell of it."""

    def measure(repetition="1", environment="bare", name="noop", **changes):
        folder = project(workloads={"noop": workload_with(**changes)})
        projects.plan(folder)
        done = projects.run(folder, "strata", "cell", environment, name, repetition)
        return folder, done

    return measure


def raw(folder, suffix="log", repetition=1):
    return folder / f"results/raw/bare/noop/{repetition}.{suffix}"


def test_a_good_cell_leaves_log_and_record_and_nothing_else(run, tmp_path):
    folder, done = run()
    assert done.returncode == 0, done.stderr
    assert raw(folder).read_text() == "7\n"
    record = json.loads(raw(folder, "json").read_text())
    assert record["environment"] == "bare"
    assert record["parameters"] == {"number": 7}
    assert record["commands"][0]["argv"] == ["/bin/echo", "7"]
    assert record["commands"][0]["exit"] == 0
    assert record["log"]["bytes"] == 2
    assert record["observed"]["inside"]["cpus"] >= 1
    assert set(record["observed"]["host"]) == {"static", "before", "after", "during"}
    assert not (folder / "results/failed").exists()
    assert list((folder / "results/tmp").rglob("*.log")) == []
    assert journal.read_entries() == []
    assert list((tmp_path / "home").glob("systems/*")) == []


FAILURES = {
    "a bad exit code": (
        {"run": shell("echo 7; exit 5")},
        "its run step ended with exit code 5",
        "7\n",
    ),
    "a refused log": (
        {"run": shell("echo broken")},
        "its parser refuses the log: its program is broken",
        "broken\n",
    ),
    "too much time": (
        {"run": shell("echo 7; sleep 60", 0.3)},
        "its run step was ended: no end after 0.3 s",
        "7\n",
    ),
    "a failed preparation": (
        {"prepare": shell("echo no; exit 1")},
        "its prepare step ended with exit code 1",
        "no\n",
    ),
    "a program that is not there": (
        {"run": [{"argv": ["/no/such"], "timeout": 5}]},
        "exit code 127",
        "No such file",
    ),
}


@pytest.mark.parametrize("name", list(FAILURES))
def test_a_cell_that_fails_leaves_nothing_that_looks_complete(run, name):
    changes, reason, printed = FAILURES[name]
    folder, done = run(**changes)
    assert done.returncode == 1
    assert "cell failed: bare · noop · repetition 1: " in done.stderr
    assert reason in done.stderr
    assert "log:   results/failed/bare/noop/1.log" in done.stderr
    assert "snakemake --cores 1 results/raw/bare/noop/1.log" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "results/raw").exists()
    assert printed in (folder / "results/failed/bare/noop/1.log").read_text()
    assert reason in json.loads((folder / "results/failed/bare/noop/1.json").read_text())["error"]
    assert journal.read_entries() == []


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["cell", "moon", "noop", "1"], "there is no environment 'moon'; there are bare"),
        (["cell", "bare", "moon", "1"], "there is no workload 'moon'; there are noop"),
        (["cell", "bare", "noop", "9"], "there is no repetition 9 of bare · noop: 2 are planned"),
        (["cell", "bare", "noop", "-1"], "cell ENVIRONMENT WORKLOAD REPETITION"),
        (["cell", "bare", "noop"], "cell ENVIRONMENT WORKLOAD REPETITION"),
        (["cell", "../../etc", "noop", "1"], "there is no environment"),
    ],
)
def test_a_cell_that_is_not_planned_is_refused(project, words, part):
    folder = project()
    projects.plan(folder)
    done = projects.run(folder, "strata", *words)
    assert done.returncode == 1
    assert part in done.stderr
    assert not (folder / "results/raw").exists()


def start(folder, *words, **more):
    return subprocess.Popen(
        projects.command("strata", *words),
        cwd=folder,
        env={**projects.environment(), **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(condition, seconds=15):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, None])
def test_a_cell_that_a_signal_or_the_end_of_its_run_ends_leaves_no_process(project, owner, number):
    folder = project(workloads={"noop": workload_with(run=shell("echo $$ >pid; sleep 60"))})
    projects.plan(folder)
    measuring = start(folder, "cell", "bare", "noop", "1", STRATA_OWNER=projects.owner(owner))
    wait_until(lambda: begun(folder))
    if number is None:
        owner.kill()
        owner.wait()
    else:
        measuring.send_signal(number)
    _, errors = measuring.communicate(timeout=20)
    assert measuring.returncode == 1
    assert f"was ended by {number.name if number else 'the end of its run'}" in errors
    assert process.read_start_time(int((folder / "pid").read_text())) is None
    assert not (folder / "results/raw").exists()
    assert journal.read_entries() == []


def test_two_cells_at_once_never_overlap(project):
    folder = project(
        workloads={"noop": workload_with(run=shell("date +%s%N; sleep 0.4; date +%s%N"))}
    )
    projects.plan(folder)
    both = [start(folder, "cell", "bare", "noop", repetition) for repetition in "12"]
    errors = [measuring.communicate(timeout=60)[1] for measuring in both]
    assert [measuring.returncode for measuring in both] == [0, 0], errors
    assert any("another measurement is under way on this machine" in text for text in errors)
    assert any(f"process {one.pid} in " in text for one in both for text in errors)
    spans = sorted(
        [int(line) for line in raw(folder, repetition=r).read_text().split()] for r in (1, 2)
    )
    assert spans[0][1] <= spans[1][0]


def begun(folder):
    """Whether a workload that writes down its process's id has begun."""
    path = folder / "pid"
    return path.exists() and path.read_text().strip()


@pytest.fixture
def owner():
    """A process that stands for a run."""
    with subprocess.Popen(["sleep", "300"]) as running:
        yield running
        running.kill()


def test_a_cell_that_waits_ends_with_its_run_and_never_measures(project, owner):
    folder = project()
    projects.plan(folder)
    named = projects.owner(owner)
    with locks.hold_machine_lock():
        waiting = start(folder, "cell", "bare", "noop", "1", STRATA_OWNER=named)
        assert f"process {os.getpid()} in " in waiting.stderr.readline()
        owner.kill()
        owner.wait()
        _, errors = waiting.communicate(timeout=20)
    assert waiting.returncode == 1
    assert "was ended by the end of its run before it began" in errors
    late = projects.run(folder, "strata", "cell", "bare", "noop", "1", STRATA_OWNER=named)
    assert late.returncode == 1
    assert (
        f"the run that this belongs to (STRATA_OWNER: process {owner.pid}) has ended" in late.stderr
    )
    assert not (folder / "results/raw").exists()
    assert journal.read_entries() == []


# Processes that hear no signal, write their ids, and wait: the program itself, one in a session of
# its own, and one whose parent closed its files.
PROGRAM = (
    "trap '' TERM HUP PIPE; echo $$ >>pids; setsid sleep 60 & echo $! >>pids; "
    f"{sys.executable} -c 'import subprocess; "
    'child = subprocess.Popen(["sleep", "60"]); open("pids", "a").write(f"{child.pid}\\n"); '
    'open("begun", "w").close(); child.wait()\'; sleep 60'
)


def killed(folder):
    """Kill a cell while it measures; its programs' ids, and that of the system that it left up."""
    for name in ("begun", "pids"):
        (folder / name).unlink(missing_ok=True)
    measuring = start(folder, "cell", "bare", "noop", "1")
    wait_until((folder / "begun").exists)
    measuring.kill()
    measuring.wait()
    return map(int, (folder / "pids").read_text().split()), journal.read_entries()[-1]["id"]


def test_what_a_killed_cell_left_is_removed_by_the_next_at_the_end_of_its_run_or_by_clean(project):
    script = f"echo 7; test -e fast && exit; {PROGRAM}"
    folder = project(workloads={"noop": workload_with(run=shell(script))})
    projects.plan(folder)
    programs, _ = killed(folder)
    lifecycle.clean_up_after_run(process.identify_process(os.getpid()))
    assert journal.read_entries() == []
    assert not any(map(process.read_start_time, programs))
    programs, left = killed(folder)
    done = projects.run(folder, "strata", "clean")
    assert done.returncode == 0, done.stderr
    assert left in done.stdout
    assert not any(map(process.read_start_time, programs))
    programs, left = killed(folder)
    assert not (folder / "results/raw").exists()
    (folder / "fast").touch()
    done = projects.run(folder, "strata", "cell", "bare", "noop", "1")
    assert done.returncode == 0, done.stderr
    assert json.loads(raw(folder, "json").read_text())["system"]["id"] != left
    assert not journal.read_entries()
    assert not any(map(process.read_start_time, programs))


def test_a_folder_is_not_cleaned_under_a_run_that_has_no_system_up(project):
    folder = project()
    lock = folder / paths.RUN_LOCK
    lock.parent.mkdir(parents=True)
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = projects.run(folder, "strata", "clean")
        assert done.returncode == 1
        assert "in this folder" in done.stderr
        assert lock.exists()
        held = os.stat(lock).st_ino
    (lock.parent / "archive").mkdir()
    (lock.parent / "archive/file").touch()
    done = projects.run(folder, "strata", "clean")
    assert done.returncode == 0, done.stderr
    assert "removed folder results/tmp/archive" in done.stdout
    # A run that opened the file meanwhile has the same lock as the next.
    assert os.listdir(lock.parent) == ["run.lock"]
    assert os.stat(lock).st_ino == held


def test_no_run_begins_while_its_folder_is_cleaned(project, monkeypatch):
    monkeypatch.chdir(project())
    seen = []

    def try_lock(*_):
        with locks.hold_lock(paths.RUN_LOCK, wait=False) as free:
            seen.append(free)
        return []

    for place, name in (
        (lifecycle, "take_down_systems"),
        (lifecycle, "remove_marked_leftovers"),
        (build, "prune_images"),
    ):
        monkeypatch.setattr(place, name, try_lock)
    assert lifecycle.clean_machine() == []
    assert seen == [False, False, False]


def test_a_cell_starts_without_modules_that_only_plan_and_image_need():
    code = "import sys; from strata.measure import block; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    loaded = set(subprocess.check_output(command, cwd=projects.ROOT, text=True).split())
    assert "strata.measure.block" in loaded
    assert not loaded & {"yaml", "jsonschema", "ctypes", "typing"}
    assert not loaded & {f"strata.experiment.{name}" for name in ("workload", "config")}
    assert "strata.image.build" not in loaded


def test_modules_that_a_cell_imports_need_the_standard_library_alone():
    modules = []
    for package in ("host", "vm", "environments", "client", "testbed", "measure"):
        names = sorted(path.stem for path in (projects.ROOT / "strata" / package).glob("*.py"))
        assert names
        modules += [f"strata.{package}.{name}" for name in names]
    command = [sys.executable, "-S", "-c", "; ".join(f"import {name}" for name in modules)]
    subprocess.run(command, cwd=projects.ROOT, check=True)

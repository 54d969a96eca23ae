"""Programs and parsers without an end: cells on the bare host, ended by a limit that they name."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import projects
import pytest

# A program, and whether its cell is good: a process that prints on behind the command is ended.
PROGRAMS = {
    "to stdout": ("yes 7", False),
    "to stderr": ("yes 7 >&2", False),
    "zeros": ("cat /dev/zero", False),
    "one line": ("tr '\\0' a </dev/zero", False),
    "slow at its end": ("trap '' TERM PIPE; while :; do yes 7 | head -c 99999; done", False),
    "from a child": ("echo 7; yes 7 & sleep 60", False),
    "from a child left behind": ("echo 7; yes 7 &", True),
    "from a daemon": ("echo 7; setsid yes 7 >&1 &", True),
}
LAPS = {"about": "Laps", "schema": {"type": "integer", "minimum": 1, "maximum": 9}, "value": 2}
FORK = "    import os, time\n    child = os.fork()\n"
ENDLESS = "    while True:\n        "
HIDES = "try:\n            lines += lines\n        except BaseException:\n            pass\n"
LATE = "was ended: it came to no end within 1 s"
# The body of a parser, and the message on it.
PARSERS = {
    "computes": (f"{ENDLESS}pass\n", LATE),
    "sleeps": ("    import time\n    time.sleep(99)\n", LATE),
    "hides": (f"{ENDLESS}{HIDES}", LATE),
    "allocates": (f"{ENDLESS}lines += lines\n", "was ended: it needs more than 256 MiB of memory"),
    "prints": (f"{ENDLESS}print(lines)\n", "was ended: it printed more than 1 MiB"),
    "exits": ("    raise SystemExit(0)\n", "failed: SystemExit: 0"),
    "complains": ("    raise OSError('x' * 10**7)\n", "failed: OSError: xxx"),
    "vanishes": ("    import os\n    os._exit(0)\n", "ended with status 0"),
    "is killed": ("    import os\n    os.kill(os.getpid(), 9)\n", "ended by signal 9"),
    "waits for a child": (f"{FORK}    os.wait() if child else time.sleep(99)\n", LATE),
    "kills its group": ("    import os\n    os.killpg(0, 9)\n", "ended by signal 9"),
    "closes all": ("    import os\n    os.closerange(0, 99)\n", "nor close descriptors"),
}


def project(tmp_path, load, parser=""):
    """A project whose limits are low."""
    folder = projects.make(
        tmp_path / "project", projects.on_host(repetitions=1), {"noop": load}, copy=True
    )
    limits = folder / "strata/util/bounded.py"
    text = limits.read_text()
    for name, usual, low in (("SECONDS", "60", "1"), ("MEMORY", "2 << 30", "1 << 28")):
        assert f"\n{name} = {usual}\n" in text
        text = text.replace(f"\n{name} = {usual}\n", f"\n{name} = {low}\n")
    limits.write_text(text)
    if parser:
        write(folder, parser)
    return folder


def write(folder, parser):
    (folder / "workloads/noop/parse.py").write_text(f"def parse(lines, parameters):\n{parser}")


def run(folder, *words):
    return projects.run(folder, *words, PYTHONPATH=str(folder), timeout=60)


def left_of(folder):
    """The processes that are at work in a project."""
    processes = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if link.readlink() == folder:
                processes.append(link)
    return processes


def assert_failed(folder, done, *messages):
    """A cell failed with these messages, and leaves nothing that looks complete."""
    assert done.returncode == 1, done.stdout[-999:]
    error = json.loads((folder / "results/failed/bare/noop/1.json").read_text())["error"]
    for message in messages:
        assert message in error
        assert message in done.stderr
    assert not (folder / "results/raw").exists()


# Some of each kind; the long tests try all.
QUICK = {
    ("to stdout", False),
    ("one line", False),
    ("from a daemon", False),
    ("to stderr", True),
    "computes",
    "prints",
}


def rows(*all_rows):
    parameters = []
    for row in all_rows:
        quick = row in QUICK or row[0] in QUICK
        parameters.append(pytest.param(*row, marks=[] if quick else pytest.mark.long))
    return parameters


@pytest.mark.parametrize(
    ("name", "laps"), rows(*((name, laps) for name in PROGRAMS for laps in (False, True)))
)
def test_what_programs_print_is_bounded(tmp_path, name, laps):
    script, good = PROGRAMS[name]
    argv = ["/bin/sh", "-c", script]
    load = {**projects.NOOP, "log_limit": "3MiB", "run": [{"argv": argv, "timeout": 40}]}
    if laps:
        load |= {"laps": "laps", "parameters": {**load["parameters"], "laps": LAPS}}
    folder = project(tmp_path, load)
    begun = time.monotonic()
    projects.plan(folder)
    done = run(folder, "strata", "cell", "bare", "noop", "1")
    assert time.monotonic() - begun < 30
    kept = [path.stat().st_size for path in folder.glob("results/**/*") if path.is_file()]
    assert max(kept) < 3.1 * 2**20
    projects.until(lambda: not left_of(folder))
    if good:
        # A process that prints on from lap to lap may fill the log.
        assert done.returncode == 0 or laps, done.stderr
    else:
        limit = "printed more than the log may hold, 3MiB"
        assert_failed(folder, done, limit, script[:9], "workloads/noop/workload.yaml")


@pytest.mark.parametrize("name", rows(*((name,) for name in PARSERS)))
def test_a_parser_is_bounded_in_cells_and_tables(tmp_path, name):
    parser, message = PARSERS[name]
    folder = project(tmp_path, projects.NOOP)
    projects.plan(folder)
    good = run(folder, "strata", "cell", "bare", "noop", "1")
    assert good.returncode == 0, good.stderr
    write(folder, parser)
    done = run(folder, "strata", "tidy")
    assert done.returncode == 1
    assert "results/raw/bare/noop/1.log: workloads/noop/parse.py " in done.stderr
    assert message in done.stderr
    assert len(done.stderr) < 9999
    (folder / "results/raw").rename(folder / "results/old")
    assert_failed(folder, run(folder, "strata", "cell", "bare", "noop", "1"), message)


@pytest.mark.parametrize("child", ["time.sleep(99)", "pass"])
def test_a_process_that_a_parser_leaves_holds_nothing_and_is_ended(tmp_path, child):
    folder = project(tmp_path, projects.NOOP)
    projects.plan(folder)
    parser = (folder / "workloads/noop/parse.py").read_text()
    forks = f"import os, time\nif not os.fork():\n    {child}\n"
    (folder / "workloads/noop/parse.py").write_text(parser + forks)
    done = run(folder, "strata", "cell", "bare", "noop", "1")
    assert done.returncode == 0, done.stderr
    assert projects.good(folder, "strata", "tidy")
    assert len(projects.table(folder / "results/tidy/noop.csv")) == 1
    projects.until(lambda: not left_of(folder))


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_parser_ends_where_the_process_that_waits_for_it_was_stopped_or_killed(tmp_path, number):
    folder = project(tmp_path, projects.NOOP)
    projects.plan(folder)
    good = run(folder, "strata", "cell", "bare", "noop", "1")
    assert good.returncode == 0, good.stderr
    write(folder, f"    open('{folder}/begun', 'w').close()\n{ENDLESS}pass\n")
    command = [sys.executable, "-m", "strata", "tidy"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as waits:
        projects.until((folder / "begun").exists)
        waits.send_signal(number)
        projects.until(lambda: len(left_of(folder)) <= (number == signal.SIGSTOP))
        waits.send_signal(signal.SIGCONT)
        _, message = waits.communicate(timeout=20)
    if number == signal.SIGSTOP:
        assert "parse.py was ended: it came to no end within 1 s" in message
        assert waits.returncode == 1


def test_a_parser_that_does_not_load_is_bounded(tmp_path):
    folder = project(tmp_path, projects.NOOP)
    (folder / "workloads/noop/parse.py").write_text("while True: pass\n")
    done = run(folder, "strata", "check")
    assert done.returncode == 1
    assert "workloads/noop/parse.py was ended: it came to no end within 1 s" in done.stderr

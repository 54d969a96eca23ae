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

# One program, and whether the cell is good: what prints on behind its command is cut off with it.
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
PARSERS = {
    "computes": (f"{ENDLESS}pass\n", "parse.py was ended: it came to no end within 1 s"),
    "sleeps": (
        "    import time\n    time.sleep(99)\n",
        "parse.py was ended: it came to no end within 1 s",
    ),
    "hides": (
        f"{ENDLESS}try:\n            lines += lines\n        except BaseException:\n            pass\n",
        "1 s",
    ),
    "allocates": (
        f"{ENDLESS}lines += lines\n",
        "parse.py was ended: it needs more than 256 MiB of memory",
    ),
    "prints": (f"{ENDLESS}print(lines)\n", "parse.py was ended: it printed more than 1 MiB"),
    "exits": ("    raise SystemExit(0)\n", "parse.py failed: SystemExit: 0"),
    "complains": ("    raise OSError('x' * 10**7)\n", "parse.py failed: OSError: xxx"),
    "vanishes": ("    import os\n    os._exit(0)\n", "parse.py ended with status 0"),
    "is killed": ("    import os\n    os.kill(os.getpid(), 9)\n", "parse.py ended by signal 9"),
    "waits for a child": (
        f"{FORK}    time.sleep(99) if not child else os.wait()\n",
        "parse.py was ended: it came to no end within 1 s",
    ),
    "kills its group": ("    import os\n    os.killpg(0, 9)\n", "parse.py ended by signal 9"),
    "writes to 3": ("    import os\n    os.write(3, b'7\\n')\n", "it wrote to descriptor 3"),
    "writes half a line to 3": ("    import os\n    os.write(3, b'{')\n", "to descriptor 3"),
    "writes to 4": (f"{ENDLESS}__import__('os').write(4, b'7')\n", "no end within 1 s"),
    "closes 3": ("    import os\n    os.close(3)\n", "nor close descriptors that it did not open"),
    "closes all": ("    import os\n    os.closerange(0, 99)\n", "nor close descriptors"),
}


def project(tmp_path, load, parser=""):
    """A project whose limits are low."""
    folder = projects.make(
        tmp_path / "project", projects.on_host(repetitions=1), {"noop": load}, copy=True
    )
    limits = folder / "strata/util/bounded.py"
    limits.write_text(limits.read_text().replace("= 60, 2 << 30,", "= 1, 1 << 28,"))
    if parser:
        write(folder, parser)
    return folder


def write(folder, parser):
    (folder / "workloads/noop/parse.py").write_text(f"def parse(lines, parameters):\n{parser}")


def run(folder, *words):
    return projects.run(folder, *words, PYTHONPATH=str(folder), timeout=60)


def left_of(folder):
    """The processes that are at work in a project."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            found += [place] if place.readlink() == folder else []
    return found


def failed(folder, done, *says):
    """A cell failed, says why, leaves nothing that looks complete, and the machine is free."""
    assert done.returncode == 1, done.stdout[-999:]
    error = json.loads((folder / "results/failed/bare/noop/1.json").read_text())["error"]
    for words in says:
        assert words in error
        assert words in done.stderr
    assert not (folder / "results/raw").exists()


# One of each kind, and the others in the long tests.
QUICK = {
    ("to stdout", False),
    ("one line", False),
    ("from a daemon", False),
    ("to stderr", True),
    "computes",
    "prints",
}


def rows(*of):
    return [
        pytest.param(*each, marks=[pytest.mark.long] * (each not in QUICK and each[0] not in QUICK))
        for each in of
    ]


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
        # What prints on from lap to lap may fill the log.
        assert done.returncode == 0 or laps, done.stderr
    else:
        failed(
            folder,
            done,
            "printed more than the log may hold, 3MiB",
            script[:9],
            "workloads/noop/workload.yaml",
        )


@pytest.mark.parametrize("name", rows(*((name,) for name in PARSERS)))
def test_a_parser_is_bounded_in_cells_and_tables(tmp_path, name):
    parser, says = PARSERS[name]
    folder = project(tmp_path, projects.NOOP)
    projects.plan(folder)
    good = run(folder, "strata", "cell", "bare", "noop", "1")
    assert good.returncode == 0, good.stderr
    write(folder, parser)
    done = run(folder, "strata", "tidy")
    assert done.returncode == 1
    assert "results/raw/bare/noop/1.log: workloads/noop/parse.py " in done.stderr
    assert says in done.stderr
    assert len(done.stderr) < 9999
    (folder / "results/raw").rename(folder / "results/old")
    failed(folder, run(folder, "strata", "cell", "bare", "noop", "1"), says)


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

"""Commands run within their limits, and nothing of them is left when they end."""

import os
import signal
import subprocess
import sys
import time

import projects
import pytest

from strata.util import process, signals, timeouts
from strata.util.errors import MachineError, UserError


class Output:
    """A function that appends bytes to a file."""

    def __init__(self, path):
        self.path = path
        path.touch()

    def __call__(self, printed):
        with self.path.open("ab") as file:
            file.write(printed)

    def text(self):
        return self.path.read_text()


@pytest.fixture
def outputs(tmp_path):
    return [Output(tmp_path / f"out{number}") for number in range(3)]


def shells(*scripts):
    return [["sh", "-c", script] for script in scripts]


def test_both_streams_go_to_the_output_and_the_exit_code_is_returned(outputs):
    ((code, seconds),) = process.run_commands_concurrently(
        shells("echo out; echo err >&2; exit 3"), outputs[:1], 10
    )
    assert code == 3
    assert 0 < seconds < 10
    assert outputs[0].text() == "out\nerr\n"


def test_commands_run_at_the_same_time_with_an_output_each(outputs):
    # Each waits for the output of the next: one after the other they would wait for ever.
    script = "echo here {0}; until [ -s {1} ]; do sleep 0.01; done; exit 0"
    paths = [output.path for output in outputs]
    scripts = [script.format(number, paths[(number + 1) % 3]) for number in range(3)]
    results = process.run_commands_concurrently(shells(*scripts), outputs, 20)
    assert [code for code, _ in results] == [0, 0, 0]
    assert [output.text() for output in outputs] == ["here 0\n", "here 1\n", "here 2\n"]


def test_a_command_that_fails_ends_the_others_with_their_children(outputs):
    begun = time.monotonic()
    scripts = shells("sleep 300 & echo $!; wait", "sleep 0.3; exit 7", ":")
    results = process.run_commands_concurrently(scripts, outputs, 60)
    assert [code for code, _ in results] == [None, 7, 0]
    assert time.monotonic() - begun < 10
    assert process.wait_for_process(int(outputs[0].text()), 5)


def test_the_time_limit_ends_commands_that_still_run(outputs, monkeypatch):
    monkeypatch.setattr(process.end_processes, "__kwdefaults__", {"patience": 0.3})
    stubborn = "trap '' TERM; echo $$; while :; do sleep 0.1; done"
    begun = time.monotonic()
    scripts = shells(":", stubborn, "sleep 300 & echo $!; sleep 300")
    results = process.run_commands_concurrently(scripts, outputs, 0.3)
    assert [code for code, _ in results] == [0, None, None]
    assert time.monotonic() - begun < 5
    for output in outputs[1:]:
        assert process.wait_for_process(int(output.text()), 5)


def test_the_end_of_a_needed_process_ends_the_commands(outputs):
    needed = subprocess.Popen(["sleep", "0.3"])
    begun = time.monotonic()
    (first, _), (second, _) = process.run_commands_concurrently(
        shells("exit 0", "sleep 300"), outputs[:2], 60, [needed.pid]
    )
    assert (first, second) == (0, None)
    assert time.monotonic() - begun < 30
    gone = needed.pid
    needed.wait()
    assert process.run_commands_concurrently(shells("echo never"), outputs[2:], 60, [gone]) == [
        (None, 0.0)
    ]
    assert outputs[2].text() == ""


def test_a_process_is_identified_by_more_than_its_id():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = process.identify_process(child.pid)
    assert process.is_alive(identity)
    assert not process.is_alive({**identity, "start": "1"})
    child.communicate(b"\n")
    assert not process.is_alive(identity)
    assert not process.is_alive(None)


# Shell scripts, the time limit in seconds, and the message where they run.
FAILURES = [
    (
        "echo no such luck >&2; exit 1",
        60,
        "`sh -c echo no such luck >&2; exit 1` failed: no such luck",
    ),
    ("printf %09999d | tr 0 a >&2; exit 1", 60, r"failed: a{4000}$"),
    ("sleep 5", 0.2, "did not end within"),
    ("exec >&- 2>&-; sleep 5", 0.2, "did not end within"),
    ("yes", 60, "printed more than 64 MiB"),
    ("yes >&2", 60, "printed more than 64 MiB"),
    ("cat /dev/zero", 60, "printed more than 64 MiB"),
]


@pytest.mark.parametrize(("script", "limit", "message"), FAILURES)
def test_a_command_that_fails_or_exceeds_a_limit_is_reported(script, limit, message):
    with pytest.raises(UserError, match=message):
        process.capture_output(["sh", "-c", script], timeout=limit)


def test_output_is_text_with_uniform_line_ends():
    with pytest.raises(MachineError, match="is not installed"):
        process.capture_output(["no-such-program"])
    script = "printf 'a\\r\\nb\\377'; printf c >&2; exit 3"
    done = process.capture_output(["sh", "-c", script], check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("a\nb\ufffd", "c", 3)


@pytest.fixture
def handled_signals():
    """Handle signals as a cell does."""
    before = {number: signal.getsignal(number) for number in signals.ENDING}
    signals.raise_on_signals()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


# Declares the starting state, and has a child send the signal, which then prints what it ignores.
IGNORING = """
import os, sys
from strata.host import starting_state
from strata.util import process, signals
signals.raise_on_signals()
starting_state.apply_declared_state(os.sched_getaffinity(0))
child = f"kill -{sys.argv[1]} {os.getpid()}; sleep 0.2; grep SigIgn /proc/self/status"
print(process.capture_output(["sh", "-c", child]).stdout)
"""


@pytest.mark.parametrize("number", signals.ENDING)
def test_a_signal_that_the_caller_ignores_ends_nothing_and_children_do_not_ignore_it(number):
    caller = f'trap "" {number.name[3:]}; exec "$@"'
    argv = ["sh", "-c", caller, "sh", sys.executable, "-S", "-c", IGNORING, str(int(number))]
    output = subprocess.check_output(argv, text=True)
    assert int(output.split()[-1], 16) & 1 << number - 1 == 0


def test_a_child_that_starts_while_a_signal_comes_is_ended_too(
    handled_signals, outputs, monkeypatch
):
    class Started(subprocess.Popen):
        def __init__(self, *words, **more):
            super().__init__(*words, **more)
            # The signal comes before the caller knows of the child.
            children.append(self.pid)
            os.kill(os.getpid(), signal.SIGTERM)

    children = []
    monkeypatch.setattr(subprocess, "Popen", Started)
    for start in (
        lambda: process.run_commands_concurrently([["sleep", "4321"]], outputs[:1], 60),
        lambda: process.capture_output(["sleep"]),
    ):
        signals.raise_on_signals()
        with pytest.raises(signals.Interrupted, match="SIGTERM"):
            start()
    assert [process.read_start_time(child) for child in children] == [None, None]


def test_a_process_is_interrupted_when_its_run_ends():
    script = (
        "from strata.util import process, run, signals; "
        "signals.raise_on_signals(); run.watch_for_run_end(); "
    )
    script += "print('up', flush=True); process.capture_output(['sleep', '4321'])"
    owner = subprocess.Popen(["sleep", "60"])
    variables = {**os.environ, "STRATA_OWNER": projects.owner(owner)}
    one = subprocess.Popen(
        [sys.executable, "-S", "-c", script],
        env=variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert one.stdout.readline() == "up\n"
    deadline = time.monotonic() + 20
    # Until it has started its program, a child has the name of its parent.
    search = ["pgrep", "-x", "sleep", "-P", str(one.pid)]
    while not (
        child := subprocess.run(search, capture_output=True, text=True, check=False).stdout.strip()
    ):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    owner.kill()
    owner.wait()
    _, errors = one.communicate(timeout=20)
    assert "Interrupted: the end of its run" in errors
    assert process.read_start_time(int(child)) is None


def test_patience_multiplies_the_limits_of_all_commands(monkeypatch, outputs):
    monkeypatch.delenv(timeouts.VARIABLE, raising=False)
    slow, limit = ["sleep", "0.5"], 0.1
    with pytest.raises(UserError, match=r"`sleep 0\.5` did not end within 0\.1 s"):
        process.capture_output(slow, timeout=limit)
    assert process.run_commands_concurrently([slow], outputs[:1], limit)[0][0] is None
    monkeypatch.setenv(timeouts.VARIABLE, "100")
    assert process.run_commands_concurrently([slow], outputs[:1], limit)[0][0] == 0
    assert process.capture_output(slow, timeout=limit).returncode == 0

import os
import signal
import subprocess
import sys
import time

import projects
import pytest

from strata.util import process, signals, timeouts
from strata.util.errors import MachineError, UserError


def text(output):
    return output.__self__.name.read_text()


@pytest.fixture
def outputs(tmp_path):
    class Output:
        def __init__(self, name):
            self.name = name
            name.touch()

        def take(self, printed):
            with self.name.open("ab") as file:
                file.write(printed)

    return [Output(tmp_path / f"out{number}").take for number in range(3)]


def shells(*scripts):
    return [["sh", "-c", script] for script in scripts]


def test_both_streams_go_to_the_file_and_the_code_comes_back(outputs):
    ((code, seconds),) = process.run_together(
        shells("echo out; echo err >&2; exit 3"), outputs[:1], 10
    )
    assert code == 3
    assert 0 < seconds < 10
    assert text(outputs[0]) == "out\nerr\n"


def test_commands_run_at_the_same_time_and_each_has_its_own_output(outputs):
    # Each waits for the next one's file: one after the other they would wait in vain.
    script = "echo here {0}; until [ -s {1} ]; do sleep 0.01; done; exit 0"
    paths = [output.__self__.name for output in outputs]
    scripts = [script.format(number, paths[(number + 1) % 3]) for number in range(3)]
    found = process.run_together(shells(*scripts), outputs, 20)
    assert [code for code, _ in found] == [0, 0, 0]
    assert [text(output) for output in outputs] == ["here 0\n", "here 1\n", "here 2\n"]


def test_one_bad_end_ends_the_others_with_their_children(outputs):
    begun = time.monotonic()
    found = process.run_together(
        shells("sleep 300 & echo $!; wait", "sleep 0.3; exit 7", ":"), outputs, 60
    )
    assert [code for code, _ in found] == [None, 7, 0]
    assert time.monotonic() - begun < 10
    assert process.wait_for(int(text(outputs[0])), 5)


def test_the_time_limit_ends_those_that_still_run(outputs, monkeypatch):
    monkeypatch.setattr(process.end, "__kwdefaults__", {"patience": 0.3})
    stubborn = "trap '' TERM; echo $$; while :; do sleep 0.1; done"
    begun = time.monotonic()
    found = process.run_together(
        shells(":", stubborn, "sleep 300 & echo $!; sleep 300"), outputs, 0.3
    )
    assert [code for code, _ in found] == [0, None, None]
    assert time.monotonic() - begun < 5
    for output in outputs[1:]:
        assert process.wait_for(int(text(output)), 5)


def test_the_end_of_what_commands_need_ends_them(outputs):
    needed = subprocess.Popen(["sleep", "0.3"])
    begun = time.monotonic()
    (first, _), (second, _) = process.run_together(
        shells("exit 0", "sleep 300"), outputs[:2], 60, [needed.pid]
    )
    assert (first, second) == (0, None)
    assert time.monotonic() - begun < 30
    gone = needed.pid
    needed.wait()
    assert process.run_together(shells("echo never"), outputs[2:], 60, [gone]) == [(None, 0.0)]
    assert text(outputs[2]) == ""


def test_a_process_is_named_by_more_than_its_id():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = process.identity(child.pid)
    assert process.alive(name)
    assert not process.alive({**name, "start": "1"})
    child.communicate(b"\n")
    assert not process.alive(name)
    assert not process.alive(None)


def test_a_failing_command_of_the_machinery_is_told_in_its_own_words():
    with pytest.raises(
        UserError, match="`sh -c echo no such luck >&2; exit 1` failed: no such luck"
    ):
        process.capture(["sh", "-c", "echo no such luck >&2; exit 1"])
    with pytest.raises(UserError, match="is not installed"):
        process.capture(["no-such-program"])
    with pytest.raises(UserError, match="did not end within"):
        process.capture(["sleep", "5"], timeout=0.2)
    with pytest.raises(UserError, match="did not end within"):
        process.capture(["sh", "-c", "exec >&- 2>&-; sleep 5"], timeout=0.2)
    for script in ("yes", "yes >&2", "cat /dev/zero"):
        with pytest.raises(MachineError, match="printed more than 64 MiB"):
            process.capture(["sh", "-c", script])
    with pytest.raises(UserError, match=r"failed: a{4000}$"):
        process.capture(["sh", "-c", "printf %09999d | tr 0 a >&2; exit 1"])
    done = process.capture(
        ["sh", "-c", "printf 'a\\r\\nb\\377'; printf c >&2; exit 3"], check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("a\nb\ufffd", "c", 3)


@pytest.fixture
def heeding():
    """Signals are heard as in a cell."""
    before = {number: signal.getsignal(number) for number in signals.ASKING}
    signals.heed()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", signals.ASKING)
def test_a_signal_that_the_caller_ignored_ends_nothing_and_is_not_ignored_by_children(number):
    script = (
        "import os; from strata.util import process, signals; from strata.host import starting_state; "
        "signals.heed(); starting_state.declare(os.sched_getaffinity(0)); print('up', flush=True); "
        "print(process.capture(['sh', '-c', f'kill -{int(signals.ASKING[INDEX])} {os.getpid()}; sleep 0.2; "
        "grep SigIgn /proc/self/status']).stdout, flush=True)"
    ).replace("INDEX", str(signals.ASKING.index(number)))
    done = subprocess.run(
        ["sh", "-c", f'trap "" {number.name[3:]}; exec "$@"', "sh", sys.executable, "-S", "-c", script],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1], 16) & 1 << number - 1 == 0


def test_a_child_that_starts_while_the_end_is_asked_for_is_ended_too(heeding, outputs, monkeypatch):
    class Started(subprocess.Popen):
        def __init__(self, *words, **more):
            super().__init__(*words, **more)
            # Whoever starts it does not know of it yet.
            children.append(self.pid)
            os.kill(os.getpid(), signal.SIGTERM)

    children = []
    monkeypatch.setattr(subprocess, "Popen", Started)
    for start in (
        lambda: process.run_together([["sleep", "4321"]], outputs[:1], 60),
        lambda: process.capture(["sleep"]),
    ):
        signals.heed()
        with pytest.raises(signals.Interrupted, match="SIGTERM"):
            start()
    assert [process.start_time(child) for child in children] == [None, None]


def test_whoever_brings_something_up_notices_the_end_of_its_run():
    script = "from strata.util import process, run, signals; signals.heed(); run.end_with_it(); "
    script += "print('up', flush=True); process.capture(['sleep', '4321'])"
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
    # Between its beginning and its program a child has the name of its parent.
    look = ["pgrep", "-x", "sleep", "-P", str(one.pid)]
    while not (
        child := subprocess.run(look, capture_output=True, text=True, check=False).stdout.strip()
    ):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    owner.kill()
    owner.wait()
    _, errors = one.communicate(timeout=20)
    assert "Interrupted: the end of its run" in errors
    assert process.start_time(int(child)) is None


def test_one_setting_stretches_the_limits_of_all_commands(monkeypatch, outputs):
    monkeypatch.delenv(timeouts.NAME, raising=False)
    slow, limit = ["sleep", "0.5"], 0.1
    with pytest.raises(UserError, match=r"`sleep 0\.5` did not end within 0\.1 s"):
        process.capture(slow, timeout=limit)
    assert process.run_together([slow], outputs[:1], limit)[0][0] is None
    monkeypatch.setenv(timeouts.NAME, "100")
    assert process.run_together([slow], outputs[:1], limit)[0][0] == 0
    assert process.capture(slow, timeout=limit).returncode == 0

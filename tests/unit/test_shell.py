"""A shell that waits for commands: what they print, how they end, and what is left of them."""

import os
import signal
import threading
import time

import pytest

from strata.measure.shell import Shell
from strata.util import process


@pytest.fixture
def shell():
    found = Shell(["sh"])
    yield found
    found.close()


@pytest.fixture
def printed(shell):
    """Runs a command in the shell: its exit code, and all that was printed by it."""

    def run(*argv, timeout=20):
        found = bytearray()
        code, seconds = shell.run(argv, found.extend, timeout)
        assert seconds > 0
        return code, found

    return run


@pytest.mark.parametrize(
    "text", ["", "a", "a\n", "a\n\n", "\n", "{}", "a\nb", "\n\nf", "x" * 100_000, "é\r\n\tz"]
)
def test_what_is_printed_is_kept_to_the_byte(printed, text):
    assert printed("printf", "%s", text) == (0, text.encode())


def test_one_command_follows_the_other_and_each_has_its_own_exit_code(printed, shell):
    first = shell._process.pid
    assert [printed("sh", "-c", f"echo {number}; exit {number}") for number in (0, 3, 77)] == [
        (number, f"{number}\n".encode()) for number in (0, 3, 77)
    ]
    assert printed("/no/such/program")[0] == 127
    assert printed("sh", "-c", "kill -KILL $$")[0] == 137
    assert printed("sh", "-c", "echo $PPID") == (0, f"{first}\n".encode())


@pytest.mark.parametrize(
    "word", ["two words", "it's", '"', "$HOME", "`id`", "a\nb", "", "*", "\\", "-n", "é", "; exit"]
)
def test_words_arrive_as_they_are(printed, word):
    assert printed("printf", "[%s]", word) == (0, f"[{word}]".encode())


def test_a_command_that_does_not_end_is_ended_and_the_shell_with_it(printed, shell, tmp_path):
    begun = time.monotonic()
    code, text = printed(
        "sh", "-c", f"echo begun; echo $$ >{tmp_path}/id; sleep 60; echo ended", timeout=1
    )
    assert (code, text) == (None, b"begun\n")
    assert time.monotonic() - begun < 30
    assert process.wait_for(int((tmp_path / "id").read_text()), 10)
    assert shell._process.returncode is not None


def test_a_shell_that_is_killed_under_a_command_tells_its_own_end(printed, shell):
    code, text = printed("sh", "-c", f"echo begun; kill -KILL {shell._process.pid}; sleep 1")
    assert (code, text) == (137, b"begun\n")
    assert shell._process.returncode == -9


def test_what_prints_on_behind_a_command_is_not_waited_for(printed):
    code, text = printed("sh", "-c", "(while :; do echo more; done) & echo begun; sleep 0.2")
    assert code == 0
    assert b"begun\n" in text


def test_what_a_command_is_frozen_for_is_none_of_its_time_nor_of_its_limit(printed, shell):
    def freeze(frozen):
        shell.clock.stop() if frozen else shell.clock.go_on()
        os.killpg(shell._process.pid, signal.SIGSTOP if frozen else signal.SIGCONT)

    def go_on_at_times():
        for _ in range(8):
            time.sleep(0.25)
            freeze(False)
            time.sleep(0.05)
            freeze(True)
        freeze(False)

    def run(turns, *argv, timeout):
        freeze(True)
        thread = threading.Thread(target=turns)
        thread.start()
        begun = time.monotonic()
        found = shell.run(argv, len, timeout)
        thread.join()
        return *found, time.monotonic() - begun

    work = "i=0; while [ $i -lt 5 ]; do sleep 0.05; i=$((i+1)); done; exit 3"
    code, seconds, whole = run(go_on_at_times, "sh", "-c", work, timeout=1.5)
    assert code == 3
    assert whole > 1.6 > 1.5 > seconds
    # One that does not end is ended after its own time, and not before.
    code, seconds, whole = run(go_on_at_times, "sleep", "60", timeout=1.5)
    assert code is None
    assert whole > 3
    assert 1.5 <= seconds < 2.5

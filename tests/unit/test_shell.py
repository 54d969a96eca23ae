"""A shell that waits for commands: their output, their end, and the processes that they leave."""

import os
import signal
import threading
import time

import pytest

from strata.measure.shell import Shell
from strata.util import process


@pytest.fixture
def shell():
    waiting = Shell(["sh"])
    yield waiting
    waiting.close()


@pytest.fixture
def run(shell):
    """Runs a command in the shell: its exit code, and its output."""

    def run_command(*argv, timeout=20):
        output = bytearray()
        code, seconds = shell.run(argv, output.extend, timeout)
        assert seconds > 0
        return code, output

    return run_command


@pytest.mark.parametrize(
    "text", ["", "a", "a\n", "a\n\n", "\n", "{}", "a\nb", "\n\nf", "x" * 100_000, "é\r\n\tz"]
)
def test_output_is_kept_to_the_byte(run, text):
    assert run("printf", "%s", text) == (0, text.encode())


def test_one_command_follows_the_other_and_each_has_its_own_exit_code(run):
    code, first = run("sh", "-c", "echo $PPID")
    assert code == 0
    for number in (0, 3, 77):
        assert run("sh", "-c", f"echo {number}; exit {number}") == (number, f"{number}\n".encode())
    assert run("/no/such/program")[0] == 127
    assert run("sh", "-c", "kill -KILL $$")[0] == 137
    assert run("sh", "-c", "echo $PPID") == (0, first)


@pytest.mark.parametrize(
    "word", ["two words", "it's", '"', "$HOME", "`id`", "a\nb", "", "*", "\\", "-n", "é", "; exit"]
)
def test_words_arrive_as_they_are(run, word):
    assert run("printf", "[%s]", word) == (0, f"[{word}]".encode())


def test_a_command_that_does_not_end_is_ended_and_the_shell_with_it(run, tmp_path):
    script = f"echo begun; echo $PPID $$ >{tmp_path}/ids; sleep 60; echo ended"
    begun = time.monotonic()
    assert run("sh", "-c", script, timeout=1) == (None, b"begun\n")
    assert time.monotonic() - begun < 30
    for pid in (tmp_path / "ids").read_text().split():
        assert process.wait_for_process(int(pid), 10)


def test_a_shell_that_is_killed_under_a_command_has_its_own_exit_code(run):
    script = "echo begun; kill -KILL $PPID; sleep 1"
    assert run("sh", "-c", script) == (137, b"begun\n")


def test_a_process_that_prints_on_behind_a_command_is_not_awaited(run):
    code, output = run("sh", "-c", "(while :; do echo more; done) & echo begun; sleep 0.2")
    assert code == 0
    assert b"begun\n" in output


def test_the_time_for_which_a_command_is_frozen_counts_neither_for_it_nor_for_its_limit(shell, run):
    _, output = run("sh", "-c", "echo $PPID")
    group = int(output)

    def freeze():
        shell.clock.stop()
        os.killpg(group, signal.SIGSTOP)

    def thaw():
        shell.clock.resume()
        os.killpg(group, signal.SIGCONT)

    def thaw_at_times():
        for _ in range(8):
            time.sleep(0.25)
            thaw()
            time.sleep(0.05)
            freeze()
        thaw()

    def run_frozen(*argv, timeout):
        freeze()
        thread = threading.Thread(target=thaw_at_times)
        thread.start()
        begun = time.monotonic()
        code, seconds = shell.run(argv, len, timeout)
        thread.join()
        return code, seconds, time.monotonic() - begun

    work = "i=0; while [ $i -lt 5 ]; do sleep 0.05; i=$((i+1)); done; exit 3"
    code, seconds, whole = run_frozen("sh", "-c", work, timeout=1.5)
    assert code == 3
    assert whole > 1.6 > 1.5 > seconds
    # A command without an end is ended after its own time, and not before.
    code, seconds, whole = run_frozen("sleep", "60", timeout=1.5)
    assert code is None
    assert whole > 3
    assert 1.5 <= seconds < 2.5

"""Locks exclude processes of all users, follow no link, and name their holder."""

import glob
import os
import signal
import subprocess
import sys
import threading

import projects
import pytest

from strata.util import locks
from strata.util.errors import UserError

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="acts as another user")
HOLD = "with locks.hold_machine_lock():\n    print('held', flush=True)\n    sys.stdin.readline()\n"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Use a folder for the machine's lock that every user may write to."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and str(folder) != "/":
            folder.chmod(folder.stat().st_mode | 0o055)
    (tmp_path / "lock").mkdir()
    (tmp_path / "lock").chmod(0o1777)
    monkeypatch.setattr(locks, "TEST_FOLDER", str(tmp_path / "lock"))
    return tmp_path


@pytest.fixture
def other(machine):
    """Start a process that holds the machine until it reads a line, as this user or another one."""
    started = []

    def start(user=None):
        # All modules are imported before: that user may not enter this interpreter's folder.
        become = (
            f"os.chdir('/')\nos.umask(0o077)\nos.setuid({os.geteuid() if user is None else user})\n"
        )
        setting = "import os, pwd, sys\nfrom strata.util import locks\n" + become
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        variables = {**os.environ, "STRATA_TEST_LOCK": locks.TEST_FOLDER}
        argv = [sys.executable, "-B", "-S", "-c", setting + HOLD]
        started.append(subprocess.Popen(argv, cwd=projects.ROOT, env=variables, text=True, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_no_link_is_followed_to_a_lock(tmp_path):
    (tmp_path / "one.lock").symlink_to(tmp_path / "victim")
    with (
        pytest.raises(UserError, match=r"one\.lock: the lock cannot be opened"),
        locks.hold_lock(str(tmp_path / "one.lock")),
    ):
        pass
    assert not (tmp_path / "victim").exists()


def test_a_lock_is_held_until_its_end(tmp_path):
    path = str(tmp_path / "new/one.lock")
    with locks.hold_lock(path), locks.hold_lock(path, wait=False) as taken:
        assert not taken
    with locks.hold_lock(path, wait=False) as taken:
        assert taken


@as_root
@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, NOBODY), (NOBODY, 0), (NOBODY, NOBODY)])
def test_two_measurements_never_overlap_and_a_waiting_one_names_the_holder(other, first, second):
    holder = other(first)
    assert holder.stdout.readline() == "held\n"
    waiter = other(second)
    assert waiter.stderr.readline().count(f"(by process {holder.pid}")
    holder.communicate("\n", timeout=20)
    assert waiter.stdout.readline() == "held\n"


def test_the_lock_of_a_killed_holder_is_free(other):
    holder = other()
    assert holder.stdout.readline() == "held\n"
    threading.Timer(0.3, holder.send_signal, [signal.SIGKILL]).start()
    with locks.hold_machine_lock():
        assert holder.wait(10) == -signal.SIGKILL


def test_a_lock_whose_file_is_removed_meanwhile_is_not_held(tmp_path):
    path, held = tmp_path / "one.lock", []

    def wait():
        with locks.hold_lock(str(path)) as taken:
            held.append(taken)

    waiting = threading.Thread(target=wait)
    with locks.hold_lock(str(path)) as first:
        waiting.start()
        projects.until(lambda: open_now(path) == 2)
        path.unlink()
    waiting.join()
    assert (first, held) == (True, [False])


def open_now(path):
    return [os.path.realpath(place) for place in glob.glob("/proc/self/fd/*")].count(str(path))

"""Locks that nobody can turn against their holder: no link is followed, and who may not measure blocks nobody."""

import os
import stat
import subprocess
import sys
import threading

import projects
import pytest

from strata.base import locks
from strata.base.errors import UserError
from strata.system import testbed, turn

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="acts as another user")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine on which nobody measured since its start, in a folder that every user may enter."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and str(folder) != "/":
            folder.chmod(folder.stat().st_mode | 0o055)
    (tmp_path / "run").mkdir(mode=0o755)
    (tmp_path / "lock").mkdir()
    (tmp_path / "lock").chmod(0o1777)
    monkeypatch.setattr(turn, "FOLDER", str(tmp_path / "run/strata"))
    monkeypatch.setattr(turn, "common_path", lambda: str(tmp_path / "lock/users.lock"))
    return tmp_path


def as_nobody(machine, code, wait=True):
    """Run Python as a user without any rights, on the same made-up machine."""
    setting = f"""
import fcntl, grp, os, pwd, shutil, struct, sys
from strata.system import turn
turn.FOLDER = {str(machine / "run/strata")!r}
turn.common_path = lambda: {str(machine / "lock/users.lock")!r}
os.chdir("/")
os.setgroups([])
os.setresgid({NOBODY}, {NOBODY}, {NOBODY})
os.setresuid({NOBODY}, {NOBODY}, {NOBODY})
"""
    # Modules are read before: this user may not enter the folder of every interpreter.
    argv = [sys.executable, "-B", "-S", "-c", setting + code]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    started = subprocess.Popen(argv, cwd=projects.ROOT, text=True, **pipes)
    if not wait:
        return started
    out, errors = started.communicate(timeout=60)
    return subprocess.CompletedProcess(argv, started.returncode, out, errors)


HOLD = "with turn.exclusive():\n    print('held', flush=True)\n    sys.stdin.readline()\n"


@pytest.mark.parametrize("kind", ["link", "dangling link", "second name", "pipe", "folder"])
def test_a_lock_is_a_plain_file_or_none(tmp_path, kind):
    victim, path = tmp_path / "victim", tmp_path / "locks/one.lock"
    path.parent.mkdir()
    if kind != "dangling link":
        victim.write_text("precious")
    {
        "link": lambda: path.symlink_to(victim),
        "dangling link": lambda: path.symlink_to(victim),
        "second name": lambda: path.hardlink_to(victim),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }[kind]()
    with pytest.raises(UserError, match=r"one\.lock is .*remove it"), locks.locked(str(path)):
        pass
    assert victim.exists() == (kind != "dangling link")


def test_a_lock_gives_nobody_else_any_right(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the mask of the whole process was changed"))
    with locks.locked(str(tmp_path / "new/one.lock")):
        assert stat.S_IMODE((tmp_path / "new/one.lock").stat().st_mode) == 0o600
        assert locks.held(str(tmp_path / "new/one.lock"))
    assert not locks.held(str(tmp_path / "new/one.lock"))


@as_root
def test_the_lock_of_somebody_else_is_none_of_ours(tmp_path):
    (tmp_path / "one.lock").touch()
    os.chown(tmp_path / "one.lock", NOBODY, NOBODY)
    with pytest.raises(UserError, match="of user 0"), locks.locked(str(tmp_path / "one.lock")):
        pass


def test_a_lock_that_cannot_be_made_is_told_with_its_place(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with (
        pytest.raises(UserError, match=r"one\.lock: cannot be opened: "),
        locks.locked(str(tmp_path / "file/one.lock")),
    ):
        pass
    monkeypatch.setattr(turn, "common_path", lambda: str(tmp_path / "file/users.lock"))
    monkeypatch.setattr(turn, "FOLDER", str(tmp_path / "nowhere/strata"))
    with pytest.raises(UserError, match="cannot be opened"), testbed.exclusive():
        pass


@as_root
def test_root_makes_the_lock_where_only_root_can_write(machine):
    with testbed.exclusive():
        folder, file = os.stat(turn.FOLDER), os.stat(turn.path())
    assert (folder.st_uid, stat.S_IMODE(folder.st_mode)) == (0, 0o755)
    assert file.st_uid == 0
    assert stat.S_IMODE(file.st_mode) & 0o037 == 0


@as_root
@pytest.mark.parametrize("wrong", ["owner", "rights", "link"])
def test_a_folder_that_others_can_write_is_refused(machine, wrong):
    folder = machine / "run/strata"
    if wrong == "link":
        (machine / "elsewhere").mkdir()
        folder.symlink_to(machine / "elsewhere")
    else:
        folder.mkdir()
        folder.chmod(0o777 if wrong == "rights" else 0o755)
        os.chown(folder, NOBODY if wrong == "owner" else 0, 0)
    with pytest.raises(UserError, match="not a folder that only root can write"), testbed.exclusive():
        pass


@as_root
def test_who_may_not_measure_blocks_nobody(machine):
    with testbed.exclusive():
        pass
    taken = as_nobody(machine, f"fcntl.flock(os.open({turn.path()!r}, os.O_RDONLY), fcntl.LOCK_SH)")
    assert "PermissionError" in taken.stderr
    refused = as_nobody(machine, HOLD)
    assert "this user may not measure on this machine: root, members of the group docker" in refused.stderr


@as_root
def test_whom_root_lets_in_excludes_root_and_is_named(machine, capsys):
    turn.admit(NOBODY)
    turn.admit(12345)
    other = as_nobody(machine, HOLD, wait=False)
    assert other.stdout.readline() == "held\n"
    threading.Timer(0.3, other.communicate, ["\n"]).start()
    with testbed.exclusive():
        assert other.poll() is not None or other.wait(10) == 0
    assert f"(by process {other.pid} of nobody in /); waiting" in capsys.readouterr().err


@as_root
def test_users_without_root_exclude_each_other_and_then_root(machine, capsys):
    first = as_nobody(machine, HOLD, wait=False)
    assert first.stdout.readline() == "held\n"
    second = as_nobody(machine, HOLD, wait=False)
    assert f"(by process {first.pid} of nobody in " in second.stderr.readline()
    first.communicate("\n", timeout=20)
    assert second.stdout.readline() == "held\n"
    threading.Timer(0.3, second.communicate, ["\n"]).start()
    with testbed.exclusive():
        assert second.poll() is not None or second.wait(10) == 0
    assert f"(by process {second.pid} of nobody in /); waiting" in capsys.readouterr().err
    assert "may not measure" in as_nobody(machine, HOLD).stderr

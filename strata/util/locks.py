"""Locks: files whose lock the kernel frees when their holder ends, however it does; and that of the whole machine."""

import contextlib
import fcntl
import os
from collections.abc import Iterator

from strata.util import access, progress
from strata.util.errors import UserError

# A lock needs no right to write; no link is followed, and nothing but the lock is done with what is there.
OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Tests of small cells have a machine's lock of their own, so that they neither wait for measurements nor stop them.
OWN = os.environ.get("STRATA_TEST_LOCK")


def exclusive(wait: bool = True) -> contextlib.AbstractContextManager[bool]:
    """Hold this machine, as :func:`locked`: no measurement of any run, user or checkout overlaps with what happens."""
    folder = OWN or ("/run/lock" if os.path.isdir("/run/lock") else "/tmp")
    waiting = "testbed: another measurement is under way on this machine"
    return locked(os.path.join(folder, "strata.lock"), waiting, wait)


@contextlib.contextmanager
def locked(path: str, waiting: str = "", wait: bool = True) -> Iterator[bool]:
    """Hold the lock of a file, which any user may hold who reaches its folder; gives whether it is held.

    It is not where another process holds it and nobody is to `wait`; `waiting` is said on standard error, with who
    holds it.  Raises UserError where the file can neither be made nor opened.
    """
    taken, descriptor = True, _open(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            taken = wait
            if wait:
                progress.shown(f"{waiting} ({_holder(descriptor)}); waiting")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        # One that was removed since it was opened locks nobody out.
        yield taken and os.fstat(descriptor).st_nlink > 0
    finally:
        os.close(descriptor)


def _open(path: str) -> int:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            descriptor = os.open(path, OPEN | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            # In a folder that everybody may write the kernel refuses to "make" what another user has made.
            return os.open(path, OPEN)
    except OSError as error:
        reason = access.find_reason(error, path)
        raise UserError(f"{path}: the lock cannot be opened: {reason}") from None
    os.fchmod(descriptor, 0o644)
    return descriptor


def _holder(descriptor: int) -> str:
    """Who holds the lock of an open file, as the kernel tells: its process and folder."""
    facts = os.fstat(descriptor)
    name = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}:{facts.st_ino}"
    with open("/proc/locks", encoding="utf-8") as file:
        for words in map(str.split, file):
            # NUMBER: FLOCK ADVISORY WRITE PROCESS DEVICE:INODE …; who waits has an arrow in the second place.
            if words[1] == "FLOCK" and words[5] == name:
                holder = f"by process {words[4]}"
                with contextlib.suppress(OSError):
                    holder += f" in {os.readlink(f'/proc/{words[4]}/cwd')}"
                return holder
    return "by a process that is not seen from here"

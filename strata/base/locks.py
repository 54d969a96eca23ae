"""Locks: files whose lock the kernel frees when their holder ends, however it does."""

import contextlib
import fcntl
import os
import stat
import sys
from collections.abc import Iterator

from strata.base.errors import UserError

# A lock needs no right to write, and no link leads to its file.
OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_plain(path: str, owner: int | None) -> int:
    """Open a lock's file: one of this user (id; None: anybody's), that is no link and has no other name.

    Raises UserError for any other, and OSError where it is not there or may not be read.
    """
    try:
        descriptor = os.open(path, OPEN)
    except OSError as error:
        if os.path.islink(path):
            raise UserError(f"{path} is a link, not the file of a lock: see who made it, and remove it") from None
        raise error
    facts = os.fstat(descriptor)
    if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1 and owner in (None, facts.st_uid):
        return descriptor
    os.close(descriptor)
    raise UserError(
        f"{path} is not the file of a lock (a plain file with one name"
        f"{'' if owner is None else f', of user {owner}'}): see who made it, and remove it"
    )


def make(path: str, mode: int = 0o600) -> int | None:
    """Make a lock's file where there is nothing of that name; its descriptor if it was made now."""
    try:
        return os.open(path, OPEN | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return None


@contextlib.contextmanager
def locked(path: str, waiting: str | None = None, wait: bool = True, shared: bool = False) -> Iterator[bool]:
    """Hold the lock of a file in a folder of this user's; the others, and what it gives, as of :func:`hold`."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        descriptor = make(path)
        if descriptor is None:
            descriptor = open_plain(path, os.geteuid())
    except OSError as error:
        raise UserError(f"{path}: cannot be opened: {error.strerror}") from None
    with hold(descriptor, waiting, wait, shared) as taken:
        yield taken


@contextlib.contextmanager
def hold(descriptor: int, waiting: str | None = None, wait: bool = True, shared: bool = False) -> Iterator[bool]:
    """Hold the lock of an open file, which is closed in the end; gives whether it is held.

    That it is not only where another process holds it and nobody is to `wait`; `waiting` is said
    once on standard error, with who holds it.  It is held alone, or with others that hold it `shared`.
    """
    taken, kind = True, fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            taken = wait
            if wait:
                if waiting:
                    print(f"{waiting} ({words(holder(descriptor))}); waiting", file=sys.stderr, flush=True)
                fcntl.flock(descriptor, kind)
        yield taken
    finally:
        os.close(descriptor)


def held(path: str) -> bool:
    """Whether another process holds the lock of a file."""
    try:
        descriptor = os.open(path, OPEN)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def holder(descriptor: int) -> int | None:
    """The process that holds the lock of an open file, as the kernel tells; None where it tells of none."""
    facts = os.fstat(descriptor)
    name = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}:{facts.st_ino}"
    # The list changes while it is read, and what lies behind a change may be missing.
    for _ in range(5):
        with contextlib.suppress(OSError), open("/proc/locks") as file:
            for line in file:
                # NUMBER: FLOCK ADVISORY WRITE PROCESS DEVICE:INODE …; who waits has an arrow in the second place.
                fields = line.split()
                if len(fields) > 5 and fields[1] == "FLOCK" and fields[5] == name:
                    return int(fields[4])
    return None


def words(process: int | None) -> str:
    """Who a process is: its number, its user, its folder."""
    if process is None:
        return "by a process that is not seen from here"
    import pwd

    try:
        user = os.stat(f"/proc/{process}").st_uid
    except FileNotFoundError:
        return f"by process {process}, which has ended"
    name = str(user)
    with contextlib.suppress(KeyError):
        name = pwd.getpwuid(user).pw_name
    folder = "a folder that this user may not see"
    with contextlib.suppress(OSError):
        folder = os.readlink(f"/proc/{process}/cwd")
    return f"by process {process} of {name} in {folder}"

"""Locks on files, and the machine's lock; the kernel frees a lock when its holder ends."""

import contextlib
import fcntl
import os
from collections.abc import Iterator

from strata.util import access, progress
from strata.util.errors import UserError

# Locking needs no right to write.  The folder may be open to everybody: no link is followed, and no
# device or pipe that somebody put there keeps the call waiting.
OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# How the message ends that another process holds a lock; strata/experiment/measuring.py shows it.
WAITING = "; waiting"
# The folder of the machine's lock for tests of cells that print a number: they neither wait for
# measurements nor keep them waiting.
TEST_FOLDER = os.environ.get("STRATA_TEST_LOCK")


def hold_machine_lock(wait: bool = True) -> contextlib.AbstractContextManager[bool]:
    """Hold the machine's lock during a `with` block, and yield whether the lock is held.

    No measurement of any run, user or checkout on this machine overlaps with a block that holds
    the lock.
    The lock's path must stay, since other checkouts lock the same file (docs/privileges.md).
    wait: whether to wait for the lock; otherwise the block runs even without the lock.
    Raises UserError if the lock's file can neither be created nor opened.
    """
    folder = "/run/lock" if os.path.isdir("/run/lock") else "/tmp"
    if TEST_FOLDER:
        folder = TEST_FOLDER
    waiting_message = "testbed: another measurement is under way on this machine"
    return hold_lock(os.path.join(folder, "strata.lock"), waiting_message, wait)


@contextlib.contextmanager
def hold_lock(path: str, waiting_message: str = "", wait: bool = True) -> Iterator[bool]:
    """Hold an exclusive lock on a file during a `with` block; yield whether the lock is held.

    path: the file, which is created with its folder if it is missing.  Any user who reaches the
    folder can lock the file.
    waiting_message: the message that is printed before the wait for another process; that process
    and its folder are added.
    wait: whether to wait for the lock; otherwise the block runs even without it, and gets False.
    The block also gets False if the file was removed meanwhile: its lock excludes nobody.
    Raises UserError if the file can neither be created nor opened.
    """
    is_held = True
    descriptor = _open_lock_file(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_held = wait
            if wait:
                holder = _describe_lock_holder(descriptor)
                progress.print_message(f"{waiting_message} ({holder}){WAITING}")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        # A file that was removed since it was opened has no name (link) any more.
        yield is_held and os.fstat(descriptor).st_nlink > 0
    finally:
        os.close(descriptor)


def _open_lock_file(path: str) -> int:
    """Open a lock file, which any user may read, and return its descriptor.

    Creates the file and its folder if they are missing.
    Raises UserError if the file can neither be created nor opened.
    """
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            descriptor = os.open(path, OPEN_FLAGS | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            # In a folder that everybody may write to, the kernel refuses O_CREAT for a file that
            # another user made (fs.protected_regular).
            return os.open(path, OPEN_FLAGS)
    except OSError as error:
        reason = access.explain_write_error(error, path)
        raise UserError(f"{path}: the lock cannot be opened: {reason}") from None
    os.fchmod(descriptor, 0o644)
    return descriptor


def _describe_lock_holder(descriptor: int) -> str:
    """Return a phrase that names the process that locks an open file, and its working directory.

    descriptor: the descriptor of the file.
    The phrase is, for example, "by process 1234 in /home/user/strata"; the directory is left out
    if this user may not see it.
    """
    facts = os.fstat(descriptor)
    file_id = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}:{facts.st_ino}"
    with open("/proc/locks", encoding="utf-8") as file:
        for columns in map(str.split, file):
            # NUMBER: FLOCK ADVISORY WRITE PID DEVICE:INODE …; the line of a process that waits for
            # the lock has "->" as its second column, and so is not taken.
            lock_type = columns[1]
            pid = columns[4]
            if lock_type == "FLOCK" and columns[5] == file_id:
                phrase = f"by process {pid}"
                with contextlib.suppress(OSError):
                    phrase += f" in {os.readlink(f'/proc/{pid}/cwd')}"
                return phrase
    return "by a process that this user cannot see"

"""Whose turn it is: one lock for the whole machine, so that no two measurements overlap, whoever makes them.

Who measures may keep others waiting, and nobody else may: the lock's file lies in a folder that only root can write,
and is readable for those who may measure (docs/privileges.md).  As root, run as a program with the id of a user, this
lets that user in.
"""

import contextlib
import os
import stat
import sys
from collections.abc import Iterator

from strata.base import locks, places
from strata.base.errors import UserError
from strata.base.process import as_root, capture, wait_for

# Tests of small cells have a lock of their own, so that they neither wait for measurements nor stop them.
OWN = os.environ.get("STRATA_TEST_LOCK")
FOLDER = OWN or "/run/strata"
OWNER = os.geteuid() if OWN else 0
# Its members are as good as root: they may measure.
GROUP = "docker"
WAITING = "testbed: another measurement is under way on this machine"
# Seconds that a measurement gets which began before there was root's lock.
PATIENCE = 900
ACCESS_LIST = "system.posix_acl_access"


def path() -> str:
    """The file whose lock means: a measurement is under way on this machine."""
    return os.path.join(FOLDER, "testbed.lock")


def common_path() -> str:
    """The same for users without root on a machine where nobody had root since its start."""
    return os.path.join("/run/lock" if os.path.isdir("/run/lock") else "/tmp", "strata-users.lock")


class Taken(UserError):
    """Another measurement is under way, and nobody wanted to wait for its end."""


@contextlib.contextmanager
def exclusive(wait: bool = True) -> Iterator[None]:
    """Hold this machine: no measurement of any run overlaps with what happens inside.

    Raises Taken where another holds it and this is not to `wait`, and UserError where this user may not measure.
    """
    refusal = UserError(
        f"this user may not measure on this machine: root, members of the group {GROUP} and users with sudo may, and "
        "those whom root lets in by `python -m strata admit USER` (docs/privileges.md)"
    )
    rooted = True
    try:
        descriptor = _open_root()
    except FileNotFoundError:
        rooted = _let_in_by_root()
        if rooted:
            _see_out()
        descriptor = _open_root() if rooted else _open_common()
    except PermissionError:
        if not _let_in_by_root():
            raise refusal from None
        descriptor = _open_root()
    with locks.hold(descriptor, WAITING, wait) as taken:
        if not taken:
            raise Taken(WAITING.removeprefix("testbed: "))
        if not rooted and os.path.lexists(path()):
            raise refusal
        yield


def _open_root() -> int:
    _check_folder()
    return locks.open_plain(path(), OWNER)


def _check_folder() -> None:
    facts = os.lstat(FOLDER)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != OWNER or facts.st_mode & 0o022:
        raise UserError(f"{FOLDER} is not a folder that only root can write: see who made it, and remove it")


def _let_in_by_root() -> bool:
    """Make the lock's file and let this user in with the rights of root; whether there are such rights."""
    user = os.geteuid()
    try:
        if user == OWNER:
            admit(0)
        else:
            variables = ["env", f"PYTHONPATH={places.PROJECT}"]
            capture(as_root([*variables, sys.executable, "-S", "-m", "strata.system.turn", str(user)]))
    except (UserError, OSError):
        return False
    return True


def admit(user: int) -> None:
    """As root: see that the lock's file is there, and that the user with this id may take the lock."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(FOLDER)
        os.chmod(FOLDER, 0o755)
    _check_folder()
    descriptor = locks.make(path())
    made = descriptor is not None
    if descriptor is None:
        descriptor = locks.open_plain(path(), OWNER)
    try:
        if made and not OWN:
            _let_in_group(descriptor)
        if user:
            _let_in(descriptor, user)
    finally:
        os.close(descriptor)


def _let_in_group(descriptor: int) -> None:
    import grp

    with contextlib.suppress(KeyError):
        os.fchown(descriptor, OWNER, grp.getgrnam(GROUP).gr_gid)
        os.fchmod(descriptor, 0o640)


def _let_in(descriptor: int, user: int) -> None:
    """Add a user who may read to the file's access list."""
    import struct

    entry, anybody = struct.Struct("<HHI"), 0xFFFFFFFF
    owner, named, group, mask, others = 0x01, 0x02, 0x04, 0x10, 0x20
    known: set[int] = set()
    with contextlib.suppress(OSError):
        entries = entry.iter_unpack(os.getxattr(descriptor, ACCESS_LIST)[4:])
        known = {id for tag, _, id in entries if tag == named}
    group_may = 4 if os.fstat(descriptor).st_gid else 0
    rows = [(owner, 6, anybody), *((named, 4, id) for id in sorted({*known, user}))]
    rows += [(group, group_may, anybody), (mask, 4, anybody), (others, 0, anybody)]
    os.setxattr(descriptor, ACCESS_LIST, struct.pack("<I", 2) + b"".join(entry.pack(*row) for row in rows))


def _open_common() -> int:
    """The file of the lock that users without root share."""
    try:
        descriptor = locks.make(common_path())
        if descriptor is None:
            return locks.open_plain(common_path(), None)
        os.fchmod(descriptor, 0o644)
    except OSError as error:
        raise UserError(f"{common_path()}: cannot be opened: {error.strerror}") from None
    return descriptor


def _see_out() -> None:
    """Let a measurement end that began without root, before there was root's lock; none can begin any more."""
    try:
        descriptor = locks.open_plain(common_path(), None)
    except (OSError, UserError):
        return
    try:
        process = locks.holder(descriptor)
    finally:
        os.close(descriptor)
    if process is not None:
        print(f"{WAITING} ({locks.words(process)}); waiting", file=sys.stderr, flush=True)
        wait_for(process, PATIENCE)


if __name__ == "__main__":
    admit(int(sys.argv[1]))

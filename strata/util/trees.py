"""Remove trees, and nothing that is mounted in one; also a program for root: ``trees.py [--unmount] PATH``.

A walk holds one folder open and reaches all else by its name in that.  Of each thing the kernel says on which mount it
is (``mnt_id`` of an open file), whatever its path, its file system and the letters of its name.
"""

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator

# How often a tree is removed into which somebody still writes.
ATTEMPTS = 10
# A place alone: nothing is opened there, and no link or device is followed.
_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
# Of mount(2) and umount2(2).
_REC, _PRIVATE, _DETACH, _NOFOLLOW = 0x4000, 0x40000, 2, 8


class MountedError(OSError):
    """Something is mounted at a path in a tree, which is therefore not removed."""


def remove(path: str, unmount: bool = False) -> None:
    """Remove a file, a link, or a folder with all in it, if there is one.

    unmount: what is mounted in it is first unmounted, at once, also where somebody uses it.
    Raises MountedError, before anything is removed, where something is mounted in it, and OSError.
    """
    above, name = os.path.split(path.rstrip("/"))
    if name in ("", ".", ".."):
        raise OSError(errno.EINVAL, "is no name of a file in a folder", path)
    try:
        place = os.open(above or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        for here, inner, mounted, _ in _walk(place, name):
            if mounted and not unmount:
                raise MountedError(errno.EBUSY, "is mounted", os.path.join(above, mounted))
            if mounted:
                _unmount(f"/proc/self/fd/{here}/{inner}")
        for attempt in range(ATTEMPTS):
            try:
                return _remove(place, name)
            except OSError as error:
                if error.errno != errno.ENOTEMPTY or attempt == ATTEMPTS - 1:
                    raise
    finally:
        os.close(place)


def _remove(place: int, name: str) -> None:
    for here, inner, mounted, folder in _walk(place, name):
        if mounted:
            raise MountedError(errno.EBUSY, "was mounted meanwhile", mounted)
        with contextlib.suppress(FileNotFoundError):
            # The kernel refuses it where something is mounted on that name.
            (os.rmdir if folder else os.unlink)(inner, dir_fd=here)


def _walk(place: int, name: str) -> Iterator[tuple[int, str, str, bool]]:
    """All in a tree, the deepest first: the folder (open) that holds it, its name there, and whether it is a folder.

    place: the folder (open) that holds the tree.  The third value is the path of a mount point, else empty.  One is not
    entered, and is looked at again once the caller is done with it.
    """
    mount = _mount_of(place)
    # Of each folder on the way here: its name, what is left of the folder that holds it, and which that is.
    way: list[tuple[str, list[str], tuple[int, int]]] = []
    here, left = os.dup(place), [name]
    try:
        while left or way:
            if not left:
                name, left, outer = way.pop()
                # However deep it is, not all are open at once.
                below, here = here, os.open("..", _PLACE, dir_fd=here)
                os.close(below)
                if _identity(here) != outer or _mount_of(here) != mount:
                    raise OSError(errno.ESTALE, "was moved while it was removed", name)
                yield here, name, "", True
                continue
            name = left.pop()
            try:
                found = os.open(name, _PLACE, dir_fd=here)
            except FileNotFoundError:
                continue
            folder = False
            try:
                mounted = _mount_of(found) != mount
                if not mounted and stat.S_ISDIR(os.fstat(found).st_mode):
                    folder, names = True, _names(found)
                    way.append((name, left, _identity(here)))
                    os.dup2(found, here, inheritable=False)
                    left = names
            finally:
                os.close(found)
            if mounted:
                left.append(name)
                yield here, name, "/".join([*(one[0] for one in way), name]), False
            elif not folder:
                yield here, name, "", False
    finally:
        os.close(here)


def _names(place: int) -> list[str]:
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place)
    try:
        return os.listdir(folder)
    finally:
        os.close(folder)


def _identity(place: int) -> tuple[int, int]:
    facts = os.fstat(place)
    return facts.st_dev, facts.st_ino


def _mount_of(place: int) -> bytes:
    with open(f"/proc/self/fdinfo/{place}", "rb") as file:
        return next(line for line in file if line.startswith(b"mnt_id:"))


def _unmount(path: str) -> None:
    """Unmount what is mounted on a path, with all that is mounted in it."""
    import ctypes

    kernel, point = ctypes.CDLL(None, use_errno=True), os.fsencode(path)
    # What was bound with all in it, such as /dev, may share its mounts with the place that it is of: those stay.
    if kernel.mount(None, point, None, _REC | _PRIVATE, None) or kernel.umount2(
        point, _DETACH | _NOFOLLOW
    ):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)


if __name__ == "__main__":
    try:
        remove(sys.argv[-1], "--unmount" in sys.argv[1:-1])
    except OSError as trouble:
        sys.exit(f"{trouble.filename or sys.argv[-1]}: {trouble.strerror}")

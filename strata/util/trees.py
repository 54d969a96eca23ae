"""Remove files and folders without touching file systems that are mounted in them.

This module is also a program, which root runs: ``trees.py [--unmount] PATH``.

A walk holds one folder open and reaches each entry by its name there.  The kernel says on which
mount an entry is (``mnt_id`` in /proc/self/fdinfo), whatever its path, file system or name.
"""

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator

# How often a tree's removal is tried while another process still writes to the tree.
ATTEMPTS = 10
# Open a path only as a reference: no link is followed, and no device is opened.
_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
# Flags of mount(2) and umount2(2).
_REC, _PRIVATE, _DETACH, _NOFOLLOW = 0x4000, 0x40000, 2, 8


class MountedError(OSError):
    """A tree is not removed, since something is mounted at a path in it."""


def remove(path: str, unmount: bool = False) -> None:
    """Remove a file, a link, or a folder with all its content; a missing path is no error.

    unmount: whether file systems mounted in the folder are unmounted first, even while in use.
    Raises MountedError, before anything is removed, where a file system is mounted in the folder
    and `unmount` is false, and OSError where the removal fails.
    """
    above, name = os.path.split(path.rstrip("/"))
    if name in ("", ".", ".."):
        raise OSError(errno.EINVAL, "is no name of a file in a folder", path)
    try:
        place = os.open(above or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        for folder, entry, mount_point, _ in _walk(place, name):
            if mount_point and not unmount:
                raise MountedError(errno.EBUSY, "is mounted", os.path.join(above, mount_point))
            if mount_point:
                _unmount(f"/proc/self/fd/{folder}/{entry}")
        for attempt in range(ATTEMPTS):
            try:
                return _remove(place, name)
            except OSError as error:
                if error.errno != errno.ENOTEMPTY or attempt == ATTEMPTS - 1:
                    raise
    finally:
        os.close(place)


def _remove(place: int, name: str) -> None:
    """Remove a tree that holds no mount point.

    place: descriptor of the folder that holds the tree.  name: the tree's name in that folder.
    Raises MountedError at a mount point, where a part may be removed already.
    """
    for folder, entry, mount_point, is_folder in _walk(place, name):
        if mount_point:
            raise MountedError(errno.EBUSY, "was mounted meanwhile", mount_point)
        # The kernel refuses to remove a name on which something was mounted since.
        remove_entry = os.rmdir if is_folder else os.unlink
        with contextlib.suppress(FileNotFoundError):
            remove_entry(entry, dir_fd=folder)


def _walk(place: int, name: str) -> Iterator[tuple[int, str, str, bool]]:
    """Yield all entries of a tree, the deepest first: the caller may remove each as it is yielded.

    place: descriptor of the folder that holds the tree.  name: the tree's name in that folder.
    Yields the descriptor of the folder that holds the entry, the name of the entry in it, the path
    of the entry where it is a mount point (otherwise ""), and whether it is a folder.  A mount
    point is not entered, and is yielded again as an ordinary entry once it is unmounted.
    Raises OSError where a folder is moved, or mounted on, meanwhile.
    """
    mount = _read_mount_id(place)
    # For each folder between the tree and the present one: its name, the names that are left in the
    # folder that holds it, and the identity of that folder.
    way: list[tuple[str, list[str], tuple[int, int]]] = []
    folder_descriptor, pending = os.dup(place), [name]
    try:
        while pending or way:
            if not pending:
                name, pending, outer = way.pop()
                # Only one folder is open at a time, however deep the tree is.
                below, folder_descriptor = (
                    folder_descriptor,
                    os.open("..", _PLACE, dir_fd=folder_descriptor),
                )
                os.close(below)
                if (
                    _identity(folder_descriptor) != outer
                    or _read_mount_id(folder_descriptor) != mount
                ):
                    raise OSError(errno.ESTALE, "was moved while it was removed", name)
                yield folder_descriptor, name, "", True
                continue
            name = pending.pop()
            try:
                entry = os.open(name, _PLACE, dir_fd=folder_descriptor)
            except FileNotFoundError:
                continue
            is_folder = False
            try:
                is_mount_point = _read_mount_id(entry) != mount
                if not is_mount_point and stat.S_ISDIR(os.fstat(entry).st_mode):
                    is_folder = True
                    names = _names(entry)
                    way.append((name, pending, _identity(folder_descriptor)))
                    os.dup2(entry, folder_descriptor, inheritable=False)
                    pending = names
            finally:
                os.close(entry)
            if is_mount_point:
                pending.append(name)
                path = "/".join([*(outer_name for outer_name, _, _ in way), name])
                yield folder_descriptor, name, path, False
            elif not is_folder:
                yield folder_descriptor, name, "", False
    finally:
        os.close(folder_descriptor)


def _names(place: int) -> list[str]:
    """Return the names in a folder.

    place: descriptor of the folder, opened with :data:`_PLACE`.
    """
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place)
    try:
        return os.listdir(folder)
    finally:
        os.close(folder)


def _identity(place: int) -> tuple[int, int]:
    """Return the device and inode numbers of an open file, which identify the file."""
    facts = os.fstat(place)
    return facts.st_dev, facts.st_ino


def _read_mount_id(descriptor: int) -> int:
    """Return the kernel's ID of the mount that an open file is on.  Callers only compare it."""
    with open(f"/proc/self/fdinfo/{descriptor}", "rb") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(b"mnt_id:"))


def _unmount(path: str) -> None:
    """Unmount what is mounted on a path, with all that is mounted below, even while it is in use.

    Raises OSError where the kernel refuses.
    """
    import ctypes

    kernel, point = ctypes.CDLL(None, use_errno=True), os.fsencode(path)
    # A recursive bind mount, such as that of /dev, may share its mounts with the original, which
    # must keep them: so it is made private first.
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

"""Remove files and folders without touching file systems that are mounted in them.

This module is also a program, which root runs: ``trees.py [--unmount] PATH``.  So it imports
nothing but the standard library.

A walk holds one folder open and reaches each entry by its name there.  The kernel says on which
mount an entry is (``mnt_id`` in /proc/self/fdinfo), whatever its path, file system or name.
"""

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator

# How often a tree's removal is tried while another process still writes to the tree.  Each attempt
# removes more of the tree, and a process that never stops must not keep the removal going for ever.
ATTEMPTS = 10
# Open a path only as a reference: no link is followed, and no device is opened.
_REFERENCE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
# Flags of mount(2): MS_REC and MS_PRIVATE; of umount2(2): MNT_DETACH and UMOUNT_NOFOLLOW.
_RECURSIVE, _PRIVATE = 0x4000, 0x40000
_DETACH, _NO_FOLLOW = 2, 8


class MountedError(OSError):
    """A tree is not removed, since something is mounted at a path in it."""


def remove_tree(path: str, unmount: bool = False) -> None:
    """Remove a file, a link, or a folder with all its content; a missing path is not an error.

    Works with this process's rights; :func:`strata.util.files.remove_tree` also uses root's.
    unmount: whether file systems mounted in the folder are unmounted first, even while in use.
    Raises MountedError, before anything is removed, if a file system is mounted in the folder
    and `unmount` is false.  Raises OSError if the removal fails, or if the path ends with no name
    that can be removed, such as "/" or "..".
    """
    parent_path, name = os.path.split(path.rstrip("/"))
    if name in ("", ".", ".."):
        raise OSError(errno.EINVAL, "is not a name of a file in a folder", path)
    try:
        parent = os.open(parent_path or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        for folder, entry, mount_point, _ in _walk_tree(parent, name):
            if mount_point and not unmount:
                mount_path = os.path.join(parent_path, mount_point)
                raise MountedError(errno.EBUSY, "is mounted", mount_path)
            if mount_point:
                _unmount(f"/proc/self/fd/{folder}/{entry}")
        for attempt in range(ATTEMPTS):
            try:
                _remove_entries(parent, name)
                break
            except OSError as error:
                # Another process has made a file in a folder that was just emptied.
                if error.errno != errno.ENOTEMPTY or attempt == ATTEMPTS - 1:
                    raise
    finally:
        os.close(parent)


def _remove_entries(parent: int, name: str) -> None:
    """Remove a tree that holds no mount point.

    parent: descriptor of the folder that holds the tree.
    name: the tree's name in that folder.
    An entry that another process has removed meanwhile is skipped.
    Raises MountedError at a mount point; a part of the tree may already be removed then.  Raises
    OSError, with ENOTEMPTY, if another process adds an entry meanwhile.
    """
    for folder, entry, mount_point, is_folder in _walk_tree(parent, name):
        if mount_point:
            raise MountedError(errno.EBUSY, "was mounted meanwhile", mount_point)
        # The kernel refuses to remove a name once something is mounted on it.
        remove_entry = os.rmdir if is_folder else os.unlink
        with contextlib.suppress(FileNotFoundError):
            remove_entry(entry, dir_fd=folder)


def _walk_tree(parent: int, name: str) -> Iterator[tuple[int, str, str, bool]]:
    """Yield all entries of a tree, the deepest first; the caller may remove each yielded entry.

    parent: descriptor of the folder that holds the tree.
    name: the tree's name in that folder.
    Yields (descriptor of the folder that holds the entry, the entry's name, the path of a mount
    point or "", whether the entry is a folder).  The descriptor is valid only until the next entry.
    A mount point is not entered.  The caller must unmount it or stop the iteration: the same mount
    point is yielded until it is unmounted, and then once more as an ordinary entry.
    Raises OSError if a folder is moved, or mounted on, meanwhile.
    """
    mount_id = _read_mount_id(parent)
    # For each folder from the root of the tree to the current folder: its name, the names that
    # remain in its parent folder, and the facts that identify its parent folder.
    outer_folders: list[tuple[str, list[str], os.stat_result]] = []
    # The current folder, and the names that remain in it.  Only one folder is open at a time,
    # however deep the tree is.
    folder = os.dup(parent)
    pending = [name]
    try:
        while pending or outer_folders:
            if not pending:
                name, pending, outer_facts = outer_folders.pop()
                inner_folder = folder
                folder = os.open("..", _REFERENCE, dir_fd=inner_folder)
                os.close(inner_folder)
                is_same_folder = os.path.samestat(os.fstat(folder), outer_facts)
                if not is_same_folder or _read_mount_id(folder) != mount_id:
                    raise OSError(errno.ESTALE, "was moved while it was removed", name)
                yield folder, name, "", True
                continue
            name = pending.pop()
            try:
                entry = os.open(name, _REFERENCE, dir_fd=folder)
            except FileNotFoundError:
                continue
            is_folder = False
            try:
                is_mount_point = _read_mount_id(entry) != mount_id
                if not is_mount_point and stat.S_ISDIR(os.fstat(entry).st_mode):
                    is_folder = True
                    # A descriptor that is only a reference cannot be listed itself.
                    names = os.listdir(f"/proc/self/fd/{entry}")
                    outer_folders.append((name, pending, os.fstat(folder)))
                    os.dup2(entry, folder, inheritable=False)
                    pending = names
            finally:
                os.close(entry)
            if is_mount_point:
                pending.append(name)
                outer_names = [outer_name for outer_name, _, _ in outer_folders]
                yield folder, name, "/".join([*outer_names, name]), False
            elif not is_folder:
                yield folder, name, "", False
    finally:
        os.close(folder)


def _read_mount_id(descriptor: int) -> int:
    """Return the kernel's ID of the mount that holds an open file; callers only compare it."""
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as file:
        # Every kernel since 3.15 writes this line.
        _, _, mount_id = file.read().partition("mnt_id:")
    return int(mount_id.split()[0])


def _unmount(path: str) -> None:
    """Unmount the file system at a path, and all file systems mounted in it, even while in use.

    path: the mount point; a symbolic link there is not followed.
    Raises OSError, with the kernel's error number, if the kernel refuses.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    mount_point = os.fsencode(path)
    # A recursive bind mount, such as that of /dev, may share its mounts with the original, which
    # must keep them: so it is made private first.
    failed = libc.mount(None, mount_point, None, _RECURSIVE | _PRIVATE, None)
    if failed or libc.umount2(mount_point, _DETACH | _NO_FOLLOW):
        error_number = ctypes.get_errno()
        raise OSError(error_number, os.strerror(error_number), path)


if __name__ == "__main__":
    try:
        remove_tree(sys.argv[-1], "--unmount" in sys.argv[1:-1])
    except OSError as trouble:
        sys.exit(f"{trouble.filename or sys.argv[-1]}: {trouble.strerror}")

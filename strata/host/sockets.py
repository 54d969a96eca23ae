"""Where the socket of a system's kept connection lies: in a folder that nobody else may enter."""

import contextlib
import os
import stat

from strata.base.errors import UserError

# A socket's path may have 107 characters, and ssh hangs 17 on it while it makes one.
LONGEST = 90


def path(folder: str) -> str:
    """The socket for a system's folder: in it, or where that lies too deep in a folder of its own."""
    near = os.path.join(folder, "ssh")
    return near if len(os.fsencode(near)) <= LONGEST else os.path.join(_apart(folder), "s")


def _apart(folder: str) -> str:
    return os.path.join("/tmp", f"{os.path.basename(folder)}.ssh")


def make(folder: str) -> None:
    """See that the socket has its folder.  Raises UserError where one of that name is somebody else's."""
    if os.path.dirname(path(folder)) == folder:
        return
    with contextlib.suppress(FileExistsError):
        os.mkdir(_apart(folder), 0o700)
    facts = os.lstat(_apart(folder))
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
        raise UserError(f"{_apart(folder)} is not a folder of this user's alone: see who made it, and remove it")


def remove(folder: str) -> None:
    """Remove what :func:`make` made."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        if os.path.dirname(path(folder)) != folder:
            os.rmdir(_apart(folder))

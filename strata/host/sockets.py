"""A system's kept connection by ssh: its settings, and its socket in a folder that nobody else may enter."""

import contextlib
import os
import stat

from strata.base.errors import UserError
from strata.base.patience import stretched

# A socket's path may have 107 characters, and ssh hangs 17 on it while it makes one.
LONGEST = 90
# Seconds: how long a connection may take, how often the other end is asked whether it is there, and how long it may be
# silent before the connection ends by itself.
CONNECT, ASK, SILENT = 10, 10, 60


def settings(folder: str) -> dict[str, str]:
    """The settings of ssh for a system's connection: it asks no question, and is kept for all commands."""
    return {
        "BatchMode": "yes",
        "LogLevel": "ERROR",
        "ConnectTimeout": f"{stretched(CONNECT):g}",
        "ServerAliveInterval": str(ASK),
        "ServerAliveCountMax": f"{stretched(SILENT) / ASK:g}",
        "ControlMaster": "auto",
        "ControlPath": path(folder),
        "ControlPersist": "yes",
    }


def path(folder: str) -> str:
    """The socket for a system's folder: in it, or where that lies too deep in a folder of its own."""
    near = os.path.join(folder, "ssh")
    return near if len(os.fsencode(near)) <= LONGEST else os.path.join("/tmp", f"{os.path.basename(folder)}.ssh", "s")


def make(folder: str) -> None:
    """See that the socket has its folder.  Raises UserError where one of that name is somebody else's."""
    place = os.path.dirname(path(folder))
    if place == folder:
        return
    with contextlib.suppress(FileExistsError):
        os.mkdir(place, 0o700)
    facts = os.lstat(place)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
        raise UserError(f"{place} is not a folder of this user's alone: see who made it, and remove it")


def remove(folder: str) -> None:
    """Remove what :func:`make` made beside a system's folder."""
    place = os.path.dirname(path(folder))
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        if place != folder:
            os.rmdir(place)

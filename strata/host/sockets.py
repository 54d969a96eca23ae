"""A system's kept connection by ssh: its settings, and its socket in the system's folder, where nobody else comes."""

import os

from strata.base.errors import UserError
from strata.base.patience import stretched

# A socket's path may have 107 characters, and ssh hangs 17 on it while it makes one.
LONGEST = 90
# Seconds: how long a connection may take, how often the other end is asked whether it is there, and how long it may be
# silent before the connection ends by itself.
CONNECT, ASK, SILENT = 10, 10, 60


def path(folder: str) -> str:
    """The socket for a system's folder."""
    return os.path.join(folder, "ssh")


def settings(folder: str) -> dict[str, str]:
    """The settings of ssh for a system's connection: it asks no question, and is kept for all commands.

    Raises UserError where the folder lies too deep for a socket.
    """
    if len(os.fsencode(path(folder))) > LONGEST:
        raise UserError(f"{path(folder)} is too long for the socket of ssh: name a shorter folder by STRATA_HOME")
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

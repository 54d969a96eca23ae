"""A system's kept connection by ssh: its settings, and its socket in the system's folder, where nobody else comes."""

import os

from strata.util.timeouts import stretched

# Seconds: how long a connection may take, how often the other end is asked whether it is there, and how long it may be
# silent before the connection ends by itself.
CONNECT, ASK, SILENT = 10, 10, 60


def path(folder: str) -> str:
    """The socket for a system's folder."""
    return os.path.join(folder, "ssh")


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

"""A system's kept ssh connection: its settings, and its socket in the system's own folder."""

import os

from strata.util.timeouts import stretch

# Seconds: the longest time to connect, between two questions whether the other end is there, and
# of silence after which the connection ends by itself.
CONNECT, ASK, SILENT = 10, 10, 60


def socket_path(folder: str) -> str:
    """Return the path of the ssh connection's socket in a system's folder."""
    return os.path.join(folder, "ssh")


def ssh_settings(folder: str) -> dict[str, str]:
    """Return the ssh options of a system's connection: no prompts, one shared connection kept open.

    folder: the system's folder, which holds the connection's socket.
    """
    return {
        "BatchMode": "yes",
        "LogLevel": "ERROR",
        "ConnectTimeout": f"{stretch(CONNECT):g}",
        "ServerAliveInterval": str(ASK),
        "ServerAliveCountMax": f"{stretch(SILENT) / ASK:g}",
        "ControlMaster": "auto",
        "ControlPath": socket_path(folder),
        "ControlPersist": "yes",
    }

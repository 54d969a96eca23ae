"""A system's kept ssh connection: its settings, and its socket in the system's own folder."""

import os

from strata.util.timeouts import scale_timeout

# The most seconds that connecting may take.
CONNECT_SECONDS = 10
# Seconds between two probes of the other end, and of its silence after which the connection ends.
PROBE_SECONDS = 10
SILENCE_SECONDS = 60


def get_socket_path(folder: str) -> str:
    """Return the path of the ssh connection's socket in a system's folder.

    ssh makes the socket, and other ssh commands find the kept connection by it.
    """
    return os.path.join(folder, "ssh")


def build_ssh_settings(folder: str) -> dict[str, str]:
    """Return ssh's options for a system: no prompts, and one connection kept open for all commands.

    Every command to a system needs the same options: another ControlPath means another connection.
    folder: the system's folder, which holds the connection's socket.
    """
    return {
        "BatchMode": "yes",
        "LogLevel": "ERROR",
        "ConnectTimeout": f"{scale_timeout(CONNECT_SECONDS):g}",
        "ServerAliveInterval": str(PROBE_SECONDS),
        "ServerAliveCountMax": f"{scale_timeout(SILENCE_SECONDS) / PROBE_SECONDS:g}",
        "ControlMaster": "auto",
        "ControlPath": get_socket_path(folder),
        "ControlPersist": "yes",
    }

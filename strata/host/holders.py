"""Programs of the bare host, which has no control group: each keeps its system's folder open.

The kernel shows which processes do, so that the programs of a killed cell are found for certain:
neither a name nor a process ID, which another process may have by then, decides.
"""

import contextlib
import os
import signal
import time

from strata.util.errors import UserError
from strata.util.process import send_signal

DESCRIPTOR = 9
# Arguments: the folder, and the command that replaces the shell.
HOLD = f'exec {DESCRIPTOR}<"$1"; shift; exec "$@"'
# Seconds to wait for the end of killed processes.
PATIENCE = 10.0


def build_folder_holding_command(folder: str) -> list[str]:
    """Return the command prefix that runs a command while it keeps a folder open.

    The open folder, at file descriptor :data:`DESCRIPTOR`, marks the processes for
    :func:`kill_folder_holders`.
    """
    return ["sh", "-euc", HOLD, "strata", folder]


def kill_folder_holders(folder: str) -> None:
    """Kill the processes that keep a system's folder open, and the sessions that they lead.

    folder: the folder as given to :func:`build_folder_holding_command`.
    Raises UserError if a process does not end within :data:`PATIENCE`, or belongs to root and
    this user lacks root's rights.
    """
    deadline = time.monotonic() + PATIENCE
    while processes := _find_processes_to_kill(folder):
        if time.monotonic() > deadline:
            pids = ", ".join(map(str, sorted(processes)))
            raise UserError(f"{folder}: its programs (processes {pids}) cannot be ended")
        for process in processes:
            send_signal(process, signal.SIGKILL)
        time.sleep(0.01)


def _find_processes_to_kill(folder: str) -> set[int]:
    """Return the IDs of the processes to kill next, of those that keep a folder open.

    Members of the sessions that they lead are included.  A session leader is returned only when no
    other process is left: members that closed the folder are found only while their leader lives.
    """
    processes = {int(name) for name in os.listdir("/proc") if name.isdecimal()}
    holders = {process for process in processes if _is_holder(process, folder)}
    if not holders:
        return holders
    session_of: dict[int, int] = {}
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            session_of[process] = os.getsid(process)
    leaders = {process for process in holders if session_of.get(process) == process}
    members = {process for process in session_of if session_of[process] in leaders}
    followers = (holders | members) - leaders
    return followers or leaders


def _is_holder(process: int, folder: str) -> bool:
    """Return whether a process keeps a folder open, even if the folder has been removed since.

    Only the file descriptor :data:`DESCRIPTOR` counts: processes that are not of the system may
    have the folder open by another one.
    """
    try:
        target = os.readlink(f"/proc/{process}/fd/{DESCRIPTOR}")
    except OSError:
        # The process has ended, has no such file open, or belongs to another user.
        return False
    return target.removesuffix(" (deleted)") == folder

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
    while pids := _find_processes_to_kill(folder):
        if time.monotonic() > deadline:
            pid_list = ", ".join(map(str, sorted(pids)))
            raise UserError(f"{folder}: its programs (processes {pid_list}) cannot be ended")
        for pid in pids:
            send_signal(pid, signal.SIGKILL)
        time.sleep(0.01)


def _find_processes_to_kill(folder: str) -> set[int]:
    """Return the IDs of the processes to kill next; none if no process keeps the folder open.

    folder: the folder as given to :func:`build_folder_holding_command`.
    The processes that keep it open, and the members of the sessions that they lead, are to be
    killed.  A session leader is returned only when no other process is left: members that closed
    the folder are found only while their leader lives.
    """
    pids = {int(name) for name in os.listdir("/proc") if name.isdecimal()}
    holder_pids = {pid for pid in pids if _is_holder(pid, folder)}
    if not holder_pids:
        return set()
    session_of_pid: dict[int, int] = {}
    for pid in pids:
        # A process may end meanwhile.
        with contextlib.suppress(ProcessLookupError):
            session_of_pid[pid] = os.getsid(pid)
    leader_pids = {pid for pid in holder_pids if session_of_pid.get(pid) == pid}
    member_pids = {pid for pid, session in session_of_pid.items() if session in leader_pids}
    follower_pids = (holder_pids | member_pids) - leader_pids
    return follower_pids or leader_pids


def _is_holder(pid: int, folder: str) -> bool:
    """Return whether a process keeps a folder open, even if the folder has been removed since.

    pid: the process ID.
    folder: the folder as given to :func:`build_folder_holding_command`.
    Only the file descriptor :data:`DESCRIPTOR` counts: other processes than the system's may have
    the folder open by another descriptor.
    """
    try:
        target = os.readlink(f"/proc/{pid}/fd/{DESCRIPTOR}")
    except OSError:
        # The process has ended, has no such file open, or belongs to another user.
        return False
    return target.removesuffix(" (deleted)") == folder

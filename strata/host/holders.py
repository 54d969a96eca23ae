"""Programs of the bare host, which has no control group: each keeps its system's folder open.

The kernel shows which processes do, so that the programs of a killed cell are found for certain:
neither a name nor a process number, which may be another's by then, decides.
"""

import os
import signal
import time

from strata.util.errors import UserError
from strata.util.process import as_root, capture

DESCRIPTOR = 9
HOLD = f'exec {DESCRIPTOR}<"$1"; shift; exec "$@"'
# Seconds until programs that were killed are gone.
PATIENCE = 10.0


def holding_command(folder: str) -> list[str]:
    """Return the beginning of a command that runs the rest while it keeps a folder open."""
    return ["sh", "-euc", HOLD, "strata", folder]


def end_holders(folder: str) -> None:
    """End the programs of :func:`holding_command` for a folder, and the sessions that they lead.

    Raises UserError where one of them does not end, or is root's and this user lacks its rights.
    """
    deadline = time.monotonic() + PATIENCE
    while processes := _next_to_end(folder):
        if time.monotonic() > deadline:
            numbers = ", ".join(map(str, sorted(processes)))
            raise UserError(f"{folder}: its programs (processes {numbers}) cannot be ended")
        for process in processes:
            _kill(process)
        time.sleep(0.01)


def _kill(process: int) -> None:
    """Kill a process; one that its session's programs started by sudo with the rights of root."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:
        capture(as_root(["kill", "-KILL", str(process)]), check=False)


def _next_to_end(folder: str) -> set[int]:
    """Return the processes to be ended next; those that lead a session come last.

    While its leader lives, the members of a session are found that closed the folder.
    """
    processes = {int(name) for name in os.listdir("/proc") if name.isdecimal()}
    holders = {process for process in processes if _keeps_open(process, folder)}
    if not holders:
        return holders
    sessions = {process: _session(process) for process in processes}
    leaders = {process for process in holders if sessions[process] == process}
    members = {process for process in processes if sessions[process] in leaders}
    return (holders | members) - leaders or leaders


def _keeps_open(process: int, folder: str) -> bool:
    """Return whether a process keeps a folder open; a folder that was removed has a mark."""
    try:
        target = os.readlink(f"/proc/{process}/fd/{DESCRIPTOR}")
    except OSError:
        # It has ended, has no such file open, or is another user's.
        return False
    return target.removesuffix(" (deleted)") == folder


def _session(process: int) -> int | None:
    """Return the number of a process's session; None where the process has ended."""
    try:
        return os.getsid(process)
    except ProcessLookupError:
        return None

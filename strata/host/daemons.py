"""Find the programs and daemons that the layers need, and start a daemon."""

import contextlib
import errno
import os
from collections.abc import Callable

from strata.util import paths
from strata.util.errors import UserError
from strata.util.process import capture_output


def find_program(*programs: str) -> str | None:
    """Return the path of the first of these programs that is installed; None if none is.

    The folders /usr/sbin and /sbin are searched after those of PATH.
    """
    # Imported here, since most cells start faster without this module.
    import shutil

    folders = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    for program in programs:
        if path := shutil.which(program, path=folders):
            return path
    return None


def has_listener(path: str) -> bool:
    """Return whether a process listens on a Unix socket, even if this user may not connect.

    path: the socket's path; the result is false if there is no such socket.
    Connects for a moment, which a listener that systemd starts on demand may notice.
    """
    import socket

    with socket.socket(socket.AF_UNIX) as probe:
        try:
            return probe.connect_ex(path) in (0, errno.EACCES)
        except OSError:
            # The path is longer than the kernel allows for a socket.
            return False


def has_listener_in_other_network(path: str) -> bool:
    """Return whether a Unix socket's listener has another network namespace than this process.

    path: the socket's path.
    False if that cannot be determined: only root sees the namespace of root's processes.
    """
    import socket
    import struct

    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
        probe.connect(path)
        # The kernel's struct ucred: the IDs of the listener's process, user and group.
        ids = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, _, _ = struct.unpack("3i", ids)
        return os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")
    return False


def start_daemon_by_script(
    failure_message: str, script: str, is_answering: Callable[[], bool]
) -> None:
    """Start a daemon by one of the project's scripts, unless the daemon answers already.

    The daemon stays when this process ends: the script's argument `stop` ends it.
    failure_message: the beginning of the error's message.
    script: the name of a file in scripts/.
    is_answering: a function that returns whether the daemon answers.
    Raises UserError if the script fails, or if the daemon does not answer after the script.
    """
    if is_answering():
        return
    # The script itself waits for up to 30 s (scripts/daemons.sh).
    capture_output([os.path.join(paths.PROJECT, "scripts", script)], timeout=90)
    if not is_answering():
        raise UserError(f"{failure_message}: see what `scripts/{script}` prints")

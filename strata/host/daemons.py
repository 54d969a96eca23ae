"""Programs and daemons that the layers need: whether they are there, and a start where no service manager does it."""

import contextlib
import errno
import os
from collections.abc import Callable

from strata.util import paths
from strata.util.errors import UserError
from strata.util.process import capture


def where(*programs: str) -> str | None:
    """The path of the first of these programs that is there, root's among them."""
    import shutil

    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    return next((found for name in programs if (found := shutil.which(name, path=path))), None)


def listens(path: str) -> bool:
    """Whether something listens at a Unix socket, be it that it would not let this user in."""
    import socket

    with socket.socket(socket.AF_UNIX) as probe:
        try:
            return probe.connect_ex(path) in (0, errno.EACCES)
        except OSError:
            # No such path can be: it is too long.
            return False


def other_network(path: str) -> bool:
    """Whether what listens at a Unix socket is in another network namespace than this process.

    False where that is not seen: only root sees it of root's processes.
    """
    import socket
    import struct

    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
        probe.connect(path)
        pid, _, _ = struct.unpack("3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")
    return False


def start(complaint: str, script: str, answers: Callable[[], bool]) -> None:
    """See that a daemon `answers`; start it by the project's `script` where it does not.  Raises UserError.

    complaint: what is said where it answers to neither.
    """
    if answers():
        return
    capture([os.path.join(paths.PROJECT, "scripts", script)], timeout=90)
    if not answers():
        raise UserError(f"{complaint}: see what `scripts/{script}` says")

"""Programs and daemons that the layers need: whether they are there, and a start where no service manager does it."""

import errno
import os
from collections.abc import Callable

from strata.base import places
from strata.base.errors import UserError
from strata.base.process import capture


def where(*programs: str) -> str | None:
    """The path of the first of these programs that is there, root's among them."""
    import shutil

    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    return next((found for name in programs if (found := shutil.which(name, path=path))), None)


def listens(path: str) -> bool:
    """Whether something listens at a Unix socket, be it that it would not let this user in."""
    import socket

    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) in (0, errno.EACCES)


def start(complaint: str, script: str, answers: Callable[[], bool]) -> None:
    """See that a daemon `answers`; start it by the project's `script` where it does not.  Raises UserError.

    complaint: what is said where it answers to neither.
    """
    if answers():
        return
    capture([os.path.join(places.PROJECT, "scripts", script)], timeout=90)
    if not answers():
        raise UserError(f"{complaint}: see what `scripts/{script}` says")

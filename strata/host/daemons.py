"""Daemons that the layers need: whether one listens, and a start where no service manager does it."""

import os
import socket
from collections.abc import Callable

from strata.base import places
from strata.base.errors import UserError


def listens(path: str) -> bool:
    """Whether something listens at a Unix socket, be it that it would not let this user in."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except PermissionError:
            return True
        except OSError:
            return False
    return True


def start(complaint: str, script: str, answers: Callable[[], bool]) -> None:
    """See that a daemon `answers`; start it by the project's `script` where it does not.  Raises UserError.

    complaint: what is said where it answers to neither.
    """
    from strata.base.process import capture

    if answers():
        return
    capture([os.path.join(places.PROJECT, "scripts", script)], timeout=90)
    if not answers():
        raise UserError(f"{complaint}: see what `scripts/{script}` says")

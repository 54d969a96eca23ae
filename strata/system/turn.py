"""The machine's lock: no two measurements overlap, whichever user or checkout starts them."""

import contextlib
import os
from collections.abc import Iterator

from strata.base.errors import UserError
from strata.base.locks import locked

# Tests of small cells have a lock of their own, so that they neither wait for measurements nor stop them.
OWN = os.environ.get("STRATA_TEST_LOCK")
WAITING = "another measurement is under way on this machine"


def path() -> str:
    """The file whose lock means: a measurement is under way on this machine."""
    return os.path.join(OWN or ("/run/lock" if os.path.isdir("/run/lock") else "/tmp"), "strata.lock")


class Taken(UserError):
    """Another measurement is under way, and nobody wanted to wait for its end."""


@contextlib.contextmanager
def exclusive(wait: bool = True) -> Iterator[None]:
    """Hold this machine: no measurement of any run overlaps with what happens inside.

    Raises Taken where another holds it and this is not to `wait`.
    """
    with locked(path(), f"testbed: {WAITING}", wait) as taken:
        if not taken:
            raise Taken(WAITING)
        yield

"""How long things may take: the limits are those of hardware; STRATA_PATIENCE stretches them all (docs/testing.md)."""

import os

from strata.base.errors import UserError

NAME = "STRATA_PATIENCE"


def factor() -> int:
    """The value of STRATA_PATIENCE, 1 if unset.  Raises UserError unless it is a whole number."""
    said = os.environ.get(NAME) or "1"
    if not said.isdecimal() or said == "0":
        raise UserError(f"{NAME}: is '{said}'; must be a whole number, times which limits of time hold")
    return int(said)


def stretched(seconds: float) -> float:
    """A limit of time, times what STRATA_PATIENCE says."""
    return seconds * factor()

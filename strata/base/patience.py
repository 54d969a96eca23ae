"""How long things may take: the limits are those of hardware; STRATA_PATIENCE stretches them all (docs/testing.md)."""

import os

from strata.base.errors import UserError

NAME = "STRATA_PATIENCE"
MOST = 100


def factor() -> int:
    """What STRATA_PATIENCE says (1 to 100; 1 where it says nothing).  Raises UserError where it is something else."""
    said = os.environ.get(NAME)
    if not said:
        return 1
    if not said.isdecimal() or not 1 <= int(said) <= MOST:
        raise UserError(
            f"{NAME}: is '{said}'; must be a whole number from 1 to {MOST}, times which limits of time hold"
        )
    return int(said)


def stretched(seconds: float) -> float:
    """A limit of time, times what STRATA_PATIENCE says."""
    return seconds * factor()

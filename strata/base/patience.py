"""How long things may take: the limits are those of hardware; STRATA_PATIENCE stretches them all (docs/testing.md)."""

import os

NAME = "STRATA_PATIENCE"


def factor() -> int:
    """The value of STRATA_PATIENCE, a whole number; 1 if unset."""
    return int(os.environ.get(NAME) or 1)


def stretched(seconds: float) -> float:
    """A limit of time, times what STRATA_PATIENCE says."""
    return seconds * factor()

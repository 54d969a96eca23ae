"""How long things may take: the limits are those of hardware; STRATA_PATIENCE stretches them all (docs/testing.md)."""

import os
import re

from strata.util.errors import UserError

NAME = "STRATA_PATIENCE"


def factor() -> int:
    """The value of STRATA_PATIENCE, a whole number; 1 if unset.  Raises UserError for another value."""
    text = os.environ.get(NAME) or "1"
    if not re.fullmatch("[1-9][0-9]{0,3}", text):
        raise UserError(f"{NAME}: is {text!r}; must be a whole number from 1 to 9999")
    return int(text)


def stretched(seconds: float) -> float:
    """A limit of time, times what STRATA_PATIENCE says."""
    return seconds * factor()

"""Time limits, which fit real hardware; STRATA_PATIENCE multiplies them (docs/testing.md)."""

import os
import re

from strata.util.errors import UserError

NAME = "STRATA_PATIENCE"


def factor() -> int:
    """Return the value of STRATA_PATIENCE, 1 if it is unset or empty.

    Raises UserError where it is no whole number from 1 to 9999.
    """
    text = os.environ.get(NAME) or "1"
    if not re.fullmatch("[1-9][0-9]{0,3}", text):
        raise UserError(f"{NAME}: is {text!r}; must be a whole number from 1 to 9999")
    return int(text)


def stretched(seconds: float) -> float:
    """Return a time limit multiplied by STRATA_PATIENCE."""
    return seconds * factor()

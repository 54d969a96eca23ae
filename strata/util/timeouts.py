"""Time limits, which fit real hardware; STRATA_PATIENCE multiplies them (docs/testing.md)."""

import os
import re

from strata.util.errors import UserError

VARIABLE = "STRATA_PATIENCE"


def read_patience() -> int:
    """Return STRATA_PATIENCE, the factor of all time limits; 1 if it is unset or empty.

    scripts/daemons.sh reads the variable, too, and records hold the value as `patience`.
    Raises UserError if it is not a whole number from 1 to 9999.
    """
    text = os.environ.get(VARIABLE) or "1"
    if not re.fullmatch("[1-9][0-9]{0,3}", text):
        raise UserError(f"{VARIABLE}: is {text!r}; must be a whole number from 1 to 9999")
    return int(text)


def scale_timeout(seconds: float) -> float:
    """Return a time limit in seconds, multiplied by STRATA_PATIENCE.

    The functions of :mod:`strata.util.process` that run commands scale their limits themselves.
    """
    return seconds * read_patience()

"""Parse sizes and other quantities with units, and parse and format lists such as ``0-2,5``.

Cells import this module, so it imports nothing of Strata.
"""

from collections.abc import Iterable

# Unit of memory → its bytes.
UNITS = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
# Unit of a share → its part of 1; unit of time → its seconds.
_SHARE_AND_TIME_UNITS = {"%": 1 / 100, "s": 1, "min": 60, "h": 3600}


def parse_size(text: str) -> int:
    """Return the bytes of a size such as ``2GiB``: a whole number, and KiB, MiB or GiB.

    Raises ValueError or KeyError for other strings: callers have checked the size by a schema.
    """
    # All units have three letters.
    number = text[:-3]
    unit = text[-3:]
    return int(number) * UNITS[unit]


def parse_quantity(value: str | float | None) -> float | None:
    """Return the number that a quantity such as ``5%``, ``90min`` or ``2GiB`` stands for.

    The number is a share (0.05) for %, seconds for s, min and h, and bytes for KiB, MiB and GiB.
    value: a decimal number and a unit, without a space.  A number or None is returned unchanged.
    Raises ValueError or KeyError for other strings: callers have checked the value by a schema.
    """
    if not isinstance(value, str):
        return value
    # The letters of all units: those of a new unit must be added.
    number = value.rstrip("%bhimnsBGKM")
    unit = value.removeprefix(number)
    factors = UNITS | _SHARE_AND_TIME_UNITS
    return float(number) * factors[unit]


def format_ranges(values: Iterable[int]) -> str:
    """Format whole numbers as the kernel writes lists of CPUs: 0, 1, 2, 5 becomes ``0-2,5``.

    values: different numbers in any order; without any, the text is empty.
    """
    # Each range as its first number and its last.
    ranges: list[list[int]] = []
    for value in sorted(values):
        if ranges and value == ranges[-1][1] + 1:
            ranges[-1][1] = value
        else:
            ranges.append([value, value])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def parse_ranges(text: str) -> list[int]:
    """Parse a list of whole numbers as the kernel writes lists of CPUs: ``0-2,5`` is 0, 1, 2, 5.

    text: the list; spaces around it and empty items are ignored.
    An empty text gives no numbers.  A range whose first number is the higher one gives none either:
    strata/environments/common/limits.py finds mistakes by that.
    Raises ValueError if the text is not such a list.
    """
    values: list[int] = []
    for item in filter(None, text.strip().split(",")):
        first, _, last = item.partition("-")
        values += range(int(first), int(last or first) + 1)
    return values

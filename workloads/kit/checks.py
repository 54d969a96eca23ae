"""Requirements of the workloads' parsers on a log."""

import math
from collections.abc import Iterable

# A JSON object.  The classes of typing would cost every cell their import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Object = dict[str, Any]
else:
    Object = dict


class BrokenLogError(Exception):
    """The error of a log that is not what a complete and correct run prints.

    Its text is the reason, without the name of the file, which the caller adds.
    """

    def __init__(self, reason: str) -> None:
        """Set the reason, with bytes of the log that are no text escaped."""
        # A log may hold bytes that are no text.
        super().__init__(reason.encode(errors="backslashreplace").decode())


def require(holds: object, reason: str) -> None:
    """Raise BrokenLogError with a reason unless a condition is true."""
    if not holds:
        raise BrokenLogError(reason)


def plain(x: object) -> str:
    """Format a number with up to 15 digits, without an exponent or point that it does not need.

    A text is returned as it is.
    """
    return f"{x:.15g}" if isinstance(x, int | float) else str(x)


def number(content: Object, key: str, zero: bool = False) -> float:
    """Return the number that an object of the log has at a key.

    zero: whether the number may be 0.
    Raises BrokenLogError if it is missing, no number, infinite, negative, or 0 unless allowed.
    """
    value = content.get(key, "missing")
    good = type(value) in (int, float) and math.isfinite(value)
    good = good and (value > 0 or (zero and value == 0))
    require(good, f"{key} should be a positive number, and is {repr(value)[:60]}")
    return float(value)


def numbers(objects: Iterable[Object], key: str, zero: bool = False) -> list[float]:
    """Return the number that each object has at a key, checked as by :func:`number`."""
    return [number(content, key, zero) for content in objects]


def require_equal(name: str, logged: object, expected: object) -> None:
    """Raise BrokenLogError unless a value of the log equals the expected one exactly.

    name: the value's name in the message.
    """
    reason = f"{name} should be {_short(expected)}, and the log says {_short(logged)}"
    require(logged == expected, reason)


def _short(x: object) -> str:
    """Format a value for a message: a number in full, anything else cut to 200 characters."""
    return plain(x) if isinstance(x, int | float) else repr(x)[:200]


def require_numbered(objects: list[Object], key: str, first: int = 1) -> None:
    """Raise BrokenLogError unless objects are numbered in order: first, first + 1, and so on.

    key: at which each object has its number.
    """
    logged = [content[key] for content in objects]
    require_equal(f"the numbers of {key}", logged, list(range(first, first + len(objects))))


def require_parameters(content: Object, parameters: Object, *keys: str) -> None:
    """Raise BrokenLogError unless an object of the log repeats the numbers of the parameters.

    content: the object in which a program prints with what it ran.
    parameters: of the cell.  keys: those to compare, which both must have.
    """
    for key in keys:
        require_equal(key, number(content, key, zero=True), parameters[key])


def require_close(name: str, logged: float, expected: float, tolerance: float = 1e-5) -> None:
    """Raise BrokenLogError unless a number of the log is within a tolerance of the expected one.

    name: the number's name in the message.
    tolerance: largest accepted difference, relative to the expected number.  The default allows for
    rounding to six significant digits, which changes a number by at most 5e-6 of it.
    """
    near = abs(logged - expected) <= tolerance * abs(expected)
    require(near, f"{name} should be {plain(expected)}, and the log says {plain(logged)}")


def require_duration(name: str, seconds: float, expected: float) -> None:
    """Raise BrokenLogError if a tool that ends by its own clock ran for less than expected.

    name: subject and verb of the message, such as "the test took".
    seconds: the duration in the log.  expected: that of the parameters; 5 % of it, or at least
    0.1 s, may be missing, since a tool may start a little late.
    """
    enough = seconds >= expected - max(0.1, 0.05 * expected)
    require(enough, f"{name} {plain(seconds)} s, less than the parameters say")


def require_pinned(head: Object, processor: int | None) -> None:
    """Raise BrokenLogError unless the load generator was pinned to the given CPU.

    head: the object that opens a point.  processor: number of the CPU; None: not pinned.
    """
    require_equal("the processor of the load generator", head["cpu"], processor)

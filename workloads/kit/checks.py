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
    """A log is not what a complete and correct run prints.

    The text is the reason, without the name of the file.
    """

    def __init__(self, reason: str) -> None:
        # A log may hold bytes that are no text.
        super().__init__(reason.encode(errors="backslashreplace").decode())


def require(holds: object, reason: str) -> None:
    """Raise BrokenLogError unless the condition holds."""
    if not holds:
        raise BrokenLogError(reason)


def plain(x: object) -> str:
    """Write a number without an exponent or point that it does not need, and a text as it is."""
    return f"{x:.15g}" if isinstance(x, int | float) else str(x)


def number(content: Object, key: str, zero: bool = False) -> float:
    """Return a number of an object.

    Raises BrokenLogError unless it is finite and positive, or 0 where `zero` allows that.
    """
    value = content.get(key, "missing")
    good = type(value) in (int, float) and math.isfinite(value)
    good = good and (value > 0 or (zero and value == 0))
    require(good, f"{key} should be a positive number, and is {repr(value)[:60]}")
    return float(value)


def numbers(objects: Iterable[Object], key: str, zero: bool = False) -> list[float]:
    """Return a number of each of several objects, as :func:`number`."""
    return [number(content, key, zero) for content in objects]


def require_equal(what: str, logged: object, expected: object) -> None:
    """Require that a value of the log is the expected one, exactly."""
    reason = f"{what} should be {_short(expected)}, and the log says {_short(logged)}"
    require(logged == expected, reason)


def _short(x: object) -> str:
    """Write a value for a message: a number as it is, anything else in 200 characters."""
    return plain(x) if isinstance(x, int | float) else repr(x)[:200]


def require_numbered(objects: list[Object], key: str, first: int = 1) -> None:
    """Require that objects are numbered in order: their key is first, first + 1, ..."""
    logged = [content[key] for content in objects]
    require_equal(f"the numbers of {key}", logged, list(range(first, first + len(objects))))


def require_parameters(content: Object, parameters: Object, *keys: str) -> None:
    """Require that a program ran with these numbers of the parameters, by its own object."""
    for key in keys:
        require_equal(key, number(content, key, zero=True), parameters[key])


def require_close(what: str, logged: float, expected: float, tolerance: float = 1e-5) -> None:
    """Require that two numbers agree, relatively.

    Rounding to six significant digits changes a number by at most 5e-6.
    """
    near = abs(logged - expected) <= tolerance * abs(expected)
    require(near, f"{what} should be {plain(expected)}, and the log says {plain(logged)}")


def require_duration(what: str, seconds: float, expected: float) -> None:
    """Require that a tool that ends by its own clock ran for about as long as expected.

    It may start a little late.
    """
    enough = seconds >= expected - max(0.1, 0.05 * expected)
    require(enough, f"{what} {plain(seconds)} s, less than the parameters say")


def require_pinned(head: Object, processor: int | None) -> None:
    """Require that the load generator was pinned to this processor, or (None) to none."""
    require_equal("the processor of the load generator", head["cpu"], processor)

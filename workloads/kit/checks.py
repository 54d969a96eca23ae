"""What the workloads' parsers require of a log."""

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
    """A log is not what a complete and correct run prints.  The text is the reason, without the name of the file."""

    def __init__(self, reason: str) -> None:
        # A log may hold bytes that are no text.
        super().__init__(reason.encode(errors="backslashreplace").decode())


def require(holds: object, reason: str) -> None:
    """Raise BrokenLogError unless the condition holds."""
    if not holds:
        raise BrokenLogError(reason)


def plain(x: object) -> str:
    """A number as text, without the exponent or the point that it does not need; a text as it is."""
    return f"{x:.15g}" if isinstance(x, int | float) else str(x)


def number(found: Object, key: str, zero: bool = False) -> float:
    """A number of an object: finite and positive, or 0 where that is allowed."""
    had = found.get(key, "missing")
    good = type(had) in (int, float) and math.isfinite(had) and (had > 0 or (zero and had == 0))
    require(good, f"{key} should be a positive number, and is {repr(had)[:60]}")
    return float(had)


def numbers(found: Iterable[Object], key: str, zero: bool = False) -> list[float]:
    """A number of each of several objects."""
    return [number(each, key, zero) for each in found]


def require_equal(what: str, found: object, expected: object) -> None:
    """Require that what the log says is what is expected, exactly."""
    require(
        found == expected, f"{what} should be {_short(expected)}, and the log says {_short(found)}"
    )


def _short(x: object) -> str:
    return plain(x) if isinstance(x, int | float) else repr(x)[:200]


def require_counted(found: list[Object], key: str, first: int = 1) -> None:
    """Require that objects are numbered in order: their key is first, first + 1, ..."""
    require_equal(
        f"the numbers of {key}",
        [each[key] for each in found],
        list(range(first, first + len(found))),
    )


def require_asked(found: Object, parameters: Object, *keys: str) -> None:
    """Require that a program did what it was asked to: these numbers are those of the parameters."""
    for key in keys:
        require_equal(key, number(found, key, zero=True), parameters[key])


def require_close(what: str, found: float, expected: float, tolerance: float = 1e-5) -> None:
    """Require that two numbers agree, relatively; rounding to six significant digits changes one by at most 5e-6."""
    near = abs(found - expected) <= tolerance * abs(expected)
    require(near, f"{what} should be {plain(expected)}, and the log says {plain(found)}")


def require_lasted(what: str, seconds: float, asked: float) -> None:
    """Require that a tool that ends by its own clock ran for about as long as asked; it may start late by a bit."""
    require(
        seconds >= asked - max(0.1, 0.05 * asked),
        f"{what} {plain(seconds)} s, less than was asked for",
    )


def require_pinned(head: Object, processor: int | None) -> None:
    """Require that the load generator was pinned to the processor that was asked for, or to none."""
    require_equal("the processor of the load generator", head["cpu"], processor)

"""Functions with which the workloads' parsers check numbers and values of a log."""

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
        """Set the reason.

        Bytes of the log that are not UTF-8 are escaped in it, for example as ``\\udc80``.
        """
        super().__init__(reason.encode(errors="backslashreplace").decode())


def require(condition: object, reason: str) -> None:
    """Raise BrokenLogError with a reason unless a condition is true."""
    if not condition:
        raise BrokenLogError(reason)


def format_value(value: object) -> str:
    """Return a number as text with up to 15 significant digits, and a string unchanged.

    For example "4" for 4.0, and "0.1" for 0.1: further digits are rounded away.
    Values of different laps are matched by this text (kit.logs.Value.key), so that its format must
    not change.
    """
    return f"{value:.15g}" if isinstance(value, int | float) else str(value)


def get_number(content: Object, key: str, allow_zero: bool = False) -> float:
    """Return the finite number, above 0, that an object of the log has at a key.

    content: an object of the log.
    key: the number's key, which the message names.
    allow_zero: whether the number may also be 0.
    Raises BrokenLogError if the value is missing, not a number, infinite or negative, or if it is 0
    and allow_zero is false.
    """
    value = content.get(key, "missing")
    # By type, since isinstance would let true and false pass as integers.
    is_finite = type(value) in (int, float) and math.isfinite(value)
    is_allowed = is_finite and (value > 0 or (allow_zero and value == 0))
    # A broken log may hold a long text here: the message gets 60 characters of it.
    require(is_allowed, f"{key} should be a positive number, and is {repr(value)[:60]}")
    return float(value)


def get_numbers(objects: Iterable[Object], key: str, allow_zero: bool = False) -> list[float]:
    """Return the number that each object has at a key, with the checks of :func:`get_number`."""
    return [get_number(content, key, allow_zero) for content in objects]


def require_equal(name: str, logged: object, expected: object) -> None:
    """Raise BrokenLogError unless a value of the log equals the expected one exactly.

    name: the value's name in the message.
    logged: the value in the log.
    expected: the value that the log should have.
    """
    reason = f"{name} should be {_shorten(expected)}, and the log says {_shorten(logged)}"
    require(logged == expected, reason)


def _shorten(value: object) -> str:
    """Return a value as text for a message: a number in full, all else cut to 200 characters."""
    return format_value(value) if isinstance(value, int | float) else repr(value)[:200]


def require_numbered(objects: list[Object], key: str, first: int = 1) -> None:
    """Raise BrokenLogError unless objects are numbered in their order, without gaps.

    key: the key of the number in each object.
    first: the number of the first object.
    """
    logged = [content[key] for content in objects]
    expected = list(range(first, first + len(objects)))
    require_equal(f"the numbers of {key}", logged, expected)


def require_parameters(content: Object, parameters: Object, *keys: str) -> None:
    """Raise BrokenLogError unless an object of the log repeats the numbers of the parameters.

    content: the object in which a program prints the settings with which it ran.
    parameters: the cell's parameters, by the names that workload.yaml declares.
    keys: the keys to compare, which both must have.
    """
    for key in keys:
        require_equal(key, get_number(content, key, allow_zero=True), parameters[key])


def require_close(name: str, logged: float, expected: float, tolerance: float = 1e-5) -> None:
    """Raise BrokenLogError unless a number of the log is within a tolerance of the expected one.

    name: the number's name in the message.
    logged: the number in the log.
    expected: the number that the log should have; if it is 0, only 0 is accepted.
    tolerance: largest accepted difference, relative to the expected number.  The default allows for
    rounding to six significant digits, which changes a number by at most 5e-6 of it.
    """
    is_close = abs(logged - expected) <= tolerance * abs(expected)
    require(
        is_close,
        f"{name} should be {format_value(expected)}, and the log says {format_value(logged)}",
    )


def require_duration(name: str, seconds: float, expected: float) -> None:
    """Raise BrokenLogError if a tool that ends by its own clock ran for too short a time.

    name: subject and verb of the message, for example "the test took".
    seconds: the duration in the log.
    expected: the duration in the parameters, in seconds.
    A longer time is accepted, whatever it is.
    """
    # A tool may start a little late: 5 % of the duration may be missing, or 0.1 s if that is more.
    min_seconds = expected - max(0.1, 0.05 * expected)
    require(
        seconds >= min_seconds,
        f"{name} {format_value(seconds)} s, less than the parameters say",
    )


def require_pinned(head: Object, processor: int | None) -> None:
    """Raise BrokenLogError unless the load generator was pinned to the given CPU.

    head: the object that opens a point; the workload's script prints its key "cpu".
    processor: the number of the CPU; None: the load generator was not pinned.
    """
    require_equal("the processor of the load generator", head["cpu"], processor)

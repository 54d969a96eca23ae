"""Prints the lines of a client's log, and refuses wrong answers."""

import json


class WrongAnswerError(Exception):
    """A server's answer differs from the expected one; the text says how."""


def print_json_line(**fields: object) -> None:
    """Print the arguments as one line of JSON, and flush it.

    The keys keep the order of the arguments: parsers recognize the kind of a line by its first key
    (kit.logs).
    """
    print(json.dumps(fields), flush=True)


def round_digits(value: float, digits: int = 6) -> float:
    """Round a value to a number of significant digits."""
    return float(f"{value:.{digits}g}")


def require_equal(name: str, value: object, expected: object) -> None:
    """Raise WrongAnswerError unless a value of an answer equals the expected one.

    name: the value's name in the message.
    """
    if value != expected:
        raise WrongAnswerError(f"{name} should be {expected!r}, but is {value!r}")

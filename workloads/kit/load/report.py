"""What the clients of workloads print, and how they refuse a wrong answer."""

import json


class WrongAnswerError(Exception):
    """An answer is not what it should be."""


def report(**fields: object) -> None:
    """Print an object as a line of JSON, at once."""
    print(json.dumps(fields), flush=True)


def digits(value: float, count: int = 6) -> float:
    """A value, rounded to some significant digits."""
    return float(f"{value:.{count}g}")


def require(name: str, value: object, expected: object) -> None:
    """Raise WrongAnswerError unless a value is the expected one."""
    if value != expected:
        raise WrongAnswerError(f"{name} should be {expected!r}, and is {value!r}")

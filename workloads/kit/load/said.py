"""What the clients of the applications say, and what they refuse."""

import contextlib
import json
from collections.abc import Iterator


class WrongAnswerError(Exception):
    """An answer is not what it should be."""


def say(**what: object) -> None:
    """Print an object, at once."""
    print(json.dumps(what), flush=True)


def digits(value: float, count: int = 6) -> float:
    """A value, rounded to some significant digits."""
    return float(f"{value:.{count}g}")


def require(what: str, found: object, expected: object) -> None:
    """Raise WrongAnswerError unless two values are equal."""
    if found != expected:
        raise WrongAnswerError(f"{what} should be {expected!r}, and is {found!r}")


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """Say of every failure where it was."""
    try:
        yield
    except (OSError, WrongAnswerError) as error:
        raise WrongAnswerError(f"{name}: {error}") from None

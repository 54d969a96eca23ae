"""Moments as text, and a clock that goes on evenly when the machine's time is changed."""

import time


def format_utc(moment: float) -> str:
    """Write seconds since the epoch as UTC, in ISO 8601 with milliseconds."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
    return f"{whole}.{int(moment % 1 * 1000):03d}Z"


class Clock:
    """A clock that is set by the machine's time once, and then adds the seconds that pass."""

    def __init__(self) -> None:
        self._epoch, self._start = time.time(), time.monotonic()

    def elapsed(self) -> float:
        """Return the seconds since the clock was set."""
        return time.monotonic() - self._start

    def now(self) -> str:
        """Return the present moment, written as by :func:`format_utc`."""
        return format_utc(self._epoch + self.elapsed())

"""Moments as text, and a clock that changes of the system time do not affect."""

import time


def format_utc(moment: float) -> str:
    """Format a moment, in seconds since the epoch, as UTC in ISO 8601 with milliseconds."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
    return f"{whole}.{int(moment % 1 * 1000):03d}Z"


class Clock:
    """A clock that reads the system time once, and then follows the monotonic clock.

    Later changes of the system time do not affect it.
    """

    def __init__(self) -> None:
        self._epoch, self._start = time.time(), time.monotonic()

    def elapsed(self) -> float:
        """Return the seconds since this clock was created."""
        return time.monotonic() - self._start

    def now(self) -> str:
        """Return the current time as text, in the format of :func:`format_utc`."""
        return format_utc(self._epoch + self.elapsed())

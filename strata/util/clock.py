"""Moments as text, and a clock that no change of the machine's time sets back."""

import time


def utc(moment: float) -> str:
    """Seconds since the epoch as UTC, ISO 8601 with milliseconds."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
    return f"{whole}.{int(moment % 1 * 1000):03d}Z"


class Watch:
    """The time of the machine as it was at the start, and from there on what has really passed."""

    def __init__(self) -> None:
        self._epoch, self._start = time.time(), time.monotonic()

    def passed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def now(self) -> str:
        """The present moment, as of :func:`utc`."""
        return utc(self._epoch + self.passed())

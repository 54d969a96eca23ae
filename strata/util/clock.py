"""Format timestamps, and read a clock that changes of the system time do not affect."""

import time


def format_utc(timestamp: float) -> str:
    """Format a timestamp as UTC in ISO 8601, with milliseconds, rounded down.

    timestamp: seconds since the epoch.
    The result is, for example, "2026-11-29T17:00:00.250Z".  Records hold times in this format, and
    analysis/read.R parses it.
    """
    date_and_time = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(timestamp))
    fraction_of_second = timestamp % 1
    milliseconds = int(fraction_of_second * 1000)
    return f"{date_and_time}.{milliseconds:03d}Z"


class Clock:
    """A clock that reads the system time once, and then follows the monotonic clock.

    Later changes of the system time do not affect it.
    """

    def __init__(self) -> None:
        """Read the start time by the system clock and by the monotonic clock."""
        self._system_start = time.time()
        self._monotonic_start = time.monotonic()

    def get_elapsed_seconds(self) -> float:
        """Return the seconds since this clock was created."""
        return time.monotonic() - self._monotonic_start

    def format_now(self) -> str:
        """Return the current time as text, in the format of :func:`format_utc`."""
        return format_utc(self._system_start + self.get_elapsed_seconds())

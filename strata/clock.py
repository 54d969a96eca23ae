"""Moments as text."""

import time


def utc(moment: float) -> str:
    """Seconds since the epoch as UTC, ISO 8601 with milliseconds."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
    return f"{whole}.{int(moment % 1 * 1000):03d}Z"

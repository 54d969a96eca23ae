"""A fixed rate of the link, by a token bucket on each of its ends.

At an equal rate everywhere the cost of a byte can be compared.  The bucket's handle marks it as
ours: nobody else's queueing is ever replaced or removed.
"""

import re
from collections.abc import Callable

from strata.base.errors import UserError

# Runs a command with the rights of root and returns what it printed.
Run = Callable[[list[str]], str]

HANDLE = "5742:"
UNITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}


def bits_per_second(rate: str) -> int:
    """The number that a rate such as ``1gbit`` stands for."""
    found = re.fullmatch(r"([1-9][0-9]*)(kbit|mbit|gbit)", rate)
    if not found:
        raise UserError(f"config.yaml: client.rate: '{rate}' is not a rate such as 100mbit or 1gbit")
    return int(found[1]) * UNITS[found[2]]


def arguments(device: str, rate: str) -> list[str]:
    """The command that sets the bucket: 4 ms of traffic, at least two packets of 64 KiB, may pass at once."""
    burst = max(bits_per_second(rate) // 8 // 250, 131072)
    return [
        *["tc", "qdisc", "add", "dev", device, "root", "handle", HANDLE, "tbf"],
        *["rate", rate, "burst", str(burst), "latency", "50ms"],
    ]


def limit(run: Run, device: str, rate: str) -> None:
    """Limit what leaves a device; `run` runs a command where the device is.  Raises UserError."""
    try:
        run(arguments(device, rate))
    except UserError as error:
        raise UserError(
            f"config.yaml: client.rate: the rate of {device} cannot be limited to {rate} ({error}); "
            "the kernel needs sch_tbf, and no other queueing may be set there"
        ) from None


def release(run: Run, device: str) -> None:
    """Remove our bucket from a device, if it is there."""
    if f"qdisc tbf {HANDLE} root" in run(["tc", "qdisc", "show", "dev", device]):
        run(["tc", "qdisc", "del", "dev", device, "root"])

"""What the host's CPUs have spent so far: read before and after, never while something measures."""

import contextlib
import ctypes
import json
import os
import struct
import time
from collections.abc import Iterator

from strata.host import observe

# perf_event_open on x86-64 and on everything with the generic table of system calls.
SYSCALL = {"x86_64": 298, "aarch64": 241}
# The 64 bytes of ``struct perf_event_attr`` (version 0): type and size, and zeros: event 0 of hardware is CPU cycles.
CYCLES = struct.pack("=2I56x", 0, 64)


@contextlib.contextmanager
def cycles() -> Iterator[list[int]]:
    """A descriptor for every CPU that counts its cycles, in all processes; none where the machine has no counters."""
    number = SYSCALL.get(os.uname().machine)
    call = ctypes.CDLL(None, use_errno=True).syscall
    opened: list[int] = []
    try:
        for cpu in sorted(os.sched_getaffinity(0)) if number else []:
            descriptor = call(number, CYCLES, -1, cpu, -1, 8)
            if descriptor < 0:
                break
            opened.append(descriptor)
        yield opened if len(opened) == len(os.sched_getaffinity(0)) else []
    finally:
        for descriptor in opened:
            os.close(descriptor)


def cpu_line(counting: list[int]) -> str:
    """One JSON line: seconds on the clock, busy and steal seconds of all CPUs since the boot, cycles so far or null.

    Busy is all but idle, waiting for input or output, and steal; it includes what virtual machines ran.
    """
    ticks = os.sysconf("SC_CLK_TCK")
    times = observe.cpu_times()[:8]
    busy = sum(times) - times[3] - times[4] - times[7]
    counted = sum(int.from_bytes(os.read(descriptor, 8), "little") for descriptor in counting)
    return json.dumps(
        {
            "observed": "cpu",
            "seconds": round(time.monotonic(), 6),
            "busy_seconds": round(busy / ticks, 6),
            "steal_seconds": round(times[7] / ticks, 6),
            "cpus": os.cpu_count(),
            "cycles": counted if counting else None,
        }
    )

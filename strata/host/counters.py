"""What the host's CPUs have spent so far: read before and after, never while something measures."""

import contextlib
import ctypes
import json
import os
import struct
import time
from collections.abc import Iterator

from strata.host import capacity, observe
from strata.util.errors import UserError

# perf_event_open on x86-64 and on everything with the generic table of system calls.
SYSCALL = {"x86_64": 298, "aarch64": 241}
# The 64 bytes of ``struct perf_event_attr`` (version 0): type and size, and zeros: event 0 of hardware is CPU cycles.
CYCLES = struct.pack("=2I56x", 0, 64)


@contextlib.contextmanager
def cycles() -> Iterator[list[int]]:
    """A descriptor for each of our CPUs that counts its cycles, in all processes.

    None where the machine has no counters.
    """
    number = SYSCALL.get(os.uname().machine)
    call = ctypes.CDLL(None, use_errno=True).syscall
    opened: list[int] = []
    cpus = sorted(capacity.processors())
    try:
        for cpu in cpus if number else []:
            descriptor = call(number, CYCLES, -1, cpu, -1, 8)
            if descriptor < 0:
                break
            opened.append(descriptor)
        yield opened if len(opened) == len(cpus) else []
    finally:
        for descriptor in opened:
            os.close(descriptor)


def cpu_line(counting: list[int]) -> str:
    """One JSON line about the CPUs that measurements may use.

    It has the seconds on the clock, how many CPUs they are, their busy and steal seconds since the
    boot, and their cycles so far; steal and cycles are null where they are not known.  Busy is all
    but idle, waiting for input or output, and steal; it includes what virtual machines ran.
    Raises UserError where /proc/stat has no such times.
    """
    ticks, cpus = os.sysconf("SC_CLK_TCK"), capacity.processors()
    times = observe.cpu_times(cpus)[:8]
    if len(times) < 4:
        raise UserError(
            f"{observe.STAT}: has no line 'cpu' with the times of the processors, which this "
            "workload needs: run it where /proc is mounted and says them"
        )
    busy = sum(times) - sum(times[3:5]) - sum(times[7:])
    counted = sum(int.from_bytes(os.read(descriptor, 8), "little") for descriptor in counting)
    return json.dumps(
        {
            "observed": "cpu",
            "seconds": round(time.monotonic(), 6),
            "busy_seconds": round(busy / ticks, 6),
            "steal_seconds": round(times[7] / ticks, 6) if len(times) == 8 else None,
            "cpus": len(cpus),
            "cycles": counted if counting else None,
        }
    )

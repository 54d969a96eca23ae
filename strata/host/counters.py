"""Read the time and cycles that the host's CPUs have spent, before and after a measurement."""

import contextlib
import ctypes
import json
import os
import struct
import time
from collections.abc import Iterator

from strata.host import capacity, observe
from strata.util.errors import UserError

# The number of the system call perf_event_open, on each machine.
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
# The 64 bytes of ``struct perf_event_attr`` (version 0): type and size, and zeros, for event 0 of
# the hardware: CPU cycles.
CYCLES = struct.pack("=2I56x", 0, 64)
# The flag PERF_FLAG_FD_CLOEXEC.
CLOSE_ON_EXEC = 8


@contextlib.contextmanager
def open_cycle_counters() -> Iterator[list[int]]:
    """Open a counter of the cycles of each usable CPU, in all processes, for the `with` block.

    Yields the counters' file descriptors, which :func:`format_cpu_usage_line` reads.  The list is
    empty unless the machine and the user's rights allow a counter on every CPU: a sum over some
    CPUs would be wrong.
    """
    call_number = PERF_EVENT_OPEN.get(os.uname().machine)
    syscall = ctypes.CDLL(None).syscall
    descriptors: list[int] = []
    cpus = sorted(capacity.list_usable_cpus())
    try:
        for cpu in cpus if call_number else []:
            # All processes (-1) on the CPU; the counter belongs to no group (-1).
            descriptor = syscall(call_number, CYCLES, -1, cpu, -1, CLOSE_ON_EXEC)
            if descriptor < 0:
                break
            descriptors.append(descriptor)
        yield descriptors if len(descriptors) == len(cpus) else []
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def format_cpu_usage_line(cycle_counters: list[int]) -> str:
    """Read the times of the CPUs that measurements may use; return them as one line of JSON.

    cycle_counters: the file descriptors of :func:`open_cycle_counters`; each is read, not reset.
    The line has the seconds of the monotonic clock, the number of CPUs, their busy and steal
    seconds since the boot, and their cycles so far, for example ``{"observed": "cpu", "seconds":
    81.5, "busy_seconds": 31.2, "steal_seconds": 0.0, "cpus": 2, "cycles": null}``.  Steal and
    cycles are null if not known.
    Logs hold the line, and workloads/kit/logs.py reads its keys.
    :func:`strata.host.observe.sum_busy_and_steal_ticks` defines busy and steal.
    Raises UserError if /proc/stat has no such times.
    """
    cpus = capacity.list_usable_cpus()
    ticks_per_second = os.sysconf("SC_CLK_TCK")
    busy_and_steal = observe.sum_busy_and_steal_ticks(observe.read_cpu_times(cpus))
    if busy_and_steal is None:
        raise UserError(
            f"{observe.STAT}: has no line 'cpu' with the times of the processors, which this "
            "workload needs: run it where /proc is mounted and shows them"
        )
    busy, steal = busy_and_steal
    cycles = sum(int.from_bytes(os.read(counter, 8), "little") for counter in cycle_counters)
    return json.dumps(
        {
            "observed": "cpu",
            "seconds": round(time.monotonic(), 6),
            "busy_seconds": round(busy / ticks_per_second, 6),
            "steal_seconds": None if steal is None else round(steal / ticks_per_second, 6),
            "cpus": len(cpus),
            "cycles": cycles if cycle_counters else None,
        }
    )

"""Run a busy neighbour: programs that use all CPUs, in a control group beside the system's."""

import contextlib
import math
import time
from collections.abc import Iterator

from strata.host import cgroups
from strata.host.capacity import list_usable_cpus
from strata.host.context import Context
from strata.util.data_types import Fields
from strata.util.errors import CellFailed
from strata.util.process import capture_output, wrap_as_root

# Arguments: the seconds after which the loops end by themselves, and the number of a CPU per loop.
START_LOOPS = """
limit=$1
shift
for cpu; do
    setsid timeout "$limit" taskset -c "$cpu" sh -c 'while :; do :; done' \
        </dev/null >/dev/null 2>&1 &
done
"""


@contextlib.contextmanager
def run_busy_neighbour(context: Context, limit: float) -> Iterator[Fields]:
    """Keep every usable CPU busy with programs while the caller measures, and yield their usage.

    context: the context of the measured system.
    limit: the seconds after which the programs end by themselves.
    The programs are in a control group like the one of a native system, with the default weight.
    The group is noted in the journal, and removed at the end.
    The yielded mapping has the number of CPUs, `processors`.  At the end it also gets `seconds`,
    the time that the programs ran, and `cpu_seconds`, the CPU time that they used.  The caller logs
    the mapping, and workloads/quota/parse.py reads its keys.
    Raises CellFailed if the programs used no CPU time.
    """
    name = f"{context.id}-neighbour"
    context.note_cleanup({"kind": "group", "id": name})
    processors = sorted(list_usable_cpus())
    usage: Fields = {"processors": len(processors)}
    try:
        cgroups.create_groups(name, context.mask)
        loops = ["sh", "-euc", START_LOOPS, "strata", str(math.ceil(limit)), *map(str, processors)]
        capture_output(wrap_as_root([*cgroups.build_join_command(name), *loops]))
        started, before = time.monotonic(), cgroups.read_and_reset_group_usage([name])
        yield usage
        after, elapsed = cgroups.read_and_reset_group_usage([name]), time.monotonic() - started
    finally:
        cgroups.remove_groups(name)
    cpu_seconds = 0.0
    for kind in ("user_seconds", "system_seconds"):
        cpu_seconds += (after[kind] or 0) - (before[kind] or 0)
    if cpu_seconds <= 0:
        raise CellFailed("its busy neighbour did not run")
    usage |= {"seconds": round(elapsed, 4), "cpu_seconds": round(cpu_seconds, 4)}

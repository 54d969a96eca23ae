"""A busy neighbour: programs that want all processors, in a control group beside a system's."""

import contextlib
import math
import time
from collections.abc import Iterator

from strata.host import cgroups
from strata.host.capacity import usable_processors
from strata.host.context import Context
from strata.util.data_types import Fields
from strata.util.errors import CellFailed
from strata.util.process import as_root, capture

# Arguments: seconds after which the loops end by themselves, and a processor for each loop.
START_LOOPS = """
limit=$1
shift
for cpu; do
    setsid timeout "$limit" taskset -c "$cpu" sh -c 'while :; do :; done' \
        </dev/null >/dev/null 2>&1 &
done
"""


@contextlib.contextmanager
def keep_busy(context: Context, limit: float) -> Iterator[Fields]:
    """Keep every processor busy while the caller measures, and yield what that used.

    The programs have a control group like that of a native system, of the usual weight.
    context: that of the system beside which they run; its journal notes the group.
    limit: the seconds after which they end by themselves.
    The yielded mapping gets `processors`, `seconds` and `cpu_seconds` at the end.
    Raises CellFailed if the programs used no CPU time.
    """
    name = f"{context.id}-neighbour"
    context.note_cleanup({"kind": "group", "id": name})
    processors = sorted(usable_processors())
    usage: Fields = {"processors": len(processors)}
    try:
        cgroups.create_groups(name, context.mask)
        loops = ["sh", "-euc", START_LOOPS, "strata", str(math.ceil(limit)), *map(str, processors)]
        capture(as_root([*cgroups.join_command(name), *loops]))
        begun, before = time.monotonic(), cgroups.read_usage([name])
        yield usage
        after, elapsed = cgroups.read_usage([name]), time.monotonic() - begun
    finally:
        cgroups.remove_groups(name)
    kinds = ("user_seconds", "system_seconds")
    used = sum((after[kind] or 0) - (before[kind] or 0) for kind in kinds)
    if used <= 0:
        raise CellFailed("its busy neighbour did not run")
    usage |= {"seconds": round(elapsed, 4), "cpu_seconds": round(used, 4)}

"""Published rules by which the sizes of a workload follow from the machine.

A parameter's value in workload.yaml is a literal or ``{rule: NAME, …}``.  Each rule
returns the value and a sentence about it for the paper (or None).  The rules :data:`OF_THE_CELL`
are left in place here: they are what the system under test or the client sees, so the cell resolves them.
"""

import math
from collections.abc import Callable
from typing import Any

from strata.util.data_types import Fields

GIB = 1024**3


def memory_power(machine: Fields, fraction: float, element_bytes: int) -> tuple[int, str | None]:
    """Largest k with 2^k elements within `fraction` of the memory (HPC Challenge asks for half)."""
    return int(math.log2(machine["memory_bytes"] * fraction / element_bytes)), None


def fitting(
    machine: Fields,
    values: list[int],
    element_bytes: int,
    power: int,
    fraction: float,
    multiple: int,
) -> tuple[list[int], str | None]:
    """Those of the published orders whose matrix fits in `fraction` of the memory, or the largest that does."""
    room = machine["memory_bytes"] * fraction
    fits = [value for value in values if element_bytes * value**power <= room]
    left_out = [value for value in values if value not in fits]
    if not left_out:
        return fits, None
    if not fits:
        largest = int((room / element_bytes) ** (1 / power)) // multiple * multiple
        fits = [max(largest, multiple)]
    needs = ", ".join(
        f"{value:,} ({element_bytes * value**power / 1e9:.1f} GB)" for value in left_out
    )
    systems = machine.get("systems", 1)
    here = "here" if systems == 1 else f"for each of {systems} systems"
    return (
        fits,
        f"Left out for want of memory ({machine['memory_bytes'] / 1e9:.1f} GB {here}): {needs}.",
    )


def by_cache(machine: Fields, most: int, mib: int) -> tuple[int, str | None]:
    """Laps: `most`, and in proportion fewer where the last-level caches (and so a run) are above so many MiB."""
    there = (machine["cache_bytes"] or 0) / 1024**2
    laps = min(most, max(1, int(most * mib / max(there, 1))))
    words = f"Laps: {laps} and not {most}, for last-level caches of {there:,.0f} MiB make each run long."
    return laps, words if laps < most else None


RULES: dict[str, Callable[..., tuple[Any, str | None]]] = {
    "memory-power": memory_power,
    "fitting": fitting,
    "by-cache": by_cache,
}

# The smallest value with which the workload's size rules hold: strata.experiment.sizes.
SMALLEST = "smallest"
# cpus: how many the system under test has, of several that share the host's its part.  first-cpu: the number of its
# first one.  client-last-cpu: that of the client's last one.
OF_THE_CELL = ("cpus", "first-cpu", "client-last-cpu")


def at_scale(value: object, scale: str) -> object:
    """The value of a setting that may be given by scale (``{tiny: …, standard: …, paper: …}``)."""
    return value[scale] if isinstance(value, dict) and scale in value else value


def resolve(value: object, machine: Fields) -> tuple[object, str | None]:
    """Apply a rule to the machine; literals, the smallest and the rules of the cell stay as they are."""
    if not isinstance(value, dict) or value["rule"] in (SMALLEST, *OF_THE_CELL):
        return value, None
    arguments = {key: item for key, item in value.items() if key != "rule"}
    return RULES[value["rule"]](machine, **arguments)

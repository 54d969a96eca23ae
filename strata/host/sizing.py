"""Rules that derive a workload's sizes from the machine.

A parameter's value in workload.yaml is a literal or ``{rule: NAME, …}``.  Each rule is a function
of the machine's facts and of the keys beside `rule`, by these names; it returns the value, and a
sentence about it for the paper or None.  The rules :data:`OF_THE_CELL` stay in place here: they
depend on the CPUs of the system under test or the client, so the cell resolves them.
"""

import math
from collections.abc import Callable
from typing import Any

from strata.util.data_types import Fields


def compute_table_exponent(
    machine: Fields, fraction: float, element_bytes: int
) -> tuple[int, str | None]:
    """Return (k, None): k is the largest exponent such that 2^k elements fit in the memory.

    This is the rule ``memory-power``: workload.yaml has the parameters' names as keys.  The None
    stands for the sentence that other rules return.
    machine: only `memory_bytes` is read.
    fraction: the share of the memory, above 0, at most 1; HPC Challenge asks for half of the
    memory.
    element_bytes: the size of an element of the table, positive.
    Raises ValueError if the share of the memory is 0.
    """
    elements = machine["memory_bytes"] * fraction / element_bytes
    return int(math.log2(elements)), None


def select_fitting_orders(
    machine: Fields,
    values: list[int],
    element_bytes: int,
    power: int,
    fraction: float,
    multiple: int,
) -> tuple[list[int], str | None]:
    """Return the matrix orders that fit in the memory, and a sentence on those that do not.

    This is the rule ``fitting``: workload.yaml has the parameters' names as keys.
    machine: `memory_bytes`, and for the sentence `systems`, how many systems share the host
    (missing: 1).
    values: the published orders; a matrix takes `element_bytes` times the order to the `power`.
    fraction: the share of the memory that a matrix may take, from 0 to 1.
    multiple: if no order fits, the largest fitting multiple of this number is returned, at least
    the number itself.
    The sentence is None if all orders fit.  It is, for example, "Left out for want of memory
    (16.8 GB here): 65,000 (33.8 GB)."
    """
    memory_limit = machine["memory_bytes"] * fraction
    fitting_orders = [order for order in values if element_bytes * order**power <= memory_limit]
    excessive_orders = [order for order in values if order not in fitting_orders]
    if not excessive_orders:
        return fitting_orders, None
    if not fitting_orders:
        # At least one multiple, even if that does not fit either: the list must not be empty.
        fitting_multiple = int((memory_limit / element_bytes) ** (1 / power)) // multiple * multiple
        fitting_orders = [max(fitting_multiple, multiple)]
    sizes = ", ".join(
        f"{order:,} ({element_bytes * order**power / 1e9:.1f} GB)" for order in excessive_orders
    )
    system_count = machine.get("systems", 1)
    owner = "here" if system_count == 1 else f"for each of {system_count} systems"
    memory = f"{machine['memory_bytes'] / 1e9:.1f} GB {owner}"
    return fitting_orders, f"Left out for want of memory ({memory}): {sizes}."


def compute_lap_count(machine: Fields, most: int, mib: int) -> tuple[int, str | None]:
    """Return the number of laps, and a sentence if large caches reduce that number.

    This is the rule ``by-cache``: workload.yaml has the parameters' names as keys.
    machine: only `cache_bytes` is read.  Caches of unknown size count as small.
    most: the number of laps if the last-level caches have at most `mib` MiB, at least 1.
    mib: the size of the caches, in MiB, above which the number falls, at least 1.
    The number falls in inverse proportion to the size of larger caches, which make each run longer,
    and is rounded down, but is at least 1.  The sentence is None if it does not fall.
    """
    cache_mib = (machine["cache_bytes"] or 0) / 1024**2
    laps = max(1, int(most * mib / max(cache_mib, 1)))
    if laps >= most:
        return most, None
    return laps, (
        f"Laps: {laps} and not {most}, for last-level caches of {cache_mib:,.0f} MiB make each run "
        "long."
    )


RULES: dict[str, Callable[..., tuple[Any, str | None]]] = {
    "memory-power": compute_table_exponent,
    "fitting": select_fitting_orders,
    "by-cache": compute_lap_count,
}

# The smallest value that keeps the workload's size rules: strata.experiment.sizes.
SMALLEST = "smallest"
# cpus: how many CPUs the system under test has (its share, where several systems share the host's
# CPUs); first-cpu: the number of its first CPU; client-last-cpu: the number of the client's last
# CPU.
OF_THE_CELL = ("cpus", "first-cpu", "client-last-cpu")


def select_value_at_scale(value: object, scale: str) -> object:
    """Return a setting's value at a scale.

    value: ``{tiny: …, standard: …, paper: …}``, or the value at every scale, which may be another
    mapping.  A mapping without the scale is returned itself.
    scale: the scale's name, such as tiny.
    """
    return value[scale] if isinstance(value, dict) and scale in value else value


def resolve_rule(value: object, machine: Fields) -> tuple[object, str | None]:
    """Return a parameter's value on a machine, and a sentence on it for the paper or None.

    value: a literal or ``{rule: NAME, …}``, as in workload.yaml.  Literals, ``smallest`` and the
    rules :data:`OF_THE_CELL` are returned unchanged.
    machine: the result of :func:`strata.host.capacity.read_host_facts`.  If several systems run at
    the same time, it is the share of one, and its key `systems` has their number.
    The schema of workload.yaml has checked the rule's name and keys.
    """
    if not isinstance(value, dict) or value["rule"] in (SMALLEST, *OF_THE_CELL):
        return value, None
    arguments = {key: item for key, item in value.items() if key != "rule"}
    return RULES[value["rule"]](machine, **arguments)

"""Size rules: what a workload's benchmark asks of its sizes, and whether they hold on a machine.

A workload declares them in workload.yaml (`sizes`), each with its source: a product of parameters, metrics and laps
is at least so many times a product of facts.  The plan takes the smallest sizes that keep them
(``{rule: smallest, …}``), and every record holds each rule with its outcome.  Standard library only: cells load it.
"""

import math
from collections.abc import Callable, Iterable, Mapping

from strata.experiment import plan
from strata.util.data_types import Fields, Plan
from strata.util.placeholders import several

# Facts of the machine, by the key of strata.host.capacity.facts.
FACTS = {"cache": "cache_bytes", "memory": "memory_bytes", "processors": "cpus"}
# Bytes of a parameter's value n, and the value that has so many.
SHAPES: dict[str, tuple[Callable[[float], float], Callable[[float], int]]] = {
    "n": (lambda n: n, math.ceil),
    "n^2": (lambda n: n**2, lambda size: math.isqrt(max(math.ceil(size) - 1, 0)) + 1),
    "2^n": (lambda n: 2 ** min(n, 60), lambda size: math.ceil(math.log2(max(size, 1)))),
}


def share_of(machine: Fields, systems: int) -> Fields:
    """What of a machine each of several equal systems has; they share its last-level caches."""
    shares = {key: max(machine[key] // systems, 1) for key in ("memory_bytes", "cpus")}
    return {**machine, **shares, "systems": systems}


def of_cell(
    experiment: Plan, workload: str, values: Fields, metrics: Iterable[tuple[str, float]] = ()
) -> list[Fields]:
    """The outcomes of a workload's size rules, in a plan on its machine; arguments as of :func:`outcomes`."""
    planned = experiment["workloads"][workload]
    machine = share_of(dict(experiment["machine"]), plan.systems(planned))
    return outcomes(dict(planned["cell"]), values, machine, metrics)


def outcomes(
    declared: Fields, values: Fields, machine: Fields, metrics: Iterable[tuple[str, float]] = ()
) -> list[Fields]:
    """``[{rule, source, value, least, holds}, …]``: each size rule of a workload with these parameters.

    declared: as in workload.yaml or in the plan's `cell`.  machine: as of :func:`strata.host.capacity.facts`.
    metrics: names and values of the log; the smallest of each counts.  `holds` is None for what is not known (yet) or
    only told; a parameter that is null is the tool's own choice and holds.
    """
    found = []
    known = _known(declared, values, machine, metrics)
    for rule in declared.get("sizes", []):
        entry = {"rule": rule["rule"], "source": rule["source"]}
        if "told" in rule:
            found.append({**entry, "told": rule["told"], "holds": None})
            continue
        names = several(rule["value"])
        value = _product(known, names)
        if value is not None and "bytes" in rule:
            value = in_bytes(rule["bytes"], value)
        least = _product(known, several(rule.get("of", [])), rule["at_least"])
        own_choice = any(name in values and values[name] is None for name in names)
        holds = True if own_choice else None if value is None or least is None else value >= least
        found.append({**entry, "value": value, "least": least, "holds": holds})
    return found


def broken(found: Iterable[Fields]) -> bool:
    """Whether one of these outcomes says that its rule does not hold."""
    return any(one["holds"] is False for one in found)


def smallest(
    declared: Fields, name: str, values: Fields, machine: Fields, at_least: int, multiple: int
) -> int:
    """The smallest multiple of a number with which a parameter keeps the rules that are about it alone.

    at_least: what it is where they ask for less, or where a fact is not known.
    """
    known, size = _known(declared, values, machine), at_least
    for rule in declared.get("sizes", []):
        if rule.get("value") == name:
            least = _product(known, several(rule.get("of", [])), rule["at_least"])
            if least is not None:
                factor, shape = rule.get("bytes", "1*n").split("*", 1)
                size = max(size, SHAPES[shape][1](least / int(factor)))
    return math.ceil(size / multiple) * multiple


def in_bytes(form: str, value: float) -> float:
    """Bytes of what a parameter's value asks for; `form` is such as ``24*n``, ``8*n^2`` or ``8*2^n``."""
    factor, shape = form.split("*", 1)
    # Beyond 2^60 all is too much; the number itself would fill the memory.
    return int(factor) * SHAPES[shape][0](min(value, 2**60))


def _known(
    declared: Fields, values: Fields, machine: Fields, metrics: Iterable[tuple[str, float]] = ()
) -> dict[str, float | None]:
    """What the names of rules stand for: numbers; of a list its largest, of a metric its smallest."""
    found: dict[str, float | None] = {name: machine.get(key) for name, key in FACTS.items()} | {
        "laps": 1
    }
    for name, value in sorted(metrics, key=lambda one: one[1]):
        found.setdefault(name, value)
    for name, value in values.items():
        numbers = [
            one
            for one in (value if isinstance(value, list) else [value])
            if type(one) in (int, float)
        ]
        found[name] = max(numbers, default=None)
    for name, fact in declared.get("facts", {}).items():
        at = found.get(fact["of"])
        found[name] = (
            fact["each"][at] if isinstance(at, int) and 0 <= at < len(fact["each"]) else None
        )
    return found


def _product(
    known: Mapping[str, float | None], names: list[str], factor: float = 1
) -> float | None:
    numbers = [number for name in names if (number := known.get(name)) is not None]
    return math.prod(numbers, start=factor) if len(numbers) == len(names) else None

"""Evaluate size rules: the requirements of a benchmark on its sizes on a machine.

A workload declares its rules in workload.yaml (`sizes`), each with its source: a product of
parameters, metrics and laps is at least a number times a product of facts.  The plan takes the
smallest sizes that keep them (``{rule: smallest, …}``), and every record holds the outcome of
each rule.  This module needs the standard library alone, since every cell loads it.
"""

import math
from collections.abc import Callable, Iterable, Mapping

from strata.experiment import plan
from strata.util.data_types import Fields, Plan
from strata.util.placeholders import convert_to_list

# Names of the machine's facts in rules → keys of strata.host.capacity.read_host_facts.
FACTS = {"cache": "cache_bytes", "memory": "memory_bytes", "processors": "cpus"}
# Shape → two functions: from a parameter's value n to bytes, and from bytes to the smallest n.
SHAPES: dict[str, tuple[Callable[[float], float], Callable[[float], int]]] = {
    "n": (lambda n: n, math.ceil),
    "n^2": (lambda n: n**2, lambda size: math.isqrt(max(math.ceil(size) - 1, 0)) + 1),
    "2^n": (lambda n: 2 ** min(n, 60), lambda size: math.ceil(math.log2(max(size, 1)))),
}


def compute_machine_share(machine: Fields, systems: int) -> Fields:
    """Return the facts of a machine as one of several equal systems sees them.

    machine: the facts of :func:`strata.host.capacity.read_host_facts`; not changed.
    systems: the number of equal systems, at least 1.
    The systems share memory and CPUs evenly, rounded down but at least 1, and all use the same
    last-level caches.  The result has the further key `systems`, their number, which host/sizing.py
    puts into notes on sizes.
    """
    share = {key: max(machine[key] // systems, 1) for key in ("memory_bytes", "cpus")}
    return {**machine, **share, "systems": systems}


def evaluate_planned_size_rules(
    experiment: Plan, workload: str, values: Fields, metrics: Iterable[tuple[str, float]] = ()
) -> list[Fields]:
    """Return the outcomes of a planned workload's size rules on the plan's machine.

    experiment: the plan.
    workload: the name of the workload.
    values: parameter → value.
    metrics: (name, value) of each metric from the log.
    The result has the form of :func:`evaluate_size_rules`.
    """
    planned = experiment["workloads"][workload]
    machine = compute_machine_share(dict(experiment["machine"]), plan.count_systems(planned))
    return evaluate_size_rules(dict(planned["cell"]), values, machine, metrics)


def evaluate_size_rules(
    declaration: Fields, values: Fields, machine: Fields, metrics: Iterable[tuple[str, float]] = ()
) -> list[Fields]:
    """Return whether each size rule holds: ``[{rule, source, value, least, holds}, …]``.

    declaration: a mapping with the keys ``sizes`` and ``facts``: the content of workload.yaml, or
    the plan's `cell`.
    values: the parameters of the workload, by name.
    machine: the facts of :func:`strata.host.capacity.read_host_facts`.
    metrics: (name, value) from the log; the smallest value of each name counts.
    value: the size that the parameters give, or None.
    least: the smallest size that the rule accepts, or None.
    holds: True or False; None if a quantity is unknown, or if the rule cannot be checked.
    In the last case the outcome has ``unchecked``, the reason, in place of `value` and `least`.
    The rule of a parameter whose value is None holds: the program itself chooses the size.
    The record keeps the result as `sizes`; analysis/read.R makes a table of it.
    """
    outcomes = []
    quantities = _collect_quantities(declaration, values, machine, metrics)
    for rule in declaration.get("sizes", []):
        outcome = {"rule": rule["rule"], "source": rule["source"]}
        if "unchecked" in rule:
            outcomes.append({**outcome, "unchecked": rule["unchecked"], "holds": None})
            continue
        names = convert_to_list(rule["value"])
        value = _multiply_quantities(quantities, names)
        if value is not None and "bytes" in rule:
            value = compute_memory_bytes(rule["bytes"], value)
        least = _multiply_quantities(
            quantities, convert_to_list(rule.get("of", [])), rule["at_least"]
        )
        holds = None
        if any(name in values and values[name] is None for name in names):
            holds = True
        elif value is not None and least is not None:
            holds = value >= least
        outcomes.append({**outcome, "value": value, "least": least, "holds": holds})
    return outcomes


def has_broken_rule(outcomes: Iterable[Fields]) -> bool:
    """Return whether a rule is broken, by the outcomes of :func:`evaluate_size_rules`."""
    return any(outcome["holds"] is False for outcome in outcomes)


def find_smallest_valid_size(
    declaration: Fields, name: str, values: Fields, machine: Fields, at_least: int, multiple: int
) -> int:
    """Return the smallest value of a parameter that meets its size rules.

    Rules on a product of several parameters are not considered.
    declaration: a mapping with the keys ``sizes`` and ``facts``, such as the content of
    workload.yaml.
    name: the name of the parameter.
    values: the parameters of the workload, by name.
    machine: the facts of :func:`strata.host.capacity.read_host_facts`.
    at_least: the smallest allowed value, even if the rules require less or a fact is unknown.
    multiple: the result is rounded up to a multiple of this number.
    """
    quantities = _collect_quantities(declaration, values, machine)
    size = at_least
    for rule in declaration.get("sizes", []):
        if rule.get("value") != name:
            continue
        least = _multiply_quantities(
            quantities, convert_to_list(rule.get("of", [])), rule["at_least"]
        )
        if least is not None:
            # Without the key `bytes` the rule is on the parameter's value itself.
            factor, shape = rule.get("bytes", "1*n").split("*", 1)
            _, find_smallest_n = SHAPES[shape]
            size = max(size, find_smallest_n(least / int(factor)))
    return math.ceil(size / multiple) * multiple


def compute_memory_bytes(form: str, value: float) -> float:
    """Return the bytes of memory that a parameter's value needs.

    form: a factor and a shape of :data:`SHAPES`, such as ``24*n``, ``8*n^2`` or ``8*2^n``.
    value: the parameter's value, at least 0.
    """
    factor, shape = form.split("*", 1)
    compute_count, _ = SHAPES[shape]
    # Values above 2^60 fit no machine.  Without the limit their square or power could overflow.
    return int(factor) * compute_count(min(value, 2**60))


def _collect_quantities(
    declaration: Fields, values: Fields, machine: Fields, metrics: Iterable[tuple[str, float]] = ()
) -> dict[str, float | None]:
    """Return the number for each name that size rules use; None if it is unknown.

    declaration: a mapping with the keys ``sizes`` and ``facts``.
    values: parameter → value.
    machine: the facts of :func:`strata.host.capacity.read_host_facts`.
    metrics: (name, value) of each metric.
    The largest number of a list counts, and the smallest value of a metric.  If names are equal, a
    parameter wins over a metric, and a declared fact over both.
    """
    quantities: dict[str, float | None] = {name: machine.get(key) for name, key in FACTS.items()}
    quantities["laps"] = 1
    for name, value in sorted(metrics, key=lambda metric: metric[1]):
        # The first value, which is the smallest, stays.
        quantities.setdefault(name, value)
    for name, value in values.items():
        # The type of True is not int, although True is an instance of it.
        numbers = [item for item in convert_to_list(value) if type(item) in (int, float)]
        quantities[name] = max(numbers, default=None)
    # A declared fact is looked up: the parameter `of` is the position in the list `each`.
    for name, fact in declaration.get("facts", {}).items():
        index = quantities.get(fact["of"])
        value_of_each = fact["each"]
        quantities[name] = None
        if isinstance(index, int) and 0 <= index < len(value_of_each):
            quantities[name] = value_of_each[index]
    return quantities


def _multiply_quantities(
    quantities: Mapping[str, float | None], names: list[str], factor: float = 1
) -> float | None:
    """Return the product of a factor and the quantities of these names; None if one is unknown."""
    product = factor
    for name in names:
        quantity = quantities.get(name)
        if quantity is None:
            return None
        product *= quantity
    return product

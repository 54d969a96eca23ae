"""Live auctions: the most users whose operations are answered in time, by a search.

Every probe is in the log.  Latency, rate and load are of the first one, which is the same in every
environment.
"""

import math
from typing import NamedTuple

from auction.chain import MIX, limit
from kit.applications import SAFE, Load, read_log, require_books, require_grown, summed
from kit.checks import number, require, require_equal
from kit.logs import Object, Point, Value, value

# The published tolerance of the mix, as a share of each operation's; chance allows for more.
MIX_TOLERANCE = 0.1
# The faults that the databases count.
FAULTS = dict.fromkeys(("adrift", "wrong"), 0)


class Probe(NamedTuple):
    """A number of users, whether they passed and had the published mix, and their load."""

    users: int
    passed: bool
    mixed: bool
    load: Load


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """The number of users, and the `load` of the first and of the highest probe that passed."""
    sites = int(parameters["systems"])
    log = read_log(lines, sites, MIX, MIX, "+", last=" found")
    probes = [read_probe(point, at, sites, parameters) for at, point in enumerate(log.points, 1)]
    [found] = log.objects["found"]
    require_books(log, {**FAULTS, **SAFE}, ["server"])
    require_equal("the bids of all probes", found["bids"], summed(log, "bids"))
    require_grown(log, "bids", found["bids"])
    check_search(probes, found, parameters)
    users = found["found"]
    values = [value("users", "users", users)] if users > 0 else []
    # The numbers of a probe with another mix are not those of these auctions.
    first = probes[:1] if probes[0].mixed else []
    best = [probe for probe in probes if probe.passed and probe.users == users][-1:]
    require(first or best, "no probe has the published mix")
    for name, chosen in (("first", first), ("highest", best)):
        for probe in chosen:
            values.append(value("rate", "operations/s", probe.load.totals["rate"], load=name))
            values.append(value("driver_share", "%", probe.load.driver_share, load=name))
    for probe in first:
        cycle = parameters["cycle_seconds"]
        frequent = probe.load.frequent(MIX, cycle).items()
        values += [
            value(metric, "ms", line[key], load="first", operation=name)
            for metric, key in (("latency", "mean_ms"), ("p99", "p99_ms"))
            for name, line in frequent
            if limit(name, cycle)
        ]
    return values


def read_probe(point: Point, at: int, sites: int, parameters: Object) -> Probe:
    """A probe, checked."""
    name, users = f"probe-{at}", int(number(point.head, "users"))
    wanted = {"users": users, "sites": sites, "auctions": math.ceil(users / 15)}
    wanted |= {key: parameters[f"{key}_seconds"] for key in ("cycle", "ramp")}
    load = Load(point, name, MIX, {**wanted, "seconds": parameters["seconds"]})
    passed = load.totals["passed"]
    require_equal(f"whether {name} passed", passed, not load.totals["failing"])
    # Each operation comes as often as its share says, but for where users begin and end.
    fault = load.off_mix(MIX, lambda due: MIX_TOLERANCE * due + 4 * math.sqrt(due) + 1)
    # Users of an overloaded system wait for it, and do less of what comes after: that probe fails.
    require(not passed or not fault, f"the mix of {name} is not the published one: {fault}")
    return Probe(users, passed, not fault, load)


def check_search(probes: list[Probe], found: Object, parameters: Object) -> None:
    """Check that the result of the search is that of its probes."""
    require_equal("the users of the first probe", probes[0].users, parameters["start_users"])
    failed = [probe.users for probe in probes if not probe.passed]
    require(failed, "all users pass for whom data are made: increase most_users")
    fails = min(failed)
    passing = [probe.users for probe in probes if probe.passed and probe.users < fails]
    result = (found["probes"], found["found"], found["fails"])
    require_equal("probes, pass and failure", result, (len(probes), max(passing, default=0), fails))
    # The lowest failure bounds the result: it must not be the load generator's.
    for probe in probes:
        if probe.users == fails and not probe.passed:
            probe.load.require_idle()

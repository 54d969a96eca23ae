"""Live auctions: the most users whose operations are answered in time, by a search.

Every probe of the search is in the log.  Latency is of the first one, whose users are as many in
every environment; rate and load are of the first and of the highest that passed.
"""

import math
from typing import NamedTuple

from auction.chain import MIX, limit
from kit.applications import SAFE, Load, read_log, require_books, require_grown, summed
from kit.checks import number, require, require_equal
from kit.logs import Object, Point, Value, value

# The published tolerance of the mix, relative to each operation's count; chance allows for more.
MIX_TOLERANCE = 0.1
# The faults that the databases count.
FAULTS = dict.fromkeys(("adrift", "wrong"), 0)


class Probe(NamedTuple):
    """A probe of the search: the load of one number of users.

    passed: whether operations were answered in time.  mixed: whether their shares were those of the
    published mix.
    """

    users: int
    passed: bool
    mixed: bool
    load: Load


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the number of users, and the values of the first and the highest passing probe.

    The object "found" at the log's end is the result that search.py prints.
    Raises BrokenLogError if no probe has the published mix, or if a check fails.
    """
    sites = int(parameters["systems"])
    log = read_log(lines, sites, MIX, MIX, "+", last=" found")
    probes = []
    for number_of_probe, point in enumerate(log.points, 1):
        probes.append(read_probe(point, number_of_probe, sites, parameters))
    [result] = log.objects["found"]
    require_books(log, {**FAULTS, **SAFE}, ["server"])
    require_equal("the bids of all probes", result["bids"], summed(log, "bids"))
    require_grown(log, "bids", result["bids"])
    check_search(probes, result, parameters)
    users = result["found"]
    values = [value("users", "users", users)] if users > 0 else []
    # A probe with another mix says nothing about these auctions.
    first = probes[:1] if probes[0].mixed else []
    best = [probe for probe in probes if probe.passed and probe.users == users][-1:]
    require(first or best, "no probe has the published mix")
    for name, chosen in (("first", first), ("highest", best)):
        for probe in chosen:
            values.append(value("rate", "operations/s", probe.load.totals["rate"], load=name))
            values.append(value("driver_share", "%", probe.load.driver_share, load=name))
    for probe in first:
        values += latencies(probe.load, parameters["cycle_seconds"])
    return values


def latencies(load: Load, cycle: float) -> list[Value]:
    """Return the mean and 99th percentile (ms) of the latency of each operation with a time limit.

    cycle: mean seconds between the operations of a user, on which the limits depend.
    Operations that are too rare for a latency are left out.
    """
    limited = [item for item in load.frequent(MIX, cycle).items() if limit(item[0], cycle)]
    values = []
    for metric, key in (("latency", "mean_ms"), ("p99", "p99_ms")):
        for name, line in limited:
            values.append(value(metric, "ms", line[key], load="first", operation=name))
    return values


def read_probe(point: Point, number_of_probe: int, sites: int, parameters: Object) -> Probe:
    """Read and check a probe of the search.

    number_of_probe: from 1.  sites: how many the users load.
    Raises BrokenLogError if the settings are others, or if a passing probe has another mix.
    """
    name, users = f"probe-{number_of_probe}", int(number(point.head, "users"))
    wanted = {"users": users, "sites": sites, "auctions": math.ceil(users / 15)}
    wanted |= {key: parameters[f"{key}_seconds"] for key in ("cycle", "ramp")}
    load = Load(point, name, MIX, {**wanted, "seconds": parameters["seconds"]})
    passed = load.totals["passed"]
    require_equal(f"whether {name} passed", passed, not load.totals["failing"])
    # Counts vary by chance, and by where in the chain users begin and end.
    fault = load.off_mix(MIX, lambda count: MIX_TOLERANCE * count + 4 * math.sqrt(count) + 1)
    # Users of an overloaded system wait, and come to fewer of the later operations: it fails.
    require(not passed or not fault, f"the mix of {name} is not the published one: {fault}")
    return Probe(users, passed, not fault, load)


def check_search(probes: list[Probe], result: Object, parameters: Object) -> None:
    """Raise BrokenLogError unless the result of the search follows from its probes.

    result: the object "found": the number of probes, the highest number of users that passed (0:
    none), and the lowest that failed.
    """
    require_equal("the users of the first probe", probes[0].users, parameters["start_users"])
    failed = [probe.users for probe in probes if not probe.passed]
    require(failed, "the probe with most_users passes: increase most_users")
    fails = min(failed)
    passing = [probe.users for probe in probes if probe.passed and probe.users < fails]
    printed = (result["probes"], result["found"], result["fails"])
    expected = (len(probes), max(passing, default=0), fails)
    require_equal("probes, pass and failure", printed, expected)
    # The lowest failure bounds the result: the load generator must not be its cause.
    for probe in probes:
        if probe.users == fails and not probe.passed:
            probe.load.require_idle()

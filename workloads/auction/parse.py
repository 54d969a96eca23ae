"""Live auctions: the most users whose operations are answered in time, by a search.

Every probe of the search is in the log.  Latency is of the first one, whose users are as many in
every environment; rate and load are of the first and of the highest that passed.
"""

import math
from typing import NamedTuple

from auction.chain import MIX, USERS_OF_AN_AUCTION, find_limit
from kit.applications import (
    DURABLE_SETTINGS,
    LoadResults,
    read_log,
    require_books,
    require_growth,
    sum_events,
)
from kit.checks import get_number, require, require_equal
from kit.logs import Object, Point, Value, build_value

# The published tolerance of the mix, relative to each operation's count.
MIX_TOLERANCE = 0.1
# Counts also vary by chance, as Poisson counts do: this many standard deviations are accepted.
MAX_DEVIATIONS = 4
# Counts of faults in the books of the databases, which must be 0.
FAULTS = dict.fromkeys(("adrift", "wrong"), 0)


class Probe(NamedTuple):
    """A probe of the search, which is the load of one number of users.

    passed: whether operations were answered in time.
    has_published_mix: whether the shares of the operations agree with the published mix.
    """

    users: int
    passed: bool
    has_published_mix: bool
    results: LoadResults


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the largest number of users, and values of the first and the highest passing probe.

    The object "found" at the log's end is the result that search.py prints.  workload.yaml declares
    the metrics, and selects the values of the two probes by the factor `load`: first or highest.
    Raises BrokenLogError if no probe has the published mix, or if a check fails.
    """
    sites = int(parameters["systems"])
    log = read_log(lines, sites, MIX, MIX, last_key="found")
    probes = []
    for probe_number, point in enumerate(log.points, 1):
        probes.append(read_probe(point, probe_number, sites, parameters))
    [result] = log.objects["found"]
    require_books(log, {**FAULTS, **DURABLE_SETTINGS}, ["server"])
    require_equal("the bids of all probes", result["bids"], sum_events(log, "bids"))
    require_growth(log, "bids", result["bids"])
    check_search(probes, result, parameters)
    users = result["found"]
    values = [build_value("users", "users", users)] if users > 0 else []
    # A probe with another mix has no values: its operations are not those of the published load.
    # If several passing probes have this number of users, the last one counts.
    first = probes[0] if probes[0].has_published_mix else None
    highest = None
    for probe in probes:
        if probe.passed and probe.users == users:
            highest = probe
    require(first or highest, "no probe has the published mix")
    for name, reported_probe in (("first", first), ("highest", highest)):
        if reported_probe is not None:
            rate = reported_probe.results.totals["rate"]
            share = reported_probe.results.driver_share
            values.append(build_value("rate", "operations/s", rate, load=name))
            values.append(build_value("driver_share", "%", share, load=name))
    if first is not None:
        values += list_latencies(first.results, parameters["cycle_seconds"])
    return values


def list_latencies(results: LoadResults, cycle: float) -> list[Value]:
    """Return the mean and 99th percentile (ms) of the latency of each operation with a time limit.

    results: the results of the first probe.
    cycle: mean seconds between the operations of a user; the time limits depend on it.
    Operations that are too rare for a latency are left out.
    """
    operations = {}
    for name, line in results.select_frequent_operations(MIX, cycle).items():
        if find_limit(name, cycle):
            operations[name] = line
    values = []
    for metric, key in (("latency", "mean_ms"), ("p99", "p99_ms")):
        for name, line in operations.items():
            values.append(build_value(metric, "ms", line[key], load="first", operation=name))
    return values


def read_probe(point: Point, probe_number: int, sites: int, parameters: Object) -> Probe:
    """Check a point of the log, and return it as a probe of the search.

    point: the point, which measure_point of kit/load/driver.py prints.
    probe_number: the number of the probe, from 1.
    sites: number of sites that the users load.
    parameters: the cell's parameters.
    Raises BrokenLogError if the settings are not those of the parameters, or if a passing probe has
    another mix than the published one.
    """
    name = f"probe-{probe_number}"
    users = int(get_number(point.head, "users"))
    settings = {"users": users, "sites": sites, "auctions": math.ceil(users / USERS_OF_AN_AUCTION)}
    settings |= {key: parameters[f"{key}_seconds"] for key in ("cycle", "ramp")}
    settings["seconds"] = parameters["seconds"]
    results = LoadResults(point, name, MIX, settings)
    passed = results.totals["passed"]
    require_equal(f"whether {name} passed", passed, not results.totals["failing"])

    def compute_tolerance(count: float) -> float:
        """Return the largest accepted difference from an expected count."""
        # One is added, since users may begin and end anywhere in the chain of operations.
        return MIX_TOLERANCE * count + MAX_DEVIATIONS * math.sqrt(count) + 1

    mix_fault = results.find_mix_fault(MIX, compute_tolerance)
    # Users of an overloaded system reach fewer of the later operations.  So a failing probe may
    # have another mix, and a passing probe must not.
    require(not passed or not mix_fault, f"the mix of {name} is not the published one: {mix_fault}")
    has_published_mix = not mix_fault
    return Probe(users, passed, has_published_mix, results)


def check_search(probes: list[Probe], result: Object, parameters: Object) -> None:
    """Raise BrokenLogError unless the result of the search follows from its probes.

    probes: in the order of the log.
    result: the object "found" with the number of probes, the highest number of users that passed
    (0 if none passed), and the lowest number that failed.
    The class Search of search.py chooses the probes and prints the result: both must agree.
    """
    require_equal("the users of the first probe", probes[0].users, parameters["start_users"])
    failures = [probe.users for probe in probes if not probe.passed]
    require(failures, "the probe with most_users passes: increase most_users")
    lowest_failure = min(failures)
    passes = [probe.users for probe in probes if probe.passed and probe.users < lowest_failure]
    require_equal("the number of probes", result["probes"], len(probes))
    require_equal("the highest pass", result["found"], max(passes, default=0))
    require_equal("the lowest failure", result["fails"], lowest_failure)
    # The lowest failure bounds the result: the load generator must not be its cause.
    for probe in probes:
        if probe.users == lowest_failure and not probe.passed:
            probe.results.require_idle_generator()

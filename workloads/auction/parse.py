"""Live auctions: the most users whose operations are answered in time, found by a search; every probe is in
the log; and latencies, rate and load of the first probe, which is the same everywhere."""

import math
from typing import NamedTuple

from auction.chain import MIX, limit
from kit.applications import frequent, off_mix, read_books, read_load, require_books, require_grown, require_idle
from kit.checks import number, numbers, require, require_asked, require_equal
from kit.logs import Object, Point, Value, read, value

# The published tolerance of the mix, as a share of each operation's; with few operations chance allows for more.
MIX_TOLERANCE = 0.1
# What must be 0 in the books.
BROKEN = ("adrift", "wrong", "unsold", "astray", "falling", "stolen")


class Probe(NamedTuple):
    """A number of users that was tried: whether it passed, whether its mix was the published one, what was printed."""

    users: int
    passed: bool
    mixed: bool
    operations: dict[str, Object]
    drove: Object


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """The number of users, and the `load` of the first probe and of the highest that passed."""
    sites, cycle = int(parameters["systems"]), parameters["cycle_seconds"]
    each = f" point( operation){{{len(MIX)}}} drove end"
    log = read(lines, f"( checked){{{sites}}}( opened){{{sites}}}({each})+( closed){{{sites}}} found")
    probes = [read_probe(point, at, sites, parameters) for at, point in enumerate(log.points, 1)]
    [found] = log.objects["found"]
    check_search(probes, found, parameters)
    check_books(log.objects, probes, found, parameters)
    users, fails = found["found"], found["fails"]
    values = []
    if users > 0:
        values += [value("users", "users", users), value("bracket", "%", 100 * (fails - users) / users)]
    # The numbers of a probe with another mix are not those of these auctions.
    first = probes[0] if probes[0].mixed else None
    best = [probe for probe in probes if probe.passed and probe.users == users]
    require(first or best, "no probe has the published mix")
    for load, probe in (("first", first), ("highest", best[-1] if best else None)):
        if probe:
            values.append(value("rate", "operations/s", probe.drove["rate"], load=load))
            values.append(value("driver_share", "%", 100 * number(probe.drove, "share"), load=load))
    if first:
        due = first.users * sites * parameters["seconds"] / cycle
        often = {name: one for name, one in frequent(first.operations, MIX, due).items() if limit(name, cycle)}
        for metric, key in (("latency", "mean_ms"), ("p99", "p99_ms")):
            values += [value(metric, "ms", one[key], load="first", operation=name) for name, one in often.items()]
    return values


def read_probe(point: Point, at: int, sites: int, parameters: Object) -> Probe:
    """A probe, checked."""
    head, name = point.head, f"probe-{at}"
    users, cycle, seconds = int(number(head, "users")), parameters["cycle_seconds"], parameters["seconds"]
    wanted = {"sites": sites, "auctions": math.ceil(users / 15), "cycle": cycle, "seconds": seconds}
    wanted["ramp"] = parameters["ramp_seconds"]
    require_asked(head, wanted, *wanted)
    operations, counts, drove = read_load(point, name, MIX, users * sites, seconds)
    passed, failing = drove["passed"], drove["failing"]
    require_equal(f"whether {name} passed", passed, not failing)
    # Each operation comes as often as its share says, but for where users begin and end.
    fault = off_mix(counts, MIX, lambda expected: MIX_TOLERANCE * expected + 4 * math.sqrt(expected) + 1)
    # Users of an overloaded system wait for it, and do less of what comes after; such a probe fails.
    require(not passed or not fault, f"the mix of {name} is not the published one: {fault}")
    return Probe(users, passed, not fault, operations, drove)


def check_search(probes: list[Probe], found: Object, parameters: Object) -> None:
    """Check that the result of the search is that of its probes."""
    require_equal("the users of the first probe", probes[0].users, parameters["start_users"])
    failed = [probe for probe in probes if not probe.passed]
    require(failed, "as many users pass as there are data for: let there be more (most_users)")
    lowest = min(failed, key=lambda probe: probe.users)
    passed = max((probe.users for probe in probes if probe.passed and probe.users < lowest.users), default=0)
    result = (found["probes"], found["found"], found["fails"])
    require_equal("probes, pass and failure", result, (len(probes), passed, lowest.users))
    # The lowest failure bounds the result: it must be the system's, and not that of the load generator.
    for probe in failed:
        if probe.users == lowest.users:
            require_idle(probe.drove, probe.users)


def check_books(objects: dict[str, list[Object]], probes: list[Probe], found: Object, asked: Object) -> None:
    """Check the sites' books before and after the probes against what the load generators did."""
    opened, closed = read_books(objects, MIX)
    require_books(opened + closed, BROKEN)
    users = asked["most_users"]
    rows = {"users": users, "data_seed": asked["data_seed"], "people": 2 * users, "auctions": 2 * math.ceil(users / 15)}
    for book in opened + closed:
        require_asked(book, rows, *rows)
        require(number(book, "accepted") <= number(book, "bids"), "more bids were accepted than placed")
    bids = sum(numbers([probe.drove for probe in probes], "bids", zero=True))
    require_equal("the bids of all probes", found["bids"], bids)
    require_grown(opened, closed, "bids", bids)

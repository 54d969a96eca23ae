"""Live auctions: the most users whose operations are answered in time, found by a search; every probe is in
the log; and latencies, rate and load of the first probe, which is the same everywhere."""

import math
from typing import NamedTuple

from auction.chain import MIX, limit
from auction.search import Search, failing
from kit.applications import count_operations, require_books, require_drove, require_idle
from kit.checks import number, numbers, require, require_asked, require_close, require_counted, require_equal
from kit.logs import Object, Point, Value, read, value

# With fewer operations of a kind their latency is not reported.
LEAST = 30
# The published tolerance of the mix, as a share of each operation's; with few operations chance allows for more.
MIX_TOLERANCE = 0.1
# What must be 0 in the books.
BROKEN = ("adrift", "wrong", "unsold", "astray", "falling", "stolen")


class Probe(NamedTuple):
    """A number of users that was tried: whether it passed, whether its mix was the published one, what was printed."""

    users: int
    passed: bool
    mixed: bool
    operations: list[Object]
    drove: Object


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """The number of users, and the `load` of the first probe and of the highest that passed."""
    sites = int(parameters["systems"])
    each = f" point( operation){{{len(MIX)}}} drove end"
    log = read(lines, f"( checked){{{sites}}}( opened){{{sites}}}({each})+( closed){{{sites}}} found")
    require_counted(log.objects["checked"], "checked", 0)
    for checked in log.objects["checked"]:
        require_equal("the checked operations", checked["operations"], list(MIX))
    probes = [read_probe(point, at, sites, parameters) for at, point in enumerate(log.points, 1)]
    [found] = log.objects["found"]
    check_search(probes, found, parameters)
    check_books(log.objects["opened"], log.objects["closed"], probes, found, parameters)
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
    return values + (latencies(first, parameters["cycle_seconds"]) if first else [])


def latencies(probe: Probe, cycle: float) -> list[Value]:
    """Mean and 99th percentile of the operations that have a limit and were done often enough."""
    often = [each for each in probe.operations if each["count"] >= LEAST and limit(each["operation"], cycle)]
    return [
        value(metric, "ms", each[key], load="first", operation=each["operation"])
        for metric, key in (("latency", "mean_ms"), ("p99", "p99_ms"))
        for each in often
    ]


def read_probe(point: Point, at: int, sites: int, parameters: Object) -> Probe:
    """A probe, checked."""
    head, (*operations, drove), name = point.head, point.objects, f"probe-{at}"
    users, cycle, seconds = int(number(head, "users")), parameters["cycle_seconds"], parameters["seconds"]
    require_equal("the probe", (head["point"], drove["drove"]), (name, name))
    wanted = {"sites": sites, "auctions": math.ceil(users / 15), "cycle": cycle, "seconds": seconds}
    wanted["ramp"] = parameters["ramp_seconds"]
    require_asked(head, wanted, *wanted)
    counts = count_operations(operations, MIX, name)
    late = {each["operation"]: count_late(each, cycle) for each in operations if limit(each["operation"], cycle)}
    failed = failing(counts, late, number(drove, "late_seconds", zero=True), cycle)
    require_equal(f"what failed in {name}", (drove["failing"], drove["passed"]), (failed, not failed))
    # Users of an overloaded system wait for it, and do less of what comes after; such a probe fails.
    fault = off_mix(counts)
    require(failed or not fault, f"the mix of {name} is not the published one: {fault}")
    require_drove(drove, sum(counts.values()), users * sites, seconds)
    return Probe(users, not failed, not fault, operations, drove)


def count_late(operation: Object, cycle: float) -> int:
    """How many answers came too late of an operation that has a limit."""
    count = operation["count"]
    if count == 0:
        return 0
    within, name = limit(operation["operation"], cycle), operation["operation"]
    require_close(f"the limit of {name}", number(operation, "within_seconds"), within or 0)
    late = int(number(operation, "late", zero=True))
    require(late <= count, f"more of {name} were late than there are")
    return late


def off_mix(counts: dict[str, int]) -> str:
    """In what the mix of the operations differs from the published one; "" if it does not."""
    for name, share in MIX.items():
        expected = sum(counts.values()) * share / sum(MIX.values())
        # Each operation comes as often as its share says, but for where users begin and end.
        most = MIX_TOLERANCE * expected + 4 * math.sqrt(expected) + 1
        if abs(counts[name] - expected) > most:
            return f"{counts[name]} were {name}, and not {expected:.3g} within {most:.2g}"
    return ""


def check_search(probes: list[Probe], found: Object, parameters: Object) -> None:
    """Check that the probes are those of the search, and that its result is theirs."""
    search = Search(*(parameters[key] for key in ("start_users", "most_users", "resolution", "confirmations")))
    for probe in probes:
        require_equal("the users that the search tries", probe.users, search.next())
        search.note(probe.users, probe.passed)
    require(search.next() is None, "the search is not at its end")
    require(search.fails is not None, "as many users pass as there are data for: let there be more (most_users)")
    result = (found["probes"], found["found"], found["fails"])
    require_equal("probes, pass and failure", result, (len(probes), search.found, search.fails))
    # The lowest failure bounds the result: it must be the system's, and not that of the load generator.
    for probe in probes:
        if not probe.passed and probe.users == search.fails:
            require_idle(number(probe.drove, "busiest_share"), probe.users)


def check_books(opened: list[Object], closed: list[Object], probes: list[Probe], found: Object, asked: Object) -> None:
    """Check the sites' books before and after the probes against what the load generators did."""
    require_books(opened, closed, BROKEN)
    users = asked["most_users"]
    auctions = math.ceil(users / 15)
    rows = {"users": users, "data_seed": asked["data_seed"], "people": 2 * users, "auctions": 2 * auctions}
    for book in opened + closed:
        require_asked(book, rows, *rows)
        require(number(book, "accepted") <= number(book, "bids"), "more bids were accepted than placed")
    # What was loaded, and the one that the check of every operation added before the books were opened.
    for book in opened:
        require_equal("the items", book["items"], 20 * auctions + 1)
    bids = sum(numbers([probe.drove for probe in probes], "bids", zero=True))
    require_equal("the bids of all probes", found["bids"], bids)
    require_equal("new bids in the books", sum(numbers(closed, "bids")) - sum(numbers(opened, "bids")), bids)

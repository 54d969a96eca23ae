"""A social-events application under users who walk CloudStone's matrix: latency of each operation, the share of the
thresholds that it uses up, rate, and what the processors of host and load generator did."""

import math

from cloudstone.chain import MIX, OPERATIONS, THRESHOLDS
from kit.applications import frequent, off_mix, read_books, read_load, require_grown, require_idle
from kit.checks import number, require, require_asked, require_equal
from kit.logs import Object, Point, Value, processors, read, value

# The load generator is the bottleneck where operations begin later than at the time drawn for them, by this share of
# the mean cycle.
LATEST = 0.2
# What adds a row to a table.
ADDED = {"person": "AddPerson", "socialevent": "AddEvent"}


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """The values of each number of `users`; latencies by `operation`, and `instances` if there are several."""
    users = parameters["users"]
    instances = len(parameters["web_ports"]) * int(parameters["systems"])
    each = f" observed point( operation){{{len(MIX)}}} drove end observed"
    before, after = f"( checked){{{instances}}}( opened){{{instances}}}", f"( closed){{{instances}}}"
    log = read(lines, f"{before}({each}){{{len(users)}}}{after}")
    check_rows(log.objects)
    found = []
    for i, of in enumerate(users):
        at = {"users": of, "instances": instances if instances > 1 else None}
        found += measured(log.points[i], of, instances, parameters, at)
        _, busy = processors(log.objects["observed"][2 * i : 2 * i + 2], parameters["seconds"])
        found.insert(-1, value("cpu", "%", 100 * busy, **at))
    return found


def measured(point: Point, users: int, instances: int, parameters: Object, at: Object) -> list[Value]:
    """The values of one point, all but the host's."""
    asked = {**parameters, "users": users, "instances": instances}
    require_asked(point.head, asked, "users", "instances", "cycle_seconds")
    seconds, cycle = parameters["seconds"], parameters["cycle_seconds"]
    done, counts, drove = read_load(point, f"users-{users}", OPERATIONS, users * instances, seconds)
    points, whole = parameters["mix_points"], sum(counts.values())
    # In percentage points, with 10,000 operations; with fewer, chance allows for more.
    fault = off_mix(counts, MIX, lambda _: points * whole / 100 * max(1, math.sqrt(10000 / whole)))
    require(not fault, f"the mix is not the published one: {fault}")
    require_idle(drove, users)
    late = number(drove, "late_seconds", zero=True)
    reason = f"operations began {1000 * late:.3g} ms late in the mean"
    require(late <= LATEST * cycle, f"the load generator is the bottleneck: {reason}")
    often = frequent(done, MIX, users * instances * seconds / cycle)
    require(often, f"no operation is done often enough with {users} users")
    strain = max(each["mean_ms"] / THRESHOLDS[name] for name, each in often.items())
    return [
        *(value("latency", "ms", each["mean_ms"], operation=name, **at) for name, each in often.items()),
        *(value("p90", "ms", each["p90_ms"], operation=name, **at) for name, each in often.items()),
        value("strain", "%", 100 * strain, **at),
        value("rate", "operations/s", drove["rate"], **at),
        value("driver_share", "%", 100 * number(drove, "share"), **at),
    ]


def check_rows(objects: dict[str, list[Object]]) -> None:
    """Check the tables before and after: a person or an event that was added is there; nothing else is."""
    opened, closed = read_books(objects, OPERATIONS)
    for before, after in zip(opened, closed, strict=True):
        require_equal("the rows that break a rule", (before["broken"], after["broken"]), (0, 0))
        for table in ("person_person", "comments_rating"):
            require_equal(f"the rows of {table}", after[table], number(before, table))
    for table, operation in ADDED.items():
        require_grown(opened, closed, table, sum(total["added"][operation] for total in objects["drove"]))

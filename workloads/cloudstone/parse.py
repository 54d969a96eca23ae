"""A social-events application under users who walk CloudStone's matrix: latency of each operation, the share of the
thresholds that it uses up, rate, and what the processors of host and load generator did."""

import math

from cloudstone.chain import MIX, OPERATIONS, THRESHOLDS
from kit.applications import off_mix, read_load, require_idle
from kit.checks import number, numbers, require, require_asked, require_counted, require_equal
from kit.logs import Object, Point, Value, processors, read, value

# Where fewer operations of a kind are due in a lap their latency is not reported: the same ones in every lap.
LEAST = 10
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
    before = "".join(f"( {kind}){{{instances}}}" for kind in ("loaded", "checked", "opened"))
    log = read(lines, f"{before}({each}){{{len(users)}}}( left){{{instances}}}")
    check_rows(log.objects, parameters)
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
    due = users * instances * seconds / cycle
    often = {name: each for name, each in done.items() if each["count"] and MIX[name] * due >= 100 * LEAST}
    require(often, f"no operation is due {LEAST} times with {users} users")
    strain = max(each["mean_ms"] / THRESHOLDS[name] for name, each in often.items())
    return [
        *(value("latency", "ms", each["mean_ms"], operation=name, **at) for name, each in often.items()),
        *(value("p90", "ms", each["p90_ms"], operation=name, **at) for name, each in often.items()),
        value("strain", "%", 100 * strain, **at),
        value("rate", "operations/s", drove["rate"], **at),
        value("driver_share", "%", 100 * number(drove, "share"), **at),
    ]


def check_rows(objects: dict[str, list[Object]], parameters: Object) -> None:
    """Check the tables before and after, and that every operation was checked."""
    users = max(parameters["loaded_users"], 25)
    require(max(parameters["users"]) <= users, "more users than data were made for")
    tags = round(5000 * math.tanh(users / 20000))
    rows = {"person": 100 * users, "socialeventtag": tags, "socialevent": 3 * tags, "address": 100 * users + 3 * tags}
    for kind in ("loaded", "checked", "opened", "left"):
        require_counted(objects[kind], kind, 0)
    kinds = (objects[kind] for kind in ("loaded", "checked", "opened", "left"))
    for loaded, checked, opened, left in zip(*kinds, strict=True):
        require_asked(loaded, rows, *rows)
        require_equal("the checked operations", checked["operations"], OPERATIONS)
        require_equal("the rows that break a rule", (loaded["broken"], opened["broken"], left["broken"]), (0, 0, 0))
        for table in ("person_person", "comments_rating"):
            require_equal(f"the rows of {table}", left[table], number(loaded, table))
    # A person or an event that was added is there; nothing else is.
    for table, operation in ADDED.items():
        added = sum(numbers(objects["left"], table)) - sum(numbers(objects["opened"], table))
        done = sum(total["added"][operation] for total in objects["drove"])
        require_equal(f"the new rows of {table}", added, done)

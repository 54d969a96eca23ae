"""Social events: latency of each operation and its share of its threshold, rate, and CPU use."""

import math

from cloudstone.chain import MIX, THRESHOLDS
from kit.applications import Load, read_log, require_books, require_grown, summed
from kit.checks import number, require
from kit.logs import Object, Value, check_cpu_usage, value

# The load generator is the bottleneck if operations begin on average later than drawn by this share
# of the mean cycle.
LATEST = 0.2
# The operations that add a row to a table.
ADDED = {"person": "AddPerson", "socialevent": "AddEvent"}


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the values of each number of `users`.

    Latencies have the factor `operation`; if there are several sites, all values have `instances`.
    Each point is between two observations of the CPUs, in the order of the log.
    """
    instances = len(parameters["web_ports"]) * int(parameters["systems"])
    points = f"{{{len(parameters['users'])}}}"
    log = read_log(lines, instances, MIX, MIX, points, observed=" observed")
    require_books(log, {"broken": 0})
    for table, added in {**ADDED, "person_person": "", "comments_rating": ""}.items():
        require_grown(log, table, summed(log, added))
    values = []
    for i, users in enumerate(parameters["users"]):
        seconds, cycle = parameters["seconds"], parameters["cycle_seconds"]
        wanted = {"users": users, "sites": instances, "cycle": cycle, "seconds": seconds}
        load = Load(log.points[i], f"users-{users}", MIX, wanted)
        _, busy = check_cpu_usage(log.objects["observed"][2 * i : 2 * i + 2], seconds)
        factors = {"users": users, "instances": instances if instances > 1 else None}
        values += measured(load, cycle, parameters["mix_points"], 100 * busy, factors)
    return values


def measured(load: Load, cycle: float, points: float, busy: float, factors: Object) -> list[Value]:
    """Check the mix and the load generator at a point, and return the values.

    cycle: mean seconds between the operations of a user.
    points: the tolerance of the mix, in percentage points.
    busy: CPU usage (%) of the host.  factors: of all values.
    Raises BrokenLogError if the mix is another one, or if the load generator was the bottleneck.
    """
    # The tolerance is for 10,000 operations; with fewer, chance allows for more.
    most = points * load.total / 100 * max(1, math.sqrt(10000 / load.total))
    fault = load.off_mix(MIX, lambda _: most)
    require(not fault, f"the mix is not the published one: {fault}")
    load.require_idle()
    late = number(load.totals, "late_seconds", zero=True)
    reason = f"operations began {1000 * late:.3g} ms late in the mean"
    require(late <= LATEST * cycle, f"the load generator is the bottleneck: {reason}")
    frequent = load.frequent(MIX, cycle)
    require(frequent, f"no operation is done often enough with {load.users} users")
    strain = max(line["mean_ms"] / THRESHOLDS[name] for name, line in frequent.items())
    values = []
    for metric, key in (("latency", "mean_ms"), ("p90", "p90_ms")):
        for name, line in frequent.items():
            values.append(value(metric, "ms", line[key], operation=name, **factors))
    return [
        *values,
        value("strain", "%", 100 * strain, **factors),
        value("rate", "operations/s", load.totals["rate"], **factors),
        value("cpu", "%", busy, **factors),
        value("driver_share", "%", load.driver_share, **factors),
    ]

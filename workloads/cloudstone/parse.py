"""Social events: latency of each operation and its share of its threshold, rate, and CPU use."""

import math

from cloudstone.chain import MIX, THRESHOLDS
from kit.applications import LoadResults, read_log, require_books, require_growth, sum_events
from kit.checks import get_number, require
from kit.logs import Object, Value, build_value, read_cpu_usage

# The load generator counts as the bottleneck if operations begin on average later than they should,
# by more than this share of the mean cycle.
MAX_DELAY = 0.2
# The tolerance of the mix holds for this number of operations; with fewer it is wider.
OPERATIONS_OF_TOLERANCE = 10_000
# The tables that users add rows to, each with the operation that adds one; "" if none does.
ADDING_OPERATIONS = {
    "person": "AddPerson",
    "socialevent": "AddEvent",
    "person_person": "",
    "comments_rating": "",
}


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the values of each number of `users`.

    Latencies have the factor `operation`.  If there are several sites, all values have the factor
    `instances`.  workload.yaml declares the metrics, and has Strata observe the host's CPUs before
    and after each point.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    instances = len(parameters["web_ports"]) * int(parameters["systems"])
    point_count = len(parameters["users"])
    log = read_log(lines, instances, MIX, MIX, point_count, observation_key="observed")
    require_books(log, {"broken": 0})
    for table, operation in ADDING_OPERATIONS.items():
        require_growth(log, table, sum_events(log, operation))
    seconds, cycle = parameters["seconds"], parameters["cycle_seconds"]
    values = []
    for i, users in enumerate(parameters["users"]):
        settings = {"users": users, "sites": instances, "cycle": cycle, "seconds": seconds}
        results = LoadResults(log.points[i], f"users-{users}", MIX, settings)
        # Each point has two observations of the CPUs, before and after it.
        observations = log.objects["observed"][2 * i : 2 * i + 2]
        _, cpu_usage = read_cpu_usage(observations, seconds)
        factors = {"users": users, "instances": instances if instances > 1 else None}
        values += list_point_values(results, cycle, parameters["mix_points"], factors)
        values.append(build_value("cpu", "%", 100 * cpu_usage, **factors))
        values.append(build_value("driver_share", "%", results.driver_share, **factors))
    return values


def list_point_values(
    results: LoadResults, cycle: float, mix_points: float, factors: Object
) -> list[Value]:
    """Check the mix and the load generator at a point, and return its values without CPU use.

    The values are latencies (ms), the rate (operations/s) and the strain (%): the largest mean
    latency as a share of the operation's published threshold.

    results: the results of the point.
    cycle: mean seconds between the operations of a user.
    mix_points: the tolerance of the mix, in percentage points.
    factors: the factors of all values.
    Raises BrokenLogError if the mix is another one, or if the load generator was the bottleneck.
    """
    # Counts of fewer operations vary more by chance.
    chance_factor = max(1, math.sqrt(OPERATIONS_OF_TOLERANCE / results.total))
    max_difference = mix_points * results.total / 100 * chance_factor
    # The tolerance is in points of the whole, and so equal for frequent and for rare operations.
    mix_fault = results.find_mix_fault(MIX, lambda _expected_count: max_difference)
    require(not mix_fault, f"the mix is not the published one: {mix_fault}")
    results.require_idle_generator()
    delay = get_number(results.totals, "late_seconds", allow_zero=True)
    reason = f"operations began {1000 * delay:.3g} ms late in the mean"
    is_in_time = delay <= MAX_DELAY * cycle
    require(is_in_time, f"the load generator is the bottleneck: {reason}")
    operations = results.select_frequent_operations(MIX, cycle)
    require(operations, f"no operation is done often enough with {results.users} users")
    values = []
    for metric, key in (("latency", "mean_ms"), ("p90", "p90_ms")):
        for name, line in operations.items():
            values.append(build_value(metric, "ms", line[key], operation=name, **factors))
    strain = max(line["mean_ms"] / THRESHOLDS[name] for name, line in operations.items())
    values.append(build_value("strain", "%", 100 * strain, **factors))
    values.append(build_value("rate", "operations/s", results.totals["rate"], **factors))
    return values

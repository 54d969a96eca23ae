"""CPU quota: how long requests took from when they were due, by load and neighbour."""

import math

from kit.checks import number, require, require_equal, require_parameters
from kit.logs import Object, Point, Value, read, value

# With fewer requests a 99th percentile is little more than the longest one.
LEAST_OF_P99 = 100
# The share of the processors' time that a busy neighbour uses at least: the system has the rest.
LEAST_OF_NEIGHBOUR = 0.2
# What is added to a count of throttled periods, so that ratios exist where there were none.
HALF_PERIOD = 0.5
# The share of its CPU time that a request takes at least: a sandbox's clock is coarse.
LEAST_OF_REQUEST = 0.6


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the percentiles of each load, alone and beside a neighbour, and throttled periods.

    Throttled periods are left out where the host does not count them.
    """
    alone, busy = parameters["loads"], parameters["busy"]
    order = f"( observed point latencies_ms end observed){{{len(alone)}}}"
    order += f"( observed point latencies_ms end neighbour observed){{{len(busy)}}}"
    log = read(lines, order)
    beside: list[str | None] = [*([None] * len(alone)), *(["busy"] * len(busy))]
    observed = log.objects["observed"]
    values = []
    for at, (point, load) in enumerate(zip(log.points, [*alone, *busy], strict=True)):
        values += measured(point, load, beside[at], observed[2 * at : 2 * at + 2], parameters)
    for usage in log.objects.get("neighbour", []):
        require_equal("the neighbour", usage["neighbour"], "busy")
        possible = number(usage, "processors") * number(usage, "seconds")
        share = number(usage, "cpu_seconds") / possible
        reason = f"the neighbour used {share:.0%} of the processors' time"
        require(LEAST_OF_NEIGHBOUR <= share <= 1.05, reason)
    return values


def measured(
    point: Point, load: object, neighbour: str | None, observed: list[Object], parameters: Object
) -> list[Value]:
    """Check one point, and return its values.

    observed: what the system's control group had used before and after.
    """
    single = load == "single"
    head, [content] = point.head, point.objects
    require_equal("the load", head["load"], str(load))
    count = parameters["single_requests" if single else "requests"]
    require_equal("the number of requests", head["requests"], count)
    require_parameters(head, parameters, "request_ms", "share", "workers")
    latencies = content["latencies_ms"]
    require_equal("the number of latencies", len(latencies), count)
    shortest = min(number({"latency": latency}, "latency") for latency in latencies)
    require(
        shortest >= LEAST_OF_REQUEST * head["request_ms"], "a request took less than its CPU time"
    )
    check_rate(number(content, "due_seconds"), count, single, head)
    at = {"load": load, "neighbour": neighbour}
    values = [value("p50", "ms", percentile(latencies, 0.5), **at)]
    if count >= LEAST_OF_P99:
        values.append(value("p99", "ms", percentile(latencies, 0.99), **at))
    before, after = (usage["throttled"] for usage in observed)
    if before is not None and after is not None:
        require(after >= before, "the periods with the quota used up became fewer")
        periods = after - before + HALF_PERIOD
        values.append(value("throttled", "periods/request", periods / count, **at))
    return values


def check_rate(due: float, count: int, single: bool, head: Object) -> None:
    """Raise BrokenLogError unless the last request was due about when the rate says.

    due: seconds from the start until then.  The sum of exponential gaps scatters by their mean
    times the root of their number, of which six are accepted.
    """
    gap, scatter = 0.15, 0.03
    if not single:
        gap = scatter = head["request_ms"] / 1e3 / (float(head["load"]) / 100 * head["share"])
    expected = 0.1 + gap * (count - 1)
    near = abs(due - expected) <= 6 * scatter * math.sqrt(count)
    require(near, f"the last request was due after {due} s, at this rate after {expected:.3f} s")


def percentile(latencies: list[float], share: float) -> float:
    """Return the latency that at least a share of the requests did not exceed (nearest rank)."""
    return sorted(latencies)[math.ceil(share * len(latencies)) - 1]

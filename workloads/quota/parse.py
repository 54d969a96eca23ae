"""CPU quota: latency of requests from the time when they were due, by load and neighbour."""

import math

from kit.checks import get_number, require, require_equal, require_parameters
from kit.logs import Object, Point, Value, build_value, read_objects

# The least number of requests for a 99th percentile: with fewer it is little more than the longest
# latency.
MIN_REQUESTS_OF_P99 = 100
# The least share of the processors' time that a busy neighbour must use; the system under test
# takes the rest.
MIN_NEIGHBOUR_SHARE = 0.2
# Added to a count of throttled periods, so that a count of 0 still gives a ratio.
HALF_PERIOD = 0.5
# The least latency of a request, as a share of its CPU time: a sandbox's clock is too coarse for 1.
MIN_LATENCY_SHARE = 0.6


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return percentiles of latency (ms) and throttled periods by `load` and busy `neighbour`.

    Throttled periods, per request, are left out if the host does not count them.
    point.py prints the requests of each point, and Strata the usage of the system's control group
    and of the neighbour.  workload.yaml declares the metrics.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    loads, busy_loads = parameters["loads"], parameters["busy"]
    order = f"( observed point latencies_ms end observed){{{len(loads)}}}"
    order += f"( observed point latencies_ms end neighbour observed){{{len(busy_loads)}}}"
    log = read_objects(lines, order)
    grid: list[tuple[object, str | None]] = [(load, None) for load in loads]
    grid += [(load, "busy") for load in busy_loads]
    values = []
    for i, (point, (load, neighbour)) in enumerate(zip(log.points, grid, strict=True)):
        # Each point has two observations of the control group, before and after it.
        observations = log.objects["observed"][2 * i : 2 * i + 2]
        values += read_point(point, load, neighbour, observations, parameters)
    for usage in log.objects.get("neighbour", []):
        require_equal("the neighbour", usage["neighbour"], "busy")
        available_seconds = get_number(usage, "processors") * get_number(usage, "seconds")
        share = get_number(usage, "cpu_seconds") / available_seconds
        # Clock ticks, and the time between two readings, may add up to 5 % to a share of 1.
        reason = f"the neighbour used {share:.0%} of the processors' time"
        require(MIN_NEIGHBOUR_SHARE <= share <= 1.05, reason)
    return values


def read_point(
    point: Point,
    load: object,
    neighbour: str | None,
    observations: list[Object],
    parameters: Object,
) -> list[Value]:
    """Check one point, and return its values as :func:`parse` describes.

    point: the point, whose only object holds the latencies in ms.
    load: "single", or a number of per cent.
    neighbour: "busy", or None if there is none.
    observations: Strata's two objects of the system's control group before and after the point.
    Their key `throttled` is the number of throttled periods so far; None if the host does not count
    them.
    parameters: the cell's parameters.
    Raises BrokenLogError if the point had another load, or if its times are impossible.
    """
    is_single = load == "single"
    head, [content] = point.head, point.objects
    require_equal("the load", head["load"], str(load))
    count = parameters["single_requests" if is_single else "requests"]
    require_equal("the number of requests", head["requests"], count)
    require_parameters(head, parameters, "request_ms", "share", "workers")
    latencies = content["latencies_ms"]
    require_equal("the number of latencies", len(latencies), count)
    shortest = min(get_number({"latency": latency}, "latency") for latency in latencies)
    is_possible = shortest >= MIN_LATENCY_SHARE * head["request_ms"]
    require(is_possible, "a request took less than its CPU time")
    check_rate(get_number(content, "due_seconds"), count, is_single, head)
    factors = {"load": load, "neighbour": neighbour}
    values = [build_value("p50", "ms", find_percentile(latencies, 0.5), **factors)]
    if count >= MIN_REQUESTS_OF_P99:
        values.append(build_value("p99", "ms", find_percentile(latencies, 0.99), **factors))
    periods_before, periods_after = (usage["throttled"] for usage in observations)
    if periods_before is not None and periods_after is not None:
        reason = "the periods with the quota used up became fewer"
        require(periods_after >= periods_before, reason)
        periods = periods_after - periods_before + HALF_PERIOD
        values.append(build_value("throttled", "periods/request", periods / count, **factors))
    return values


def check_rate(due_seconds: float, count: int, is_single: bool, head: Object) -> None:
    """Raise BrokenLogError unless the last request was due near the time that the load demands.

    due_seconds: time from the start until the last request was due.
    count: number of requests.
    is_single: whether the load is "single".
    head: the object that opens the point.
    The standard deviation of this time is the standard deviation of a gap between requests times
    the root of the number of gaps; a difference of six standard deviations is accepted.
    The constants must agree with SINGLE_GAP and FIRST_MOMENT of point.py.
    """
    if is_single:
        # These gaps are drawn evenly from 0.1 to 0.2 s; their standard deviation is 0.1 / √12.
        mean_gap = 0.15
        deviation = 0.03
    else:
        # The standard deviation of an exponential distribution is its mean.
        mean_gap = head["request_ms"] / 1e3 / (float(head["load"]) / 100 * head["share"])
        deviation = mean_gap
    # The first request is due after 0.1 s.
    expected_seconds = 0.1 + mean_gap * (count - 1)
    is_near = abs(due_seconds - expected_seconds) <= 6 * deviation * math.sqrt(count)
    reason = f"the last request was due after {due_seconds} s"
    require(is_near, f"{reason}, at this rate after {expected_seconds:.3f} s")


def find_percentile(latencies: list[float], share: float) -> float:
    """Return the latency that at least a share of the requests did not exceed (nearest rank).

    latencies: at least one, in any order.
    share: above 0, and at most 1.
    """
    return sorted(latencies)[math.ceil(share * len(latencies)) - 1]

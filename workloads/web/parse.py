"""Web pages: the rate of a closed loop, and latency at a constant rate, by page and connections."""

import itertools

from kit.checks import get_number, require, require_close, require_equal, require_pinned
from kit.logs import Object, Point, Value, build_value, read_objects

# Bytes of each page; the header of a response adds some hundreds.
BYTES = {"small": 1000, "100kB": 100_000}
# The least number of requests for a 99th percentile: ten of them took longer.
MIN_REQUESTS_OF_P99 = 1000


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the rate and the percentiles of latency for every page and number of connections.

    The rate is in requests/s, and percentiles are in ms.  The 99th percentile is left out if there
    are fewer than :data:`MIN_REQUESTS_OF_P99` requests.  load.c prints the points, and
    workload.yaml declares the metrics.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    grid = list(itertools.product(parameters["pages"], parameters["connections"]))
    warmups = f"( warmup closed paced warmed){{{len(parameters['pages'])}}}"
    points = read_objects(lines, f"{warmups}( point closed paced end){{{len(grid)}}}").points
    values = []
    for point, (page, connections) in zip(points, grid, strict=True):
        values += read_point(point, page, connections, parameters)
    return values


def read_point(point: Point, page: str, connections: int, parameters: Object) -> list[Value]:
    """Check one point, and return the rate of the closed loop, and latencies at a constant rate.

    point: the point, whose objects are the results of the closed loop and of the constant rate.
    page: a key of `BYTES`.
    connections: number of connections.
    parameters: the cell's parameters.
    Raises BrokenLogError if the point had other settings, or if its counts contradict its rates.
    """
    head, (closed, paced) = point.head, point.objects
    require_equal("the page", head["point"], page)
    require_equal("connections", head["connections"], connections)
    require_equal("the constant rate's percent", head["percent"], parameters["load_percent"])
    require_pinned(head, parameters["client_cpu"])
    has_expected_size = 0 < head["bytes"] - BYTES[page] < 1000
    reason = f"an answer had {head['bytes']} bytes, and the page has {BYTES[page]}"
    require(has_expected_size, reason)
    rate, offered = get_number(closed, "rate"), get_number(paced, "offered")
    require_close("the constant rate", offered, rate * head["percent"] / 100)
    for name, result in (("closed", closed), ("paced", paced)):
        requests = get_number(result, "rate") * get_number(result, "seconds")
        require_close("rate × time", requests, get_number(result, name))
    # The closed loop may end late, since its last request may begin just before the end.
    seconds = parameters["seconds"]
    require(closed["seconds"] >= seconds, "the closed loop ended before its time")
    expected_requests = offered * seconds
    # The number is rounded to a whole one.
    is_complete = abs(paced["paced"] - expected_requests) <= 1
    require(is_complete, f"{expected_requests:.0f} requests were due, not {paced['paced']}")
    p50, p99 = get_number(paced, "p50"), get_number(paced, "p99")
    require(p50 <= p99, "the median is above the 99th percentile")
    factors = {"page": page, "connections": connections}
    values = [
        build_value("rate", "requests/s", rate, **factors),
        build_value("p50", "ms", p50, **factors),
    ]
    if paced["paced"] >= MIN_REQUESTS_OF_P99:
        values.append(build_value("p99", "ms", p99, **factors))
    return values

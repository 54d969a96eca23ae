"""Web pages: the rate of a closed loop, and latency at a constant rate, by page and connections."""

import itertools

from kit.checks import number, require, require_close, require_equal, require_pinned
from kit.logs import Object, Point, Value, read, value

# Bytes of each page, to which the head of an answer adds some hundreds.
BYTES = {"small": 1000, "100kB": 100_000}
# Then ten requests took longer than the 99th percentile.
FEWEST = 1000


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the rate and the percentiles of latency of every page and number of connections.

    The 99th percentile of fewer than :data:`FEWEST` requests is left out.
    """
    grid = list(itertools.product(parameters["pages"], parameters["connections"]))
    warmups = f"( warmup closed paced warmed){{{len(parameters['pages'])}}}"
    points = read(lines, f"{warmups}( point closed paced end){{{len(grid)}}}").points
    values = []
    for point, (page, connections) in zip(points, grid, strict=True):
        values += measured(point, page, connections, parameters)
    return values


def measured(point: Point, page: str, connections: int, parameters: Object) -> list[Value]:
    """Check one point, and return its values: of the closed loop the rate, else the latency."""
    head, (closed, paced) = point.head, point.objects
    require_equal("the page", head["point"], page)
    require_equal("connections", head["connections"], connections)
    require_equal("the constant rate's percent", head["percent"], parameters["load_percent"])
    require_pinned(head, parameters["client_cpu"])
    good = 0 < head["bytes"] - BYTES[page] < 1000
    require(good, f"an answer had {head['bytes']} bytes, and the page has {BYTES[page]}")
    rate, offered = number(closed, "rate"), number(paced, "offered")
    require_close("the constant rate", offered, rate * head["percent"] / 100)
    for name, half in (("closed", closed), ("paced", paced)):
        spent = number(half, "rate") * number(half, "seconds")
        require_close("rate × time", spent, number(half, name))
    # The last request of a half may begin just before its end.
    seconds = parameters["seconds"]
    require(closed["seconds"] >= seconds, "the closed loop ended before its time")
    due = offered * seconds
    require(abs(paced["paced"] - due) <= 1, f"{due:.0f} requests were due, not {paced['paced']}")
    p50, p99 = number(paced, "p50"), number(paced, "p99")
    require(p50 <= p99, "the median is above the 99th percentile")
    at = {"page": page, "connections": connections}
    values = [value("rate", "requests/s", rate, **at), value("p50", "ms", p50, **at)]
    if paced["paced"] >= FEWEST:
        values.append(value("p99", "ms", p99, **at))
    return values

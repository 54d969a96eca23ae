"""netperf: the times of round trips, by test."""

from kit.checks import number, require, require_close, require_equal, require_parameters
from kit.logs import Object, Point, Value, read, value
from kit.netperf import read_netperf


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """The values of all tests, with the ends apart and together."""
    tests = parameters["tests"]
    grid = [(test, placement) for placement in parameters["placements"] for test in tests]
    points = read(lines, f"( warmup warmed){{{len(tests)}}}( point end){{{len(grid)}}}").points
    return [
        found
        for point, at in zip(points, grid, strict=True)
        for found in measured(point, *at, parameters)
    ]


def measured(point: Point, test: str, placement: str, parameters: Object) -> list[Value]:
    """The values of one test, in µs.

    The mean is the time over the number of transactions, as in the original.  The percentiles come from a histogram
    of whole microseconds, and of coarser steps above 100.
    """
    require_equal("the test", (point.head["point"], point.head["placement"]), (test, placement))
    require_parameters(point.head, parameters, "request_bytes", "response_bytes")
    wanted = {"PROTOCOL": test.removesuffix("_RR"), "THROUGHPUT_UNITS": "Trans/s"}
    wanted |= {
        "REQUEST_SIZE": parameters["request_bytes"],
        "RESPONSE_SIZE": parameters["response_bytes"],
    }
    cpu = parameters["server_cpu" if placement == "together" else "client_cpu"]
    found = read_netperf(point, wanted, parameters["data_port"], cpu, parameters)
    elapsed, received = number(found, "ELAPSED_TIME"), number(found, "LOCAL_RECV_CALLS")
    lost = abs(number(found, "LOCAL_SEND_CALLS") - received) > 1
    require(not lost, f"{found['LOCAL_SEND_CALLS']:.0f} requests had {received:.0f} responses")
    mean, timed = number(found, "RT_LATENCY"), number(found, "MEAN_LATENCY")
    # The time is printed in hundredths of a second.
    tolerance = 0.006 / elapsed + 2 / received + 6e-4 / mean
    require_close("time per transaction", mean, 1e6 * elapsed / received, tolerance)
    # A lost datagram stops the exchange until the time is over, which the round trips that were timed do not show.
    require(
        timed <= 1 + 1.05 * mean and mean <= 1 + 2 * timed,
        f"the round trips that were timed took {timed} µs, and by their number {mean} µs: was a packet lost?",
    )
    if placement == "together":
        return [value("latency_together", "us", mean, test=test)]
    metrics = {"latency": "RT_LATENCY", "p50": "P50_LATENCY", "p99": "P99_LATENCY"}
    return [value(metric, "us", number(found, key), test=test) for metric, key in metrics.items()]

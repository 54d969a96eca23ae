"""netperf: the latency of round trips, by test."""

from kit.checks import get_number, require, require_close, require_equal, require_parameters
from kit.logs import Object, Point, Value, build_value, read_objects
from kit.netperf import read_netperf

# The lines with the latencies, in µs.
METRICS = {"latency": "RT_LATENCY", "p50": "P50_LATENCY", "p99": "P99_LATENCY"}


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the latencies (µs) by `test`: all with two CPUs, and the mean with one shared CPU.

    The points are in the order of the parameters: by placement, then by test.
    workload.yaml declares the metrics.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    tests = parameters["tests"]
    grid = [(test, placement) for placement in parameters["placements"] for test in tests]
    log = read_objects(lines, f"( warmup warmed){{{len(tests)}}}( point end){{{len(grid)}}}")
    values = []
    for point, (test, placement) in zip(log.points, grid, strict=True):
        values += read_point(point, test, placement, parameters)
    return values


def read_point(point: Point, test: str, placement: str, parameters: Object) -> list[Value]:
    """Check one test, and return its latencies in µs.

    point: the point of the test.
    test: the test's name, such as TCP_RR.
    placement: "apart", or "together" if client and server share a CPU.  With "together" only the
    mean is returned.
    parameters: the cell's parameters.
    The mean is the elapsed time divided by the number of transactions, as in the original paper.
    The percentiles come from netperf's histogram, whose steps are whole microseconds up to 100, and
    longer above.
    Raises BrokenLogError if the test had other settings, or if its numbers contradict each other.
    """
    require_equal("the test", point.head["point"], test)
    require_equal("the placement", point.head["placement"], placement)
    require_parameters(point.head, parameters, "request_bytes", "response_bytes")
    settings = {
        "PROTOCOL": test.removesuffix("_RR"),
        "THROUGHPUT_UNITS": "Trans/s",
        "REQUEST_SIZE": parameters["request_bytes"],
        "RESPONSE_SIZE": parameters["response_bytes"],
    }
    cpu = parameters["server_cpu" if placement == "together" else "client_cpu"]
    report = read_netperf(point, settings, parameters["data_port"], cpu, parameters)
    seconds = get_number(report, "ELAPSED_TIME")
    requests = get_number(report, "LOCAL_SEND_CALLS")
    responses = get_number(report, "LOCAL_RECV_CALLS")
    # The last request may have no response when the time is up.
    is_answered = abs(requests - responses) <= 1
    require(is_answered, f"{requests:.0f} requests had {responses:.0f} responses")
    # RT_LATENCY is the elapsed time divided by the number of transactions; MEAN_LATENCY is the mean
    # of the transactions that netperf timed.
    mean, timed_mean = get_number(report, "RT_LATENCY"), get_number(report, "MEAN_LATENCY")
    # The time is printed in hundredths of a second, and the mean in thousandths of a microsecond.
    # Two transactions may be counted on one side only.
    tolerance = 0.006 / seconds + 2 / responses + 6e-4 / mean
    require_close("time per transaction", mean, 1e6 * seconds / responses, tolerance)
    # A lost datagram stops the exchange until the test ends: then the mean over the elapsed time is
    # longer than that of the timed transactions.  point.sh tests the second condition, too.
    reason = f"round trips took {timed_mean} µs, and by their number {mean} µs: was a packet lost?"
    require(timed_mean <= 1 + 1.05 * mean and mean <= 1 + 2 * timed_mean, reason)
    if placement == "together":
        return [build_value("latency_together", "us", mean, test=test)]
    return [
        build_value(metric, "us", get_number(report, key), test=test)
        for metric, key in METRICS.items()
    ]

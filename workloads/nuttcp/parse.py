"""nuttcp: throughput of bulk transfers, and their CPU time at a fixed rate."""

import re

from kit.checks import (
    get_number,
    require,
    require_close,
    require_duration,
    require_equal,
    require_parameters,
    require_pinned,
)
from kit.logs import (
    Object,
    Point,
    Value,
    build_value,
    parse_number_or_text,
    read_cpu_usage,
    read_objects,
)
from kit.netperf import read_netperf


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return throughputs (Gbit/s) and the CPU's cost at the fixed rate, by `direction`.

    If there are several connections, their number is the factor `connections`.  The factor
    `rate=not-reached` marks the cost of a transfer that was slower than its fixed rate, so that it
    is compared with no other cost.  workload.yaml declares the metrics.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    directions, measures = parameters["directions"], parameters["measures"]
    lines_of_measure = {
        "throughput": " point end",
        "cost": " observed point end observed",
        "stream": " point end",
    }
    order = "".join(text for name, text in lines_of_measure.items() if name in measures)
    log = read_objects(
        lines, f"( warmup warmed){{{len(directions)}}}({order}){{{len(directions)}}}"
    )
    observed = log.objects.get("observed", [])
    require(all(line["observed"] == "cpu" for line in observed), "not only CPUs were observed")
    points, cpu_lines = iter(log.points), iter(observed)
    values = []
    for direction in directions:
        if "throughput" in measures:
            transfer = read_transfer(next(points), "throughput", direction, None, parameters)
            gigabits = transfer["rate_Mbps"] / 1000
            factors = build_factors(direction, parameters)
            values.append(build_value("throughput", "Gbit/s", gigabits, **factors))
        if "cost" in measures:
            before, point, after = next(cpu_lines), next(points), next(cpu_lines)
            values += list_cost_values(point, before, after, direction, parameters)
        if "stream" in measures:
            gigabits = read_stream(next(points), direction, parameters) / 1000
            values.append(build_value("stream", "Gbit/s", gigabits, direction=direction))
    return values


def build_factors(direction: str, parameters: Object) -> Object:
    """Return the factors of a transfer by nuttcp: its direction, and its connections if several.

    A factor that is None is left out of the value.
    """
    streams = parameters["streams"]
    return {"direction": direction, "connections": streams if streams != 1 else None}


def list_cost_values(
    point: Point, before: Object, after: Object, direction: str, parameters: Object
) -> list[Value]:
    """Check the transfer at the fixed rate, and return its CPU cost for each byte.

    before, after: the observations of the host's CPUs before and after the transfer, in which
    `cycles` is None if the host does not count cycles.
    Returns the metrics `cycles_per_byte`, if cycles were counted, and `cpu_seconds_per_gb`.
    Raises BrokenLogError if the rate was exceeded, or if only one observation has cycles.
    """
    rate = parameters["rate_mbit"]
    paced = read_transfer(point, "cost", direction, rate, parameters)
    reached = paced["rate_Mbps"]
    # The content of the socket's buffer at the start is not paced.
    require(reached <= 1.1 * rate, f"the rate should be {rate} Mbit/s, and was {reached}")
    # A megabyte of nuttcp has 2^20 bytes.
    copied_bytes = paced["megabytes"] * 2**20
    busy_seconds, _ = read_cpu_usage([before, after], paced["real_seconds"])
    factors = build_factors(direction, parameters)
    factors["rate"] = "not-reached" if reached < 0.9 * rate else None
    values = []
    is_consistent = (before["cycles"] is None) == (after["cycles"] is None)
    require(is_consistent, "the cycles were not counted both before and after")
    if before["cycles"] is not None:
        cycles = (after["cycles"] - before["cycles"]) / copied_bytes
        values.append(build_value("cycles_per_byte", "cycles/B", cycles, **factors))
    values.append(
        build_value("cpu_seconds_per_gb", "s/GB", busy_seconds / copied_bytes * 1e9, **factors)
    )
    return values


def read_transfer(
    point: Point, name: str, direction: str, rate: float | None, parameters: Object
) -> Object:
    """Check nuttcp's report of one transfer, and return it.

    name: the name of the point.  rate: the fixed rate in Mbit/s; None if it is unlimited.
    The report has numbers or texts by nuttcp's own keys, such as "rate_Mbps"; a megabyte has 2^20
    bytes in it.
    Raises BrokenLogError if the transfer had other settings, was too short, or does not have
    exactly one report.
    """
    head = point.head
    printed = (head["point"], head["direction"], head["rate_mbit"])
    require_equal("the point", printed, (name, direction, rate))
    require(head["tool"].startswith("nuttcp-"), "this is not a log of nuttcp")
    require_parameters(head, parameters, "streams", "seconds")
    require_pinned(head, parameters["client_cpu"])
    is_without_server = any("classic_mode" in line for line in point.lines)
    require(not is_without_server, "nuttcp found no server")
    reports = [line for line in point.lines if re.match("megabytes=.* tx_cpu=.* rx_cpu=", line)]
    form = "megabytes=… tx_cpu=… rx_cpu=…"
    require_equal(f"the number of lines of the form {form}", len(reports), 1)
    pairs = re.findall(r"(\w+)=(\S+)", reports[0])
    report: Object = {key: parse_number_or_text(text) for key, text in pairs}
    seconds = get_number(report, "real_seconds")
    require_duration("the transfer took", seconds, parameters["seconds"])
    megabits = get_number(report, "megabytes") * 8 * 2**20 / 1e6
    # The time is printed in hundredths of a second.
    tolerance = 0.006 / seconds + 1e-5
    require_close("rate × time", get_number(report, "rate_Mbps") * seconds, megabits, tolerance)
    return report


def read_stream(point: Point, direction: str, parameters: Object) -> float:
    """Check netperf's transfer in one direction, and return its throughput in Mbit/s.

    direction: "receive" if the system under test, which is netperf's server, receives the data.
    Raises BrokenLogError if the transfer had other settings, or its two ends disagree.
    """
    head = point.head
    test, sends = ("TCP_STREAM", "Send") if direction == "receive" else ("TCP_MAERTS", "Receive")
    printed = (head["point"], head["direction"], head["test"])
    require_equal("the point", printed, ("stream", direction, test))
    settings = {"PROTOCOL": "TCP", "THROUGHPUT_UNITS": "10^6bits/s", "DIRECTION": sends}
    port, cpu = parameters["netserver_data_port"], parameters["client_cpu"]
    report = read_netperf(point, settings, port, cpu, parameters)
    seconds = get_number(report, "ELAPSED_TIME")
    copied_bytes = get_number(report, "LOCAL_BYTES_XFERD")
    rate = get_number(report, "THROUGHPUT")
    # The time is printed in hundredths of a second, and the rate in hundredths of a Mbit/s.
    require_close("rate × time", rate * seconds, copied_bytes * 8 / 1e6, 0.006 / seconds + 1e-4)
    # Bytes in the sockets' buffers at the end, at most 16 MiB, are counted at one end only.
    tolerance = max(0.02, 2**24 / copied_bytes)
    remote_bytes = get_number(report, "REMOTE_BYTES_XFERD")
    require_close("REMOTE_BYTES_XFERD", remote_bytes, copied_bytes, tolerance)
    return rate

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
    # The first keys of the objects of each measure, in the order of the log.
    keys_of_measures = {
        "throughput": " point end",
        "cost": " observed point end observed",
        "stream": " point end",
    }
    order = "".join(keys for measure, keys in keys_of_measures.items() if measure in measures)
    log = read_objects(
        lines, f"( warmup warmed){{{len(directions)}}}({order}){{{len(directions)}}}"
    )
    observations = log.objects.get("observed", [])
    is_of_cpus = all(content["observed"] == "cpu" for content in observations)
    require(is_of_cpus, "not only CPUs were observed")
    # Each direction has the points of its measures, in the order of `keys_of_measures`.
    points, cpu_observations = iter(log.points), iter(observations)
    values = []
    for direction in directions:
        if "throughput" in measures:
            transfer = read_transfer(next(points), "throughput", direction, None, parameters)
            gigabits = transfer["rate_Mbps"] / 1000
            factors = build_factors(direction, parameters)
            values.append(build_value("throughput", "Gbit/s", gigabits, **factors))
        if "cost" in measures:
            before, after = next(cpu_observations), next(cpu_observations)
            values += list_cost_values(next(points), before, after, direction, parameters)
        if "stream" in measures:
            gigabits = read_stream(next(points), direction, parameters) / 1000
            values.append(build_value("stream", "Gbit/s", gigabits, direction=direction))
    return values


def build_factors(direction: str, parameters: Object) -> Object:
    """Return the factors of a transfer by nuttcp: its direction, and its connections if several.

    For example {"direction": "send", "connections": None} for one connection; build_value leaves
    out a factor that is None.
    """
    streams = parameters["streams"]
    return {"direction": direction, "connections": streams if streams != 1 else None}


def list_cost_values(
    point: Point, before: Object, after: Object, direction: str, parameters: Object
) -> list[Value]:
    """Check the transfer at the fixed rate, and return its CPU cost for each byte.

    point: the point of the transfer.
    before, after: Strata's observations of the host's CPUs before and after the transfer, in which
    `cycles` is None if the host does not count cycles.
    direction: "receive" or "send", from the view of the system under test.
    parameters: the cell's parameters.
    Returns the metrics `cycles_per_byte`, if cycles were counted, and `cpu_seconds_per_gb`.
    Raises BrokenLogError if the rate was exceeded, or if only one observation has cycles.
    """
    rate = parameters["rate_mbit"]
    report = read_transfer(point, "cost", direction, rate, parameters)
    measured_rate = report["rate_Mbps"]
    # The content of the socket's buffer at the start is not paced, so that a short transfer may be
    # up to 10 % faster than its fixed rate.
    reason = f"the rate should be {rate} Mbit/s, and was {measured_rate}"
    require(measured_rate <= 1.1 * rate, reason)
    # A megabyte of nuttcp has 2^20 bytes.
    copied_bytes = report["megabytes"] * 2**20
    busy_seconds, _ = read_cpu_usage([before, after], report["real_seconds"])
    factors = build_factors(direction, parameters)
    factors["rate"] = "not-reached" if measured_rate < 0.9 * rate else None
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

    point: the point of the transfer.
    name: the point's name, "throughput" or "cost".
    direction: "receive" or "send", from the view of the system under test.
    rate: the fixed rate in Mbit/s; None if it is unlimited.
    parameters: the cell's parameters.
    Returns numbers or strings by nuttcp's own keys, such as "rate_Mbps"; a megabyte has 2^20 bytes
    in it.
    Raises BrokenLogError if the transfer had other settings, was too short, or does not have
    exactly one report.
    """
    head = point.head
    require_equal("the point", head["point"], name)
    require_equal("the direction", head["direction"], direction)
    require_equal("the fixed rate", head["rate_mbit"], rate)
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

    point: the point of the transfer.
    direction: "receive" if the system under test, which is netperf's server, receives the data.
    parameters: the cell's parameters.
    Raises BrokenLogError if the transfer had other settings, or its two ends disagree.
    """
    head = point.head
    # netperf names the direction from the view of the client.
    test, client_direction = "TCP_MAERTS", "Receive"
    if direction == "receive":
        test, client_direction = "TCP_STREAM", "Send"
    require_equal("the point", head["point"], "stream")
    require_equal("the direction", head["direction"], direction)
    require_equal("the test", head["test"], test)
    settings = {
        "PROTOCOL": "TCP",
        "THROUGHPUT_UNITS": "10^6bits/s",
        "DIRECTION": client_direction,
    }
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

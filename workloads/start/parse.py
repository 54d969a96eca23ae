"""Start of sandboxes: percentiles of the time, and the rate of several at once, by runtime."""

import math
import re

from kit.checks import get_number, require, require_equal, require_numbered
from kit.logs import Object, Value, build_value, read_objects


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return each runtime's times (ms) and rates (1/s), or the reason why it cannot start here.

    A runtime that cannot start has only the metric `unavailable` with the value 1 and the factor
    `reason`.
    workload.yaml declares the metrics.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    # start.py prints the objects.
    log = read_objects(lines, "( runtime)+( start)*( together)*").objects
    require_equal("runtimes", [row["runtime"] for row in log["runtime"]], parameters["runtimes"])
    values = []
    for row in log["runtime"]:
        runtime = row["runtime"]
        if "unavailable" in row:
            # A factor must be equal in all laps and repetitions.  So numbers in the reason, such as
            # those of processes, become "N".
            reason = re.sub("[0-9]{2,}", "N", " ".join(row["unavailable"].split()))[:200]
            values.append(build_value("unavailable", "runtimes", 1, runtime=runtime, reason=reason))
        else:
            values += summarise_starts(log["start"], runtime, parameters)
            values += read_rates(log["together"], runtime, parameters)
    return values


def summarise_starts(rows: list[Object], runtime: str, parameters: Object) -> list[Value]:
    """Return percentiles of the start times of one runtime, in ms.

    p50, p95 and p99 are of the whole time until the sandbox is removed.  first_command and removal
    are the medians of its two parts: until the command begins, and from then on.  Each value is one
    of the measured times (nearest rank).
    rows: the object that start.py prints of each start, of all runtimes.
    runtime: the name of the runtime whose starts are summarised.
    parameters: the cell's parameters.
    Raises BrokenLogError if starts are missing or too many, or if one ended before its command
    began.
    """
    starts = [row for row in rows if row["runtime"] == runtime]
    require_numbered(starts, "start", 0)
    require_equal("the starts", len(starts), parameters["starts"])
    whole_seconds = sorted(get_number(row, "seconds") for row in starts)
    command_seconds = sorted(get_number(row, "first_seconds") for row in starts)
    removal_seconds = sorted(row["seconds"] - row["first_seconds"] for row in starts)
    require(removal_seconds[0] > 0, "a start ended before its command began")
    # Metric → percentile, and sorted times in seconds.
    series = {
        "p50": (50, whole_seconds),
        "p95": (95, whole_seconds),
        "p99": (99, whole_seconds),
        "first_command": (50, command_seconds),
        "removal": (50, removal_seconds),
    }
    values = []
    for metric, (percent, seconds) in series.items():
        rank = math.ceil(percent / 100 * len(seconds))
        values.append(build_value(metric, "ms", 1000 * seconds[rank - 1], runtime=runtime))
    return values


def read_rates(rows: list[Object], runtime: str, parameters: Object) -> list[Value]:
    """Return the rates (starts/s) of one runtime, by the number of simultaneous starts.

    The factor `together` is this number.
    rows: the object that start.py prints of each group of simultaneous starts, of all runtimes, in
    random order.
    runtime: the name of the runtime.
    parameters: the cell's parameters.
    Raises BrokenLogError unless the numbers of starts are those of the parameters.
    """
    order = parameters["together"]
    points = [row for row in rows if row["runtime"] == runtime]
    points.sort(key=lambda row: order.index(row["together"]))
    require_equal("the starts at once", [row["together"] for row in points], order)
    start_counts = [row["starts"] for row in points]
    expected_counts = [simultaneous * parameters["each"] for simultaneous in order]
    require_equal("the numbers of starts", start_counts, expected_counts)
    values = []
    for row in points:
        rate = row["starts"] / get_number(row, "seconds")
        values.append(
            build_value("rate", "starts/s", rate, runtime=runtime, together=row["together"])
        )
    return values

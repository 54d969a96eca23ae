"""Start of a sandbox: percentiles of its time, and the rate of several at once, by runtime."""

import math
import re

from kit.checks import number, require, require_equal, require_numbered
from kit.logs import Object, Value, read, value


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return each runtime's times (ms) and rates (1/s), or the reason why it cannot start here."""
    log = read(lines, "( runtime)+( start)*( together)*").objects
    require_equal("runtimes", [row["runtime"] for row in log["runtime"]], parameters["runtimes"])
    values = []
    for head in log["runtime"]:
        runtime = {"runtime": head["runtime"]}
        if "unavailable" in head:
            # Numbers, such as those of processes, differ from run to run.
            reason = re.sub("[0-9]{2,}", "N", " ".join(head["unavailable"].split()))[:200]
            values.append(value("unavailable", "runtimes", 1, **runtime, reason=reason))
            continue
        starts = [row for row in log["start"] if row["runtime"] == head["runtime"]]
        require_numbered(starts, "start", 0)
        require_equal("the starts", len(starts), parameters["starts"])
        whole = sorted(number(row, "seconds") for row in starts)
        first = sorted(number(row, "first_seconds") for row in starts)
        removal = sorted(row["seconds"] - row["first_seconds"] for row in starts)
        require(removal[0] > 0, "a start ended before its command began")
        series = {"p50": (50, whole), "p95": (95, whole), "p99": (99, whole)}
        series |= {"first_command": (50, first), "removal": (50, removal)}
        for metric, (percent, seconds) in series.items():
            rank = math.ceil(percent / 100 * len(seconds))
            values.append(value(metric, "ms", 1000 * seconds[rank - 1], **runtime))
        points = [row for row in log["together"] if row["runtime"] == head["runtime"]]
        points = sorted(points, key=lambda row: parameters["together"].index(row["together"]))
        counts = [(row["together"], row["starts"]) for row in points]
        expected = [(count, count * parameters["each"]) for count in parameters["together"]]
        require_equal("the starts at once", counts, expected)
        for row in points:
            rate = row["starts"] / number(row, "seconds")
            values.append(value("rate", "starts/s", rate, **runtime, together=row["together"]))
    return values

"""nuttcp: throughput of bulk transfers, and what the host's processors spend on them at a fixed rate."""

import re

from kit.checks import (
    number,
    require,
    require_close,
    require_duration,
    require_equal,
    require_parameters,
    require_pinned,
)
from kit.logs import Object, Point, Value, processors, read, text_or_number, value
from kit.netperf import read_netperf


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """The values of each `direction`.

    `connections` is a factor if there are several.  `rate=not-reached` marks a cost of less than the rate that was
    asked for, which compares with no other.
    """
    directions = parameters["directions"]
    each = " point end observed point end observed point end"
    log = read(lines, f"( warmup warmed){{{len(directions)}}}({each}){{{len(directions)}}}")
    observed = log.objects["observed"]
    require(
        all(one["observed"] == "cpu" for one in observed),
        "something else than the processors was observed",
    )
    return [
        found
        for i, direction in enumerate(directions)
        for found in measured(
            log.points[3 * i : 3 * i + 3], observed[2 * i : 2 * i + 2], direction, parameters
        )
    ]


def measured(
    points: list[Point], observed: list[Object], direction: str, parameters: Object
) -> list[Value]:
    """The values of one direction, from its three transfers: unlimited, at the fixed rate, and by netperf."""
    rate, streams = parameters["rate_mbit"], parameters["streams"]
    free = transfer(points[0], "throughput", direction, None, parameters)
    paced = transfer(points[1], "cost", direction, rate, parameters)
    reached = paced["rate_Mbps"]
    # What is in the socket's buffer at the start is not paced.
    require(reached <= 1.1 * rate, f"the rate should be {rate} Mbit/s, and was {reached}")
    copied = paced["megabytes"] * 2**20
    busy, _ = processors(observed, paced["real_seconds"])
    at = {"direction": direction, "connections": streams if streams != 1 else None}
    at_rate = {**at, "rate": "not-reached" if reached < 0.9 * rate else None}
    found = [value("throughput", "Gbit/s", free["rate_Mbps"] / 1000, **at)]
    before, after = (each["cycles"] for each in observed)
    # Not every host counts cycles.
    require(
        (before is None) == (after is None), "the cycles were not counted both before and after"
    )
    if before is not None:
        found.append(value("cycles_per_byte", "cycles/B", (after - before) / copied, **at_rate))
    found.append(value("cpu_seconds_per_gb", "s/GB", busy / copied * 1e9, **at_rate))
    return [
        *found,
        value(
            "stream", "Gbit/s", stream(points[2], direction, parameters) / 1000, direction=direction
        ),
    ]


def transfer(
    point: Point, name: str, direction: str, rate: float | None, parameters: Object
) -> Object:
    """What nuttcp prints of one transfer; `megabytes` are of 2^20 bytes.

    rate: that was asked for, in Mbit/s; None if it was not limited.
    """
    head = point.head
    require_equal(
        "the point", (head["point"], head["direction"], head["rate_mbit"]), (name, direction, rate)
    )
    require(head["tool"].startswith("nuttcp-"), "this is not a log of nuttcp")
    require_parameters(head, parameters, "streams", "seconds")
    require_pinned(head, parameters["client_cpu"])
    require(not any("classic_mode" in line for line in point.lines), "nuttcp found no server")
    results = [line for line in point.lines if re.match("megabytes=.* tx_cpu=.* rx_cpu=", line)]
    form = "megabytes=… tx_cpu=… rx_cpu=…"
    require_equal(f"the number of lines of the form {form}", len(results), 1)
    found: Object = {
        key: text_or_number(text) for key, text in re.findall(r"(\w+)=(\S+)", results[0])
    }
    seconds = number(found, "real_seconds")
    require_duration("the transfer took", seconds, parameters["seconds"])
    # The time is printed in hundredths of a second.
    expected = number(found, "megabytes") * 8 * 2**20 / 1e6
    require_close(
        "rate × time", number(found, "rate_Mbps") * seconds, expected, 0.006 / seconds + 1e-5
    )
    return found


def stream(point: Point, direction: str, parameters: Object) -> float:
    """The throughput that netperf prints, in Mbit/s."""
    head = point.head
    test, sends = ("TCP_STREAM", "Send") if direction == "receive" else ("TCP_MAERTS", "Receive")
    require_equal(
        "the point", (head["point"], head["direction"], head["test"]), ("stream", direction, test)
    )
    wanted = {"PROTOCOL": "TCP", "THROUGHPUT_UNITS": "10^6bits/s", "DIRECTION": sends}
    found = read_netperf(
        point, wanted, parameters["netserver_data_port"], parameters["client_cpu"], parameters
    )
    seconds, copied = number(found, "ELAPSED_TIME"), number(found, "LOCAL_BYTES_XFERD")
    rate = number(found, "THROUGHPUT")
    # The time is printed in hundredths of a second.
    require_close("rate × time", rate * seconds, copied * 8 / 1e6, 0.006 / seconds + 1e-4)
    # What is under way in the sockets' buffers at the end was counted at one end only.
    require_close(
        "REMOTE_BYTES_XFERD", number(found, "REMOTE_BYTES_XFERD"), copied, max(0.02, 2**24 / copied)
    )
    return rate

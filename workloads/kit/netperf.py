"""What netperf prints, for the workloads that use it."""

from kit.checks import (
    Object,
    number,
    require,
    require_asked,
    require_equal,
    require_lasted,
    require_pinned,
)
from kit.logs import Point, settings


def read_netperf(
    point: Point, wanted: Object, port: int, cpu: int | None, parameters: Object
) -> Object:
    """What netperf printed at a point, KEY=value: the values that are wanted, at a port, from a client on a CPU."""
    require(point.head["tool"].startswith("Netperf "), "this is not a log of netperf")
    require_asked(point.head, parameters, "seconds")
    require_pinned(point.head, cpu)
    found = settings(point.lines)
    for key, expected in wanted.items():
        require_equal(key, found[key], expected)
    # The port of the parameters, or the one of a system beside others in whose turns it ran.
    higher = number(found, "DEST_PORT") - port
    require(
        higher >= 0 and higher % 64 == 0,
        f"the port should be {port}, and was {found['DEST_PORT']:.0f}",
    )
    require_lasted("the test took", number(found, "ELAPSED_TIME"), parameters["seconds"])
    return found

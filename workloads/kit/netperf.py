"""Reading and checking the output of netperf, for the parsers of the workloads that use it."""

from kit.checks import (
    Object,
    number,
    require,
    require_duration,
    require_equal,
    require_parameters,
    require_pinned,
)
from kit.logs import Point, settings


def read_netperf(
    point: Point, wanted: Object, port: int, cpu: int | None, parameters: Object
) -> Object:
    """Return netperf's lines KEY=value at a point of a sweep, after checking them.

    wanted: values by their keys that the lines must have.
    port: of the server, by the parameters.
    cpu: number of the CPU to which the client must be pinned; None: not pinned.
    parameters: of the cell, among them seconds.
    Raises BrokenLogError if the test had other settings or was too short.
    """
    require(point.head["tool"].startswith("Netperf "), "this is not a log of netperf")
    require_parameters(point.head, parameters, "seconds")
    require_pinned(point.head, cpu)
    printed = settings(point.lines)
    for key, expected in wanted.items():
        require_equal(key, printed[key], expected)
    # Ports of each further system that is up lie higher by a multiple of 64.
    offset = number(printed, "DEST_PORT") - port
    reason = f"the port should be {port}, and was {printed['DEST_PORT']:.0f}"
    require(offset >= 0 and offset % 64 == 0, reason)
    require_duration("the test took", number(printed, "ELAPSED_TIME"), parameters["seconds"])
    return printed

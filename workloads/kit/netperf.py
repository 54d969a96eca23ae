"""Reading and checking the output of netperf, for the parsers of the workloads that use it."""

from kit.checks import (
    Object,
    get_number,
    require,
    require_duration,
    require_equal,
    require_parameters,
    require_pinned,
)
from kit.logs import Point, parse_settings

# The ports of each further system that is up are higher by a multiple of this number, which is
# MAX_SYSTEMS of strata/experiment/plan.py.
PORT_STEP = 64


def read_netperf(
    point: Point, expected: Object, port: int, cpu: int | None, parameters: Object
) -> Object:
    """Check netperf's values at a point of a sweep, and return them by their keys.

    The point's script chooses the keys by netperf's option -k.
    expected: the values that some keys must have.
    port: the server's port in the parameters.
    cpu: the number of the CPU to which the client must be pinned; None if it must not be pinned.
    parameters: the cell's parameters, among them seconds.
    Raises BrokenLogError if the test had other settings or another port, or was too short.
    """
    require(point.head["tool"].startswith("Netperf "), "this is not a log of netperf")
    require_parameters(point.head, parameters, "seconds")
    require_pinned(point.head, cpu)
    printed = parse_settings(point.lines)
    for key, value in expected.items():
        require_equal(key, printed[key], value)
    offset = get_number(printed, "DEST_PORT") - port
    reason = f"the port should be {port}, and was {printed['DEST_PORT']:.0f}"
    require(offset >= 0 and offset % PORT_STEP == 0, reason)
    require_duration("the test took", get_number(printed, "ELAPSED_TIME"), parameters["seconds"])
    return printed

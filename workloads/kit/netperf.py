"""Functions with which the parsers of workloads read and check the output of netperf."""

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
    point: Point, settings: Object, port: int, cpu: int | None, parameters: Object
) -> Object:
    """Check netperf's values at a point of a sweep, and return them by their keys.

    point: the point, whose lines are KEY=value; its script chooses the keys by netperf's option -k.
    settings: the values that some keys must have, among them strings and numbers.
    port: the server's port in the parameters; that of a further system may be higher by a multiple
    of `PORT_STEP`.
    cpu: the number of the CPU to which the client must be pinned; None if it must not be pinned.
    parameters: the cell's parameters, among them seconds.
    Raises BrokenLogError if the test had other settings or another port, or was too short.
    """
    require(point.head["tool"].startswith("Netperf "), "this is not a log of netperf")
    require_parameters(point.head, parameters, "seconds")
    require_pinned(point.head, cpu)
    report = parse_settings(point.lines)
    for key, value in settings.items():
        require_equal(key, report[key], value)
    offset = get_number(report, "DEST_PORT") - port
    reason = f"the port should be {port}, and was {report['DEST_PORT']:.0f}"
    require(offset >= 0 and offset % PORT_STEP == 0, reason)
    require_duration("the test took", get_number(report, "ELAPSED_TIME"), parameters["seconds"])
    return report

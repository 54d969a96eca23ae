"""Start-up: time from the request for a system to the end of its first command; its removal."""

from kit.checks import get_number, require
from kit.logs import Object, Value, build_value, decode_object

# How a system starts, as Strata prints it → the value of the factor `start`.
WAYS = {"created": "created", "boot": "booted", "snapshot": "restored"}


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the time to the first command (s), memory (MB) and time of removal (s), by `start`.

    Strata itself prints the object of the start.  Memory and removal are left out if it does not
    have them.  workload.yaml declares the metrics.
    Raises BrokenLogError unless the log has one start, in the way of the parameter `way`.  Creation
    and boot are always accepted: containers are created, and a machine without a snapshot boots.
    """
    starts = [decode_object(line, "the start") for line in lines if line.startswith("{")]
    require(len(starts) == 1, f"the log has {len(starts)} starts instead of one")
    start = starts[0]
    require(start["start"] in WAYS, "the log does not say how it started")
    way = WAYS[start["start"]]
    is_accepted = way in ("created", "booted", parameters["way"])
    require(is_accepted, f"it was {way}, not {parameters['way']}")
    seconds = get_number(start, "up_seconds") + get_number(start, "command_seconds")
    values = [build_value("first_command", "s", seconds, start=way)]
    if start.get("memory_bytes") is not None:
        megabytes = get_number(start, "memory_bytes") / 1e6
        values.append(build_value("memory", "MB", megabytes, start=way))
    if "removal_seconds" in start:
        values.append(build_value("removal", "s", get_number(start, "removal_seconds"), start=way))
    return values

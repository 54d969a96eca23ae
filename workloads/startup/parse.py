"""Start-up: from the request for a system to the end of the first command in it."""

from kit.checks import number, require
from kit.logs import Object, Value, decoded, value

WAYS = {"created": "created", "boot": "booted", "snapshot": "restored"}


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """The time, in s, by how the system came up (`start`); and its memory, where the environment holds any."""
    [start] = [decoded(line, "the start") for line in lines if line.startswith("{")]
    require(start["start"] in WAYS, "the log does not say how it started")
    way = WAYS[start["start"]]
    # Containers are always created, and a machine without a snapshot boots.
    require(
        way in ("created", "booted", parameters["way"]), f"it was {way}, not {parameters['way']}"
    )
    seconds = number(start, "up_seconds") + number(start, "command_seconds")
    found = [value("first_command", "s", seconds, start=way)]
    if start.get("memory_bytes") is not None:
        found.append(value("memory", "MB", number(start, "memory_bytes") / 1e6, start=way))
    return found

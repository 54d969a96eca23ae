"""Density: the memory of one more idle system, empty and with an idle nginx."""

from kit.checks import get_number, require, require_equal, require_numbered
from kit.logs import Object, Value, build_value, decode_object

# The least number of systems from which a slope is computed.
LEAST_SYSTEMS = 3


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the memory that each further system takes (MB), the limit (MB), and how many started.

    Each row of the log has the memory at a number of systems, first of empty ones, then of those in
    which nginx was started.  The memory of a system is the slope over these numbers.
    workload.yaml declares the metrics, and the factor `content` is "empty" or "nginx".
    Raises BrokenLogError if a system is missing although there was memory for it.
    """
    rows = [decode_object(line, "the memory") for line in lines if line.startswith("{")]
    empty = [row for row in rows if row["loaded"] == 0]
    # The last row of empty systems is also the first one of the series with nginx: in none of them.
    loaded = [empty[-1], *rows[len(empty) :]]
    check_memory_series(empty, "systems", 1, parameters["most"])
    check_memory_series(loaded, "loaded", 0, len(empty))
    values = [build_value("systems", "systems", len(empty))]
    for row in loaded:
        require_equal("the systems that are up", row["systems"], len(empty))
    for metric, key in (("memory", "available_bytes"), ("group_memory", "group_bytes")):
        if any(row[key] is None for row in rows):
            continue
        empty_slope = compute_slope(empty, key)
        slopes = {"empty": empty_slope, "nginx": empty_slope + compute_slope(loaded, key)}
        # Available memory decreases with each system.
        sign = -1 if key == "available_bytes" else 1
        for content, slope in slopes.items():
            values.append(build_value(metric, "MB", sign * slope / 1e6, content=content))
    if rows[0]["limit_bytes"] is not None:
        values.append(build_value("limit", "MB", get_number(rows[0], "limit_bytes") / 1e6))
    return values


def check_memory_series(rows: list[Object], key: str, first: int, most: int) -> None:
    """Raise BrokenLogError if rows are missing, or end before the memory was used up.

    key: the key of the number of systems, which starts at `first`.
    most: the largest number; rows may end before it if the available memory is at its floor.
    """
    require_numbered(rows, key, first)
    last = rows[-1]
    is_full = get_number(last, "available_bytes") <= get_number(last, "floor_bytes")
    require(last[key] == most or is_full, f"{key} ends at {last[key]} and not at {most}")
    require(last[key] >= LEAST_SYSTEMS, f"the memory is enough for {last[key]} systems only")


def compute_slope(rows: list[Object], key: str) -> float:
    """Return the slope of the number at a key over the positions of the rows, by least squares."""
    middle = (len(rows) - 1) / 2
    offsets = [position - middle for position in range(len(rows))]
    numbers = [get_number(row, key) for row in rows]
    products = [offset * number for offset, number in zip(offsets, numbers, strict=True)]
    return sum(products) / sum(offset**2 for offset in offsets)

"""Density: the memory of one more idle system, empty and with an idle nginx."""

from kit.checks import get_number, require, require_equal, require_numbered
from kit.logs import Object, Value, build_value, decode_object

# The least number of systems from which a slope is computed.
MIN_SYSTEMS = 3


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the memory that each further system takes (MB), the limit (MB), and how many started.

    Each row of the log has the memory at a number of systems, first of empty ones, then of those in
    which nginx was started.  The memory of a system is the slope over these numbers.
    workload.yaml declares the metrics, and the factor `content` is "empty" or "nginx".
    Raises BrokenLogError if a system is missing although there was memory for it.
    """
    rows = [decode_object(line, "the memory") for line in lines if line.startswith("{")]
    empty_rows = [row for row in rows if row["loaded"] == 0]
    # The last row of empty systems is also the first one of the series with nginx, in which no
    # system has it.
    nginx_rows = [empty_rows[-1], *rows[len(empty_rows) :]]
    check_memory_series(empty_rows, "systems", 1, parameters["most"])
    check_memory_series(nginx_rows, "loaded", 0, len(empty_rows))
    values = [build_value("systems", "systems", len(empty_rows))]
    for row in nginx_rows:
        require_equal("the systems that are up", row["systems"], len(empty_rows))
    for metric, key in (("memory", "available_bytes"), ("group_memory", "group_bytes")):
        # A host without the control group's memory has None.
        if any(row[key] is None for row in rows):
            continue
        empty_slope = compute_slope(empty_rows, key)
        slopes = {"empty": empty_slope, "nginx": empty_slope + compute_slope(nginx_rows, key)}
        # Available memory decreases with each system.
        sign = -1 if key == "available_bytes" else 1
        for content, slope in slopes.items():
            values.append(build_value(metric, "MB", sign * slope / 1e6, content=content))
    if rows[0]["limit_bytes"] is not None:
        values.append(build_value("limit", "MB", get_number(rows[0], "limit_bytes") / 1e6))
    return values


def check_memory_series(rows: list[Object], key: str, first: int, max_systems: int) -> None:
    """Raise BrokenLogError if rows are missing, or end before the memory was used up.

    rows: the rows of the series, in the order of the log.
    key: the key of the number of systems, "systems" or "loaded".
    first: the number in the first row.
    max_systems: the largest number; rows may end before it if the available memory is at its floor.
    """
    require_numbered(rows, key, first)
    last_row = rows[-1]
    is_full = get_number(last_row, "available_bytes") <= get_number(last_row, "floor_bytes")
    systems = last_row[key]
    require(systems == max_systems or is_full, f"{key} ends at {systems} and not at {max_systems}")
    require(systems >= MIN_SYSTEMS, f"the memory is enough for {systems} systems only")


def compute_slope(rows: list[Object], key: str) -> float:
    """Return the slope of the number at a key over the positions of the rows, by least squares.

    rows: at least two objects of the log; the slope is in the number's unit per row.
    key: the key of the number.
    """
    middle = (len(rows) - 1) / 2
    offsets = [position - middle for position in range(len(rows))]
    numbers = [get_number(row, key) for row in rows]
    products = [offset * number for offset, number in zip(offsets, numbers, strict=True)]
    return sum(products) / sum(offset**2 for offset in offsets)

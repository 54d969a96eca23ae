"""Density: the memory of one more idle system, empty and with an idle nginx."""

from kit.checks import get_number, require, require_equal, require_numbered
from kit.logs import Object, Value, build_value, decode_object

# A slope takes at least this many systems.
LEAST = 3


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the slopes of the memory over systems (MB), the limit (MB), and the systems' number.

    Raises BrokenLogError if a system is missing although there was memory for it.
    """
    rows = [decode_object(line, "the memory") for line in lines if line.startswith("{")]
    empty = [row for row in rows if row["loaded"] == 0]
    loaded = [empty[-1], *rows[len(empty) :]]
    check_series(empty, "systems", 1, parameters["most"])
    check_series(loaded, "loaded", 0, len(empty))
    values = [build_value("systems", "systems", len(empty))]
    for row in loaded:
        require_equal("the systems that are up", row["systems"], len(empty))
    for metric, key in (("memory", "available_bytes"), ("group_memory", "group_bytes")):
        if any(row[key] is None for row in rows):
            continue
        of_empty = compute_slope(empty, key)
        contents = {"empty": of_empty, "nginx": of_empty + compute_slope(loaded, key)}
        sign = -1 if key == "available_bytes" else 1
        for content, amount in contents.items():
            values.append(build_value(metric, "MB", sign * amount / 1e6, content=content))
    if rows[0]["limit_bytes"] is not None:
        values.append(build_value("limit", "MB", get_number(rows[0], "limit_bytes") / 1e6))
    return values


def check_series(rows: list[Object], key: str, first: int, most: int) -> None:
    """Raise BrokenLogError unless rows count up to the most, or to the floor of the memory.

    key: what counts the systems, from `first` on.
    """
    require_numbered(rows, key, first)
    full = get_number(rows[-1], "available_bytes") <= get_number(rows[-1], "floor_bytes")
    require(rows[-1][key] == most or full, f"{key} ends at {rows[-1][key]} and not at {most}")
    require(rows[-1][key] >= LEAST, f"the memory is enough for {rows[-1][key]} systems only")


def compute_slope(rows: list[Object], key: str) -> float:
    """Return the slope of a value over the rows, by least squares."""
    middle = (len(rows) - 1) / 2
    weighted = sum((at - middle) * get_number(row, key) for at, row in enumerate(rows))
    return weighted / sum((at - middle) ** 2 for at in range(len(rows)))

"""A command: its wall time, its CPU time and memory, and further metrics that it prints."""

import math
import re

from kit.checks import (
    get_number,
    require,
    require_equal,
    require_numbered,
    require_parameters,
)
from kit.logs import (
    Object,
    Value,
    build_value,
    decode_object,
    group_by_first_key,
    is_object_line,
)

# The order of a lap's objects by their first keys; timed.c prints "printed" if it keeps output.
LAP_ORDER = "observed tool(( run)+|( run printed)+) done observed"
# The kernel counts CPU time in whole microseconds.  A shorter time counts as one, since a value
# must be above 0.
MIN_SECONDS = 1e-6
# Other forms that Python accepts, such as "nan" and "1_000", are no numbers of a measurement.
NUMBER = re.compile(r"[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?")


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return a lap's wall time, CPU time and peak memory, and the further metrics.

    Times and further metrics are means over the lap's runs.  CPU time and memory are those of the
    system's control group, which the harness reads before and after the runs.  If the host has no
    group for the system, they are those of the command's processes.
    The parameter `patterns` declares the further metrics; workload.yaml declares the others.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    objects = _decode_lap(lines)
    [header], runs = objects["tool"], objects["run"]
    require_parameters(header, parameters, "runs", "limit")
    require_equal("kept", header["kept"], parameters["kept_bytes"])
    require_numbered(runs, "run")
    require_equal("the number of runs", len(runs), parameters["runs"])
    seconds = [get_number(run, "seconds") for run in runs]
    # timed.c ends a run at the limit; a second more is accepted for the end itself.
    require(max(seconds) <= parameters["limit"] + 1, "a run took longer than the limit")
    return [
        build_value("time", "s", sum(seconds) / len(runs)),
        *_list_resource_values(runs, objects["observed"]),
        *_extract_values(objects.get("printed", []), parameters["patterns"]),
    ]


def _decode_lap(lines: list[str]) -> dict[str, list[Object]]:
    """Return the objects of the log's lap, as lists by their first key.

    lines: the lines of the log; those without an object are skipped.
    The warm-up prints objects of the same form before the first object "observed"; they are left
    out.
    Raises BrokenLogError if the lap's objects are not in `LAP_ORDER`, or if an object "done", also
    one of the warm-up, is not ``{"done": true}``.
    """
    objects = []
    for line_number, line in enumerate(lines, 1):
        if is_object_line(line):
            objects.append(decode_object(line, f"line {line_number}"))
    keys = [next(iter(content), "") for content in objects]
    # Without an object "observed" the order is wrong wherever the lap starts.
    start = keys.index("observed") if "observed" in keys else 0
    is_in_order = re.fullmatch(LAP_ORDER, " ".join(keys[start:]))
    is_complete = all(content == {"done": True} for content in objects if "done" in content)
    require(is_in_order and is_complete, "the log is not that of one lap of a command")
    return group_by_first_key(objects[start:])


def _list_resource_values(runs: list[Object], observations: list[Object]) -> list[Value]:
    """Return the mean CPU time of a run (s), in all, as user and as system, and peak memory (MB).

    runs: the objects that timed.c prints of the command's runs, at least one.
    observations: the two objects of the control group that the harness (strata/host/cgroups.py)
    prints before and after the runs, in which a number is None if the host does not have it.
    User time is clamped to the range from 0 to the total, and each mean to at least `MIN_SECONDS`.
    Raises BrokenLogError if the control group's CPU time decreased.
    """
    before, after = observations
    if before["user_seconds"] is None or after["user_seconds"] is None:
        user_seconds = sum(get_number(run, "user", allow_zero=True) for run in runs)
        system_seconds = sum(get_number(run, "system", allow_zero=True) for run in runs)
        total_seconds = user_seconds + system_seconds
    else:
        user_seconds = _subtract_numbers(after, before, "user_seconds")
        total_seconds = user_seconds + _subtract_numbers(after, before, "system_seconds")
        # The sum is exact.  Control groups of version 1 divide it by all ticks so far, so that user
        # or system time may decrease in a short run.
        user_seconds = min(max(user_seconds, 0), total_seconds)
    require(total_seconds >= 0, "the CPU time of the control group went back")
    user_mean = max(user_seconds / len(runs), MIN_SECONDS)
    system_mean = max((total_seconds - user_seconds) / len(runs), MIN_SECONDS)
    if after["peak_bytes"] is None:
        peak_bytes = max(get_number(run, "rss_bytes", allow_zero=True) for run in runs)
    else:
        peak_bytes = get_number(after, "peak_bytes")
    return [
        build_value("cpu", "s", user_mean + system_mean),
        build_value("user", "s", user_mean),
        build_value("system", "s", system_mean),
        build_value("memory", "MB", 1e-6 * peak_bytes),
    ]


def _subtract_numbers(after: Object, before: Object, key: str) -> float:
    """Return by how much the number at a key grew from one object to a later one.

    It is negative if the number decreased.  Raises BrokenLogError if either number is negative.
    """
    return get_number(after, key, allow_zero=True) - get_number(before, key, allow_zero=True)


def _extract_values(runs: list[Object], patterns: list[str]) -> list[Value]:
    """Return one value for each pattern: the mean over the runs of the last match in the output.

    runs: the object "printed" of each run, in which timed.c prints the end of the run's output.
    patterns: strings of the form NAME[:UNIT[:SIDE]]=REGEX.  Without UNIT, the unit is "units".
    SIDE, lower or higher, says which values are better, and is not used here.
    Raises BrokenLogError if there is no run, if the output of a run has no match, or if its last
    match is not a number.
    """
    values = []
    for pattern in patterns:
        # Only the expression may contain "=".
        declaration, _, regex = pattern.partition("=")
        name, *unit_and_side = declaration.split(":")
        unit = unit_and_side[0] if unit_and_side else "units"
        numbers = []
        for run in runs:
            text = run["printed"]
            # If the expression has a group, a match is the text of the group.
            matches = re.findall(regex, text, re.MULTILINE)
            last_text = text.strip()[-200:] or "nothing"
            reason = f"{name}: nothing that a run printed matches {regex!r}; it printed last: "
            require(matches, reason + last_text)
            numbers.append(_parse_number(name, matches[-1]))
        require(numbers, f"{name}: nothing was kept of what the command printed")
        values.append(build_value(name, unit, sum(numbers) / len(numbers)))
    return values


def _parse_number(name: str, text: str) -> float:
    """Return the number that a text represents.

    name: the name of the metric, for the message.
    text: a decimal number, such as "-1.5e3"; white space around it is ignored.
    Raises BrokenLogError if the text is not a number, or is too large for one.
    """
    number = float(text) if NUMBER.fullmatch(text.strip()) else math.inf
    require(math.isfinite(number), f"{name}: {text[:60]!r} is not a number")
    return number

"""A command: its wall time, its CPU time and memory, and further metrics that it prints."""

import re

from kit.checks import (
    BrokenLogError,
    get_number,
    require,
    require_equal,
    require_numbered,
    require_parameters,
)
from kit.logs import Object, Value, build_value, decode_object

# The order of a lap's objects by their first keys; timed.c prints "printed" only if it keeps output.
LAP_ORDER = "observed tool(( run)+|( run printed)+) done observed"
# The kernel counts CPU time in whole microseconds.  A shorter time counts as one, since a value must
# be above 0.
LEAST_SECONDS = 1e-6


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

    The warm-up prints objects of the same form before the first object "observed"; they are left
    out.
    Raises BrokenLogError if the lap's objects are not in `LAP_ORDER`.
    """
    objects = []
    for line_number, line in enumerate(lines, 1):
        if line.startswith("{") and line.rstrip() != "{":
            objects.append(decode_object(line, f"line {line_number}"))
    keys = [next(iter(content), "") for content in objects]
    start = keys.index("observed") if "observed" in keys else 0
    is_in_order = re.fullmatch(LAP_ORDER, " ".join(keys[start:]))
    is_complete = all(content == {"done": True} for content in objects if "done" in content)
    require(is_in_order and is_complete, "the log is not that of one lap of a command")
    lap: dict[str, list[Object]] = {}
    for key, content in zip(keys[start:], objects[start:], strict=True):
        lap.setdefault(key, []).append(content)
    return lap


def _list_resource_values(runs: list[Object], observed: list[Object]) -> list[Value]:
    """Return the mean CPU time of a run (s), in all, as user and as system, and peak memory (MB).

    runs: timed.c's objects of the command's runs.
    observed: the harness's objects of the control group before and after the runs, in which an
    unknown number is None.
    Raises BrokenLogError if the control group's CPU time decreased.
    """
    before, after = observed
    if before["user_seconds"] is None or after["user_seconds"] is None:
        user = sum(get_number(run, "user", allow_zero=True) for run in runs)
        total = user + sum(get_number(run, "system", allow_zero=True) for run in runs)
    else:
        user = _subtract_numbers(after, before, "user_seconds")
        total = user + _subtract_numbers(after, before, "system_seconds")
        # The sum is exact.  Control groups of version 1 divide it by all ticks so far, so that user
        # or system time may decrease in a short run.
        user = min(max(user, 0), total)
    require(total >= 0, "the CPU time of the control group went back")
    user_mean = max(user / len(runs), LEAST_SECONDS)
    system_mean = max((total - user) / len(runs), LEAST_SECONDS)
    if after["peak_bytes"] is None:
        peak = max(get_number(run, "rss_bytes", allow_zero=True) for run in runs)
    else:
        peak = get_number(after, "peak_bytes")
    return [
        build_value("cpu", "s", user_mean + system_mean),
        build_value("user", "s", user_mean),
        build_value("system", "s", system_mean),
        build_value("memory", "MB", 1e-6 * peak),
    ]


def _subtract_numbers(after: Object, before: Object, key: str) -> float:
    """Return by how much the number at a key grew from one object to a later one."""
    return get_number(after, key, allow_zero=True) - get_number(before, key, allow_zero=True)


def _extract_values(runs: list[Object], patterns: list[str]) -> list[Value]:
    """Return one value for each pattern: the mean over the runs of the last match in the output.

    runs: timed.c's object of each run, whose `printed` is the end of its output.
    patterns: texts of the form NAME[:UNIT[:SIDE]]=REGEX.  Without UNIT, the unit is "units".  SIDE,
    lower or higher, says which values are better, and is not used here.
    Raises BrokenLogError if there is no run, if the output of a run has no match, or if its last
    match is not a number.
    """
    values = []
    for pattern in patterns:
        # Only the expression may contain "=".
        declared, _, regex = pattern.partition("=")
        name, *unit_and_side = declared.split(":")
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

    name: the name of the metric, for the message.  Raises BrokenLogError if the text is not a
    number.
    """
    try:
        return float(text)
    except ValueError:
        raise BrokenLogError(f"{name}: {text[:60]!r} is not a number") from None

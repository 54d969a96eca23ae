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

# The first keys of a lap's objects; timed.c prints "printed" only if output is kept.
LAP_ORDER = "observed tool(( run)+|( run printed)+) done observed"
# The kernel counts CPU time in whole microseconds: less than one of a run is counted as one.
LEAST_SECONDS = 1e-6


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return a lap's wall time, CPU time, peak memory and further metrics, by `parameters`.

    Times and further metrics are means over the lap's runs.  CPU time and memory are those of the
    system's control group, which the harness reads before and after the runs; where the host has no
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
    # timed.c ends a run at the limit, which takes some time.
    require(max(seconds) <= parameters["limit"] + 1, "a run took longer than the limit")
    return [
        build_value("time", "s", sum(seconds) / len(runs)),
        *_measure_resources(runs, objects["observed"]),
        *_extract_values(objects.get("printed", []), parameters["patterns"]),
    ]


def _decode_lap(lines: list[str]) -> dict[str, list[Object]]:
    """Return the objects of the log's lap, as lists by their first key.

    The warm-up prints objects of the same form before the first one "observed": they are left out.
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


def _measure_resources(runs: list[Object], observed: list[Object]) -> list[Value]:
    """Return the mean CPU time of a run (s): all, user's and system's; and the peak memory (MB).

    runs: timed.c's objects of the command's runs.
    observed: the harness's two objects of the control group; None stands for an unknown number.
    Raises BrokenLogError if the control group's CPU time decreased.
    """
    before, after = observed
    if before["user_seconds"] is None or after["user_seconds"] is None:
        user = sum(get_number(run, "user", zero=True) for run in runs)
        total = user + sum(get_number(run, "system", zero=True) for run in runs)
    else:
        user = get_number(after, "user_seconds", True) - get_number(before, "user_seconds", True)
        system = get_number(after, "system_seconds", True) - get_number(
            before, "system_seconds", True
        )
        total = user + system
        # Their sum is exact.  Version 1 splits it by all ticks so far, so that one of both may
        # become smaller in a short run.
        user = min(max(user, 0), total)
    require(total >= 0, "the CPU time of the control group went back")
    user_mean = max(user / len(runs), LEAST_SECONDS)
    system_mean = max((total - user) / len(runs), LEAST_SECONDS)
    if after["peak_bytes"] is None:
        peak = max(get_number(run, "rss_bytes", zero=True) for run in runs)
    else:
        peak = get_number(after, "peak_bytes")
    return [
        build_value("cpu", "s", user_mean + system_mean),
        build_value("user", "s", user_mean),
        build_value("system", "s", system_mean),
        build_value("memory", "MB", 1e-6 * peak),
    ]


def _extract_values(runs: list[Object], patterns: list[str]) -> list[Value]:
    """Return one value for each pattern: the mean over the runs of the last match in the output.

    runs: timed.c's object of each run, whose `printed` is the end of its output.
    patterns: NAME[:UNIT[:SIDE]]=REGEX, with the unit "units" unless given.  SIDE, lower or
    higher, says which values are better, and is not used here.
    Raises BrokenLogError if there is no run, if the output of a run has no match, or if its last
    match is not a number.
    """
    values = []
    for pattern in patterns:
        # The expression may contain "=", the name and the unit may not.
        declared, _, regex = pattern.partition("=")
        # The unit is the text after the first colon; a value without one is in "units".
        name, unit = [*declared.split(":"), "units"][:2]
        numbers = []
        for run in runs:
            text = run["printed"]
            # With a group in the expression, a match is the text of the group.
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

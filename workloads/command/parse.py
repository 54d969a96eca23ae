"""A command: its wall time, its CPU time and memory, and further metrics that it prints."""

import re

from kit.checks import number, require, require_equal, require_numbered, require_parameters
from kit.logs import Object, Value, decoded, value

# The kernel counts CPU time in whole microseconds: less than one of a run is counted as one.
LEAST_SECONDS = 1e-6


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the values of a lap, each the mean over its runs.

    CPU time and memory are those of the system's control group, which the harness reads before and
    after the runs; where the host has no such group, they are those of the command's processes.
    """
    kinds: dict[str, list[Object]] = {key: [] for key in ("observed", "tool", "run", "printed")}
    order = []
    for number_of_line, line in enumerate(lines, 1):
        if line.startswith("{") and line.rstrip() != "{":
            content = decoded(line, f"line {number_of_line}")
            order.append(next(iter(content), ""))
            kinds.setdefault(order[-1], []).append(content)
    # The warm-up has the same form, and stands before the first observation.
    first = order.index("observed") if "observed" in order else 0
    form = "observed tool(( run)+|( run printed)+) done observed"
    fits = re.fullmatch(form, " ".join(order[first:]))
    complete = all(content == {"done": True} for content in kinds.get("done", []))
    require(fits and complete, "the log is not that of one lap of a command")
    warmups = order[:first].count("run")
    runs, printed = kinds["run"][warmups:], kinds["printed"][order[:first].count("printed") :]
    head = kinds["tool"][-1]
    require_parameters(head, parameters, "runs", "limit")
    require_equal("kept", head["kept"], parameters["kept_bytes"])
    require_numbered(runs, "run")
    require_equal("the number of runs", len(runs), parameters["runs"])
    seconds = [number(run, "seconds") for run in runs]
    require(max(seconds) <= parameters["limit"] + 1, "a run took longer than the limit")
    return [
        value("time", "s", sum(seconds) / len(runs)),
        *_resources(runs, kinds["observed"]),
        *_patterns(printed, parameters["patterns"]),
    ]


def _resources(runs: list[Object], observed: list[Object]) -> list[Value]:
    """Return the CPU time of a run, and the peak memory."""
    before, after = observed
    if before["user_seconds"] is None or after["user_seconds"] is None:
        user = sum(number(run, "user", zero=True) for run in runs)
        total = user + sum(number(run, "system", zero=True) for run in runs)
    else:
        kinds = ("user_seconds", "system_seconds")
        user, system = (number(after, kind, True) - number(before, kind, True) for kind in kinds)
        total = user + system
        # Their sum is exact.  Version 1 splits it by all ticks so far, so that one of both may
        # become smaller in a short run.
        user = min(max(user, 0), total)
    require(total >= 0, "the CPU time of the control group went back")
    largest = max(number(run, "rss_bytes", zero=True) for run in runs)
    peak = largest if after["peak_bytes"] is None else number(after, "peak_bytes")
    system = max((total - user) / len(runs), LEAST_SECONDS)
    user = max(user / len(runs), LEAST_SECONDS)
    return [
        value("cpu", "s", user + system),
        value("user", "s", user),
        value("system", "s", system),
        value("memory", "MB", 1e-6 * peak),
    ]


def _patterns(printed: list[Object], patterns: list[str]) -> list[Value]:
    """Return the mean over the runs of each number that a pattern finds last in what a run prints.

    patterns: NAME[:UNIT[:SIDE]]=REGEX.
    """
    values = []
    for pattern in patterns:
        declared, _, regex = pattern.partition("=")
        name, unit = [*declared.split(":"), "units"][:2]
        numbers = []
        for text in printed:
            matches = re.findall(regex, text["printed"], re.MULTILINE)
            last = text["printed"].strip()[-200:] or "nothing"
            reason = (
                f"{name}: nothing that a run printed matches {regex!r}; it printed last: {last}"
            )
            require(matches, reason)
            numbers.append(_number(name, matches[-1]))
        require(numbers, f"{name}: nothing was kept of what the command printed")
        values.append(value(name, unit, sum(numbers) / len(numbers)))
    return values


def _number(name: str, text: str) -> float:
    """Return the number that a pattern found."""
    try:
        return float(text)
    except ValueError:
        require(False, f"{name}: {text[:60]!r} is no number")
        raise

"""How the workloads' parsers read logs.

A workload's ``parse(lines, parameters)`` returns the values that a log holds, or refuses the log:
it alone decides whether a run passed.  It checks that the log is complete and in order, that the
programs ran with the cell's parameters, and that tools and servers themselves report no errors and
the expected counts.  One identity for each tool (rate × time = count) catches a changed unit.  It
does not recompute numbers that a program prints twice: the SHA-256 of the log, which is in the
cell's record, protects its bytes.

Our programs print one JSON object per line, and ``{"done": true}`` at the end.  Lines that do not
start with ``{`` belong to other tools, and so does ``{`` alone, which opens JSON of several lines.

A parser needs no checks of types: where it raises KeyError, TypeError or the like, the log counts
as broken (:func:`guarded`).
"""

import functools
import json
import re
from collections import namedtuple
from collections.abc import Callable

from kit.checks import (
    BrokenLogError,
    number,
    numbers,
    plain,
    require,
    require_close,
    require_duration,
    require_equal,
)
from kit.checks import Object as Object


class Value(namedtuple("Value", ["metric", "unit", "value", "factors"], defaults=[{}])):
    """A measured value, a number, with its factors: a mapping of names to numbers or texts."""

    __slots__ = ()

    @property
    def key(self) -> tuple[str, ...]:
        """The metric and the factors, as texts: no two values of a log have the same."""
        return (self.metric, *sorted(f"{name}={plain(x)}" for name, x in self.factors.items()))


Parser = Callable[[list[str], Object], list[Value]]


class Point(namedtuple("Point", ["head", "objects", "lines"])):
    """A point of a sweep: the object that opens it, and the objects and lines up to its end."""

    __slots__ = ()


class Log(namedtuple("Log", ["objects", "points"])):
    """A complete log: its objects by their first key, and its points, each in the log's order."""

    __slots__ = ()


def guarded(parse: Parser) -> Parser:
    """Wrap a parser so that it raises BrokenLogError alone where it does not understand a log."""

    @functools.wraps(parse)
    def guarded_parse(lines: list[str], parameters: Object) -> list[Value]:
        try:
            values = parse(lines, parameters)
            for value in values:
                for factor in value.factors.values():
                    good = isinstance(factor, str | int | float)
                    require(good, f"a factor of {value.metric} is neither a number nor a text")
            return values
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            reason = f"the log cannot be read: {type(error).__name__}: {error}"
            raise BrokenLogError(reason[:300]) from error

    return guarded_parse


def value(metric: str, unit: str, number: float, **factors: object) -> Value:
    """Make a value with its factors; those that are None are left out."""
    present = {name: factor for name, factor in factors.items() if factor is not None}
    return Value(metric, unit, float(number), present)


def decoded(text: str, what: str) -> Object:
    """Decode a JSON object.

    Raises BrokenLogError for other texts; `what` names the text in its reason.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, dict):
        return content
    raise BrokenLogError(f"{what} is not a complete JSON object: {text[:60]}")


def read(lines: list[str], order: str) -> Log:
    """Read a log whose objects are complete and in the expected order.

    order: regular expression for the first keys of all objects, each after a space, without the
    last one, "done".
    A point goes from an object "point" to the object "end" of the same name.  A run that went on in
    slices (:func:`seconds_worked`) begins with "slice", where the order allows that, and has
    "slices" behind "done".
    Raises BrokenLogError.
    """
    places = [at for at, line in enumerate(lines) if line.startswith("{") and line.rstrip() != "{"]
    objects = [decoded(lines[at], f"line {at + 1}") for at in places]
    keys = [next(iter(content), "") for content in objects]
    closing = objects[-2:-1] if keys[-1:] == ["slices"] else objects[-1:]
    require(closing == [{"done": True}], 'the log does not end with {"done": true}')
    present = "".join(f" {key}" for key in keys)
    fits = re.fullmatch(f"{order} done( slices)?", present)
    require(fits, f"the log should hold{order} done, and holds{present}"[:600])
    sliced = "slice" in keys
    require(sliced == ("slices" in keys), "a run in slices should print when each of them was")
    by_key: dict[str, list[Object]] = {}
    for key, content in zip(keys, objects, strict=True):
        by_key.setdefault(key, []).append(content)
    starts = [number for number, key in enumerate(keys) if key == "point"]
    ends = [number for number, key in enumerate(keys) if key == "end"]
    points = []
    for first, last in zip(starts, ends, strict=True):
        head, tail, start, end = objects[first], objects[last], places[first], places[last]
        reason = f"the point of line {start + 1} does not end in line {end + 1}"
        require(head["point"] == tail["end"], reason)
        points.append(Point(head, objects[first + 1 : last], lines[start + 1 : end]))
    return Log(by_key, points)


def seconds_worked(log: Log, runs: list[Object], seconds: float) -> float:
    """Sum the seconds for which runs went on: all, unless they were frozen between slices.

    runs: each with its `seconds`, and the moment when it `ended`, in microseconds since the epoch.
    seconds: of all runs together.
    A slice counts until its freeze is requested; a run may begin or end until the freeze is seen.
    Raises BrokenLogError where runs and slices contradict each other.
    """
    require_close("seconds", seconds, sum(numbers(runs, "seconds")))
    if "slices" not in log.objects:
        return seconds
    slices = log.objects["slices"][0]["slices"]
    moments: list[float] = []
    for thawed, requested, frozen in slices:
        moments += (thawed, requested, frozen)
    require(moments == sorted(moments), "slices should follow one another")
    worked, last_end = 0.0, 0.0
    for run in runs:
        begin, end = run["ended"] - 1e6 * run["seconds"], run["ended"]
        # Moments are in whole microseconds.
        in_order = last_end <= begin + 2
        in_slices = _is_in_slice(begin, slices) and _is_in_slice(end, slices)
        reason = "a run should begin and end in slices, after the run before it"
        require(in_order and in_slices, reason)
        last_end = end
        for thawed, requested, _ in slices:
            worked += max(0, min(end, requested) - max(begin, thawed))
    return 1e-6 * worked


def _is_in_slice(moment: float, slices: list[list[float]]) -> bool:
    """Whether a moment lies in a slice, from its thaw until its freeze is seen."""
    return any(thawed - 2 <= moment <= frozen for thawed, _, frozen in slices)


def settings(lines: list[str]) -> Object:
    """Read lines KEY=value, each key once: numbers where they are written as numbers, or texts."""
    pairs = [line.rstrip().split("=", 1) for line in lines if re.match("[A-Z][A-Z0-9_]*=", line)]
    require(len(dict(pairs)) == len(pairs), "a line KEY=value is there twice")
    return {key: text_or_number(text) for key, text in pairs}


def text_or_number(text: str) -> str | float:
    """Return the number that a text is, or the text."""
    return float(text) if re.fullmatch(r"-?[0-9]+([.][0-9]+)?", text) else text


def check_cpu_usage(observed: list[Object], seconds: float) -> tuple[float, float]:
    """Return the host's CPU usage between two observations, after checking that it is possible.

    seconds: duration of the run between them.
    Returns the busy time in CPU seconds, and the utilisation: 1 if all CPUs were always busy.
    Raises BrokenLogError if the observations contradict each other or the duration.
    """
    before, after = observed
    elapsed = number(after, "seconds") - number(before, "seconds")
    busy = number(after, "busy_seconds", zero=True) - number(before, "busy_seconds", zero=True)
    cpus = number(before, "cpus")
    require_equal("the number of processors", number(after, "cpus"), cpus)
    require_duration("the processors were observed for", elapsed, seconds)
    # Busy time is counted in hundredths of a second, in several sums for each processor.
    largest = 1.02 * cpus * elapsed + max(0.1, 0.05 * cpus)
    reason = f"the processors cannot have been busy for {plain(busy)} of {plain(elapsed)} s"
    require(0 < busy <= largest, reason)
    return busy, busy / (cpus * elapsed)

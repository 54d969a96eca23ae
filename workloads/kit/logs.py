"""How the workloads' parsers read logs.

A workload's ``parse(lines, parameters)`` returns the values that a log holds.  It checks that the log is complete and
in order, that what ran is what was asked for, and that the tools and servers themselves report no errors and the
expected counts.  One identity for each tool (rate × time = count) catches a changed unit.  It does not recompute what
a program prints twice: the SHA-256 of the log, which is in the cell's record, protects its bytes.

Our programs print one JSON object per line, and ``{"done": true}`` at the end.  Lines that do not start with ``{``
belong to other tools, and so does ``{`` alone, which opens JSON of several lines.

A parser needs no checks of types: where it raises KeyError, TypeError or the like, the log counts as broken
(:func:`guarded`).
"""

import functools
import itertools
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
    require_equal,
    require_lasted,
)
from kit.checks import Object as Object


class Value(namedtuple("Value", ["metric", "unit", "value", "factors"], defaults=[{}])):
    """A measured value: a number.

    factors: of what it is the value, a mapping of names to numbers or texts.
    """

    __slots__ = ()

    @property
    def key(self) -> tuple[str, ...]:
        """The metric and the factors, as texts: no two values of a log have the same."""
        return (self.metric, *sorted(f"{name}={plain(x)}" for name, x in self.factors.items()))


Parser = Callable[[list[str], Object], list[Value]]


class Point(namedtuple("Point", ["head", "objects", "lines"])):
    """One point of a sweep: the object that opens it, and the objects and lines between that one and its end."""

    __slots__ = ()


class Log(namedtuple("Log", ["objects", "points"])):
    """A complete log: its objects by their first key, and its points, each in the order of the log."""

    __slots__ = ()


def guarded(parse: Parser) -> Parser:
    """The parser, which raises BrokenLogError and nothing else for a log that it does not understand."""

    @functools.wraps(parse)
    def parsed(lines: list[str], parameters: Object) -> list[Value]:
        try:
            values = parse(lines, parameters)
            for one in values:
                good = all(isinstance(factor, str | int | float) for factor in one.factors.values())
                require(good, f"a factor of {one.metric} is neither a number nor a text")
            return values
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            raise BrokenLogError(
                f"the log cannot be read: {type(error).__name__}: {error}"[:300]
            ) from error

    return parsed


def value(metric: str, unit: str, number: float, **factors: object) -> Value:
    """A value with its factors; those that are None are left out."""
    present = {name: factor for name, factor in factors.items() if factor is not None}
    return Value(metric, unit, float(number), present)


def decoded(text: str, what: str) -> Object:
    """A text as a JSON object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found
    raise BrokenLogError(f"{what} is not a complete JSON object: {text[:60]}")


def read(lines: list[str], order: str) -> Log:
    """A log whose objects are complete and in the expected order.

    order: regular expression for the first keys of all objects, each after a space, without the last one, "done".
    A point goes from an object "point" to the object "end" of the same name.  A run that went on in
    turns (:func:`worked`) begins with "turn", where the order allows that, and has "turns" behind "done".
    """
    marked = [at for at, line in enumerate(lines) if line.startswith("{") and line.rstrip() != "{"]
    found = [(at, decoded(lines[at], f"line {at + 1}")) for at in marked]
    keys = [next(iter(each), "") for _, each in found]
    closing = found[-2:-1] if keys[-1:] == ["turns"] else found[-1:]
    require(closing and closing[0][1] == {"done": True}, 'the log does not end with {"done": true}')
    present = "".join(f" {key}" for key in keys)
    fits = re.fullmatch(f"{order} done( turns)?", present)
    require(fits, f"the log should hold{order} done, and holds{present}"[:600])
    require(
        ("turn" in keys) == ("turns" in keys), "of a run in turns the log should tell when each was"
    )
    objects: dict[str, list[Object]] = {}
    for key, (_, each) in zip(keys, found, strict=True):
        objects.setdefault(key, []).append(each)
    starts, ends = (
        [number for number, key in enumerate(keys) if key == mark] for mark in ("point", "end")
    )
    points = []
    for first, last in zip(starts, ends, strict=True):
        (start, head), (end, tail) = found[first], found[last]
        require(
            head["point"] == tail["end"],
            f"the point of line {start + 1} does not end in line {end + 1}",
        )
        points.append(
            Point(head, [each for _, each in found[first + 1 : last]], lines[start + 1 : end])
        )
    return Log(objects, points)


def worked(log: Log, runs: list[Object], seconds: float) -> float:
    """How many of the seconds of runs they went on; all of them, unless they were frozen between turns.

    runs: each with its `seconds`, all of which make `seconds`, and the moment when it `ended`, in microseconds since
    the epoch.  A turn counts until its freeze is asked for; a run may begin or end until the freeze is seen.
    """
    require_close("seconds", seconds, sum(numbers(runs, "seconds")))
    if "turns" not in log.objects:
        return seconds
    turns = log.objects["turns"][0]["turns"]
    moments = [moment for turn in turns for moment in turn]
    # Turns of older logs have two moments: they last until the freeze is seen.
    alike = {len(turn) for turn in turns} in ({2}, {3})
    require(alike and moments == sorted(moments), "turns follow one another")
    spans = [(run["ended"] - 1e6 * run["seconds"], run["ended"]) for run in runs]
    # Moments are in whole microseconds.
    apart = all(to <= begun + 2 for (_, to), (begun, _) in itertools.pairwise(spans))
    within = all(
        any(begun - 2 <= x <= frozen for begun, *_, frozen in turns) for span in spans for x in span
    )
    require(apart and within, "a run begins and ends in turns, after the one before it")
    overlaps = (
        min(to, ended) - max(since, begun) for begun, ended in spans for since, to, *_ in turns
    )
    went_on: float = sum(max(0, overlap) for overlap in overlaps)
    return 1e-6 * went_on


def settings(lines: list[str]) -> Object:
    """What a tool prints as lines KEY=value, each key once: numbers where they are written as numbers, or texts."""
    found = [line.rstrip().split("=", 1) for line in lines if re.match("[A-Z][A-Z0-9_]*=", line)]
    require(len(dict(found)) == len(found), "a line KEY=value is there twice")
    return {key: text_or_number(text) for key, text in found}


def text_or_number(text: str) -> str | float:
    """A number where a text is one."""
    return float(text) if re.fullmatch(r"-?[0-9]+([.][0-9]+)?", text) else text


def processors(observed: list[Object], seconds: float) -> tuple[float, float]:
    """What the host's processors did between two observations: busy seconds, and these as a share of all time.

    seconds: how long that took which ran in between.
    """
    before, after = observed
    watched = number(after, "seconds") - number(before, "seconds")
    busy = number(after, "busy_seconds", zero=True) - number(before, "busy_seconds", zero=True)
    cpus = number(before, "cpus")
    require_equal("the number of processors", number(after, "cpus"), cpus)
    require_lasted("the processors were observed for", watched, seconds)
    # Busy time is counted in hundredths of a second, in several sums for each processor.
    most = 1.02 * cpus * watched + max(0.1, 0.05 * cpus)
    require(
        0 < busy <= most,
        f"the processors cannot have been busy for {plain(busy)} of {plain(watched)} s",
    )
    return busy, busy / (cpus * watched)

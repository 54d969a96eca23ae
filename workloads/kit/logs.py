"""Functions with which the workloads' parsers read logs.

A workload's ``parse(lines, parameters)`` returns the values that a log holds, or refuses the log:
it alone decides whether a run passed.  It checks that the log is complete and in order, that the
programs ran with the cell's parameters, and that tools and servers themselves report no errors and
the expected counts.  One identity for each tool (rate × time = count) catches a changed unit.  It
does not recompute numbers that a program prints twice: the SHA-256 of the log, which is in the
cell's record, protects its bytes.

The project's programs print one JSON object per line, and ``{"done": true}`` at the end.  Lines
that do not start with ``{`` belong to other tools, and so does a line ``{``, which opens JSON of
several lines.

A parser needs no checks of types: where it raises KeyError, TypeError or the like, the log counts
as broken (:func:`guard_parser`).
"""

import json
import re
from collections import namedtuple
from collections.abc import Callable

from kit.checks import (
    BrokenLogError,
    format_value,
    get_number,
    get_numbers,
    require,
    require_close,
    require_duration,
    require_equal,
)
from kit.checks import Object as Object

# Times in a log are whole microseconds, so that rounding may change the difference of two by this.
ROUNDING_US = 2


class Value(namedtuple("Value", ["metric", "unit", "value", "factors"], defaults=[{}])):
    """A measured value of a log.

    metric, unit: as workload.yaml declares them.
    value: a number.
    factors: the settings of the measurement, numbers or strings by their names, which become
    columns of the tables.
    """

    __slots__ = ()

    @property
    def key(self) -> tuple[str, ...]:
        """The metric and the sorted strings NAME=FACTOR, which identify the value in its log.

        For example ("latency", "job=fsync", "percentile=99.00").

        Strata averages the values of several laps that have the same key.
        """
        factors = [f"{name}={format_value(factor)}" for name, factor in self.factors.items()]
        return (self.metric, *sorted(factors))


Parser = Callable[[list[str], Object], list[Value]]


class Point(namedtuple("Point", ["head", "objects", "lines"])):
    """A point of a sweep, which is one measurement with its own settings.

    head: the object "point" that opens it.
    objects: the objects between the head and the object "end".
    lines: all lines between the head and the object "end", also those of other tools.
    """

    __slots__ = ()


class Log(namedtuple("Log", ["objects", "points"])):
    """A complete log.

    objects: lists of its objects, by their first key.
    points: a list of its points.
    Both are in the order of the log.
    """

    __slots__ = ()


def guard_parser(parse: Parser) -> Parser:
    """Return a parser that raises BrokenLogError for the usual errors of a given parser.

    The returned parser also raises BrokenLogError if a factor is neither a number nor a text.
    Strata wraps the function `parse` of each workload in this, so that parsers need no checks of
    types and keys.
    """

    def guarded_parse(lines: list[str], parameters: Object) -> list[Value]:
        """Call the parser, and raise BrokenLogError for its KeyError, TypeError and the like."""
        try:
            values = parse(lines, parameters)
            for value in values:
                for factor in value.factors.values():
                    is_factor = isinstance(factor, str | int | float)
                    reason = f"a factor of {value.metric} is neither a number nor a text"
                    require(is_factor, reason)
            return values
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            # An error may quote a long text of the log: the message is cut to 300 characters.
            reason = f"the log cannot be read: {type(error).__name__}: {error}"
            raise BrokenLogError(reason[:300]) from error

    return guarded_parse


def build_value(metric: str, unit: str, number: float, **factors: object) -> Value:
    """Return a value with its factors; factors that are None are left out.

    metric, unit: as workload.yaml declares them; Strata refuses others.
    number: the value, which becomes a float.
    factors: numbers or strings by their names.  They become columns of the tables; the figures of
    workload.yaml and the claims select values by them.
    """
    factors_with_value = {name: factor for name, factor in factors.items() if factor is not None}
    return Value(metric, unit, float(number), factors_with_value)


def decode_object(text: str, name: str) -> Object:
    """Return the JSON object that a string holds.

    text: the string.
    name: the string's name in the message, for example "line 3"; the message also shows the first
    60 characters of the string.
    Raises BrokenLogError if the string is not one complete JSON object.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        # The check below refuses None with the message for all kinds of bad text.
        content = None
    if isinstance(content, dict):
        return content
    raise BrokenLogError(f"{name} is not a complete JSON object: {text[:60]}")


def is_object_line(line: str) -> bool:
    """Return whether a line of a log holds a JSON object of its own.

    A line ``{`` alone does not: it opens JSON of several lines, which fio prints.
    """
    return line.startswith("{") and line.rstrip() != "{"


def read_objects(lines: list[str], order: str) -> Log:
    """Decode the objects of a log, and check that they are complete and in the expected order.

    lines: the lines of the log; lines without an object (:func:`is_object_line`) are skipped.
    order: regular expression for the first keys of all objects, each after a space, without the
    last one, "done": for example " tool( pass)+".  It has to follow every change of the first keys
    that a program prints.
    A point goes from an object "point" to the object "end" of the same name.  The log of a run in
    slices (:func:`compute_worked_seconds`) has an object "slices" after "done", which Strata adds.
    Raises BrokenLogError if an object is incomplete, missing or out of order.
    """
    # The positions of the lines that hold an object.
    positions = []
    for position, line in enumerate(lines):
        if is_object_line(line):
            positions.append(position)
    objects = [decode_object(lines[position], f"line {position + 1}") for position in positions]
    keys = [next(iter(content), "") for content in objects]
    has_slices = keys[-1:] == ["slices"]
    program_objects = objects[:-1] if has_slices else objects
    is_done = program_objects[-1:] == [{"done": True}]
    require(is_done, 'the log does not end with {"done": true}')
    key_list = "".join(f" {key}" for key in keys)
    is_in_order = re.fullmatch(f"{order} done( slices)?", key_list)
    # Both lists may be long: the message is cut to 600 characters.
    require(is_in_order, f"the log should hold{order} done, and holds{key_list}"[:600])
    objects_by_key = group_by_first_key(objects)
    return Log(objects_by_key, _split_points(lines, positions, keys, objects))


def group_by_first_key(objects: list[Object]) -> dict[str, list[Object]]:
    """Return lists of objects by their first key, in the order of the log.

    The first key says what an object is.  That of an empty object counts as "".
    """
    objects_by_key: dict[str, list[Object]] = {}
    for content in objects:
        objects_by_key.setdefault(next(iter(content), ""), []).append(content)
    return objects_by_key


def _split_points(
    lines: list[str], positions: list[int], keys: list[str], objects: list[Object]
) -> list[Point]:
    """Return the points of a log in its order.

    lines: the lines of the log.
    positions: the position in `lines`, from 0, of each object.
    keys: the first key of each object.
    objects: the objects of the log.
    The caller must have checked the order of the objects, so that each "point" has its "end".
    Raises BrokenLogError if an object "end" names another point than the object "point" before it.
    """
    starts = [index for index, key in enumerate(keys) if key == "point"]
    ends = [index for index, key in enumerate(keys) if key == "end"]
    points = []
    for start, end in zip(starts, ends, strict=True):
        head, first_line, last_line = objects[start], positions[start], positions[end]
        reason = f"the point of line {first_line + 1} does not end in line {last_line + 1}"
        require(head["point"] == objects[end]["end"], reason)
        between = lines[first_line + 1 : last_line]
        points.append(Point(head, objects[start + 1 : end], between))
    return points


def compute_worked_seconds(log: Log, runs: list[Object], seconds: float) -> float:
    """Return the seconds during which runs were not frozen; all seconds if the log has no slices.

    log: the log, to which Strata adds an object "slices" (strata/measure/block.py) if several runs
    took turns.  For each slice it holds the times of its thaw, of the request of its freeze, and of
    its freeze, in microseconds since 1970.
    runs: objects with the keys `seconds`, the duration, and `ended`, the time of the end in
    microseconds since 1970.
    seconds: the printed duration of all runs together, which must be the sum of their `seconds`.
    The time from the thaw of a slice until the request of its freeze counts.  A run may also begin
    or end between the request and the freeze, but this time does not count.
    Raises BrokenLogError if runs and slices contradict each other.
    """
    require_close("seconds", seconds, sum(get_numbers(runs, "seconds")))
    if "slices" not in log.objects:
        return seconds
    [marker] = log.objects["slices"]
    slices = marker["slices"]
    timestamps: list[float] = []
    for thaw, freeze_request, freeze in slices:
        timestamps += (thaw, freeze_request, freeze)
    require(timestamps == sorted(timestamps), "slices should follow one another")
    worked_microseconds, previous_end = 0.0, 0.0
    for run in runs:
        end = run["ended"]
        begin = end - 1e6 * run["seconds"]
        is_in_order = previous_end <= begin + ROUNDING_US
        is_in_slices = _is_in_slice(begin, slices) and _is_in_slice(end, slices)
        reason = "a run should begin and end in slices, after the run before it"
        require(is_in_order and is_in_slices, reason)
        previous_end = end
        for thaw, freeze_request, _ in slices:
            # The overlap is negative for a slice before or after the run, which adds nothing.
            overlap = min(end, freeze_request) - max(begin, thaw)
            worked_microseconds += max(0, overlap)
    return 1e-6 * worked_microseconds


def _is_in_slice(timestamp: float, slices: list[list[float]]) -> bool:
    """Return whether a timestamp lies in a slice: between its thaw and its freeze.

    timestamp: microseconds since 1970; by rounding it may lie just before the thaw.
    slices: for each slice the timestamps of its thaw, of the request of its freeze, and of its
    freeze.
    """
    return any(thaw - ROUNDING_US <= timestamp <= freeze for thaw, _, freeze in slices)


def parse_settings(lines: list[str]) -> Object:
    """Return the values of lines KEY=value by their keys; skip other lines.

    lines: for example "SEND_CPU=4.2", which becomes {"SEND_CPU": 4.2}.
    A key consists of capital letters, digits and underscores.  A value is converted by
    :func:`parse_number_or_text`.
    Raises BrokenLogError if a key occurs twice.
    """
    pairs = [line.rstrip().split("=", 1) for line in lines if re.match("[A-Z][A-Z0-9_]*=", line)]
    require(len(dict(pairs)) == len(pairs), "a line KEY=value is there twice")
    return {key: parse_number_or_text(text) for key, text in pairs}


def parse_number_or_text(text: str) -> str | float:
    """Return the number that a string represents in decimal notation, or else the string.

    For example 4.0 for "4".  A number with an exponent, or with a plus sign, stays a string.
    """
    return float(text) if re.fullmatch(r"-?[0-9]+([.][0-9]+)?", text) else text


def read_cpu_usage(observations: list[Object], seconds: float) -> tuple[float, float]:
    """Check two observations of the host's CPUs, and return the CPU usage between them.

    observations: the two objects "observed" from before and after a run, with `seconds`,
    `busy_seconds` and `cpus`.  Strata (strata/host/counters.py) prints them if a step of
    workload.yaml observes the CPUs.
    seconds: duration of the run between them.
    Returns the busy time in CPU seconds, and the utilisation, which is 1 if all CPUs were always
    busy.
    Raises BrokenLogError if the observations contradict each other or the duration.
    """
    before, after = observations
    elapsed_seconds = get_number(after, "seconds") - get_number(before, "seconds")
    busy_seconds_before = get_number(before, "busy_seconds", allow_zero=True)
    busy_seconds = get_number(after, "busy_seconds", allow_zero=True) - busy_seconds_before
    cpus = get_number(before, "cpus")
    require_equal("the number of processors", get_number(after, "cpus"), cpus)
    require_duration("the processors were observed for", elapsed_seconds, seconds)
    # Busy time is counted in hundredths of a second, in several sums for each CPU.  So the busy
    # time may exceed the elapsed time by 2 %, and by 0.05 s for each CPU, at least 0.1 s in all.
    max_busy_seconds = 1.02 * cpus * elapsed_seconds + max(0.1, 0.05 * cpus)
    times = f"{format_value(busy_seconds)} of {format_value(elapsed_seconds)} s"
    reason = f"the processors cannot have been busy for {times}"
    require(0 < busy_seconds <= max_busy_seconds, reason)
    return busy_seconds, busy_seconds / (cpus * elapsed_seconds)

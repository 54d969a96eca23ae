"""Parse the logs of cells into values, by the workloads' parsers and in bounded time.

This module imports only the standard library and Strata, since every cell loads it at its end.
"""

import functools
import importlib.util
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence

from strata.measure import log_sections
from strata.util import bounded, paths
from strata.util.data_types import Fields, PlannedWorkload, Record
from strata.util.errors import UserError

# The modules that parsers share.
sys.path.insert(0, os.path.join(paths.PROJECT, "workloads"))
from kit.checks import BrokenLogError, format_value, require
from kit.logs import Parser, Value, guard_parser

__all__ = ["BrokenLogError", "Parser", "Value", "format_value", "load_parser", "parse_log"]
# The log's path, the record, and the workload as planned for its environment.
LoggedCell = tuple[str, Record, PlannedWorkload]
# A value of a cell, the way in which its runs were taken, and the values of its laps.
LapValues = tuple[Value, str, list[float]]


def parse_cell_logs(
    cells: Iterable[LoggedCell], folder: str, named: bool = True
) -> Iterator[Fields]:
    """Yield the outcome of each log: ``{values, program}``, or ``{broken}`` with the reason.

    cells: the log's path, the record and the planned workload of each cell.
    folder: the path of the project's folder, whose parsers are used.
    named: whether error messages name the log besides its parser.
    The key `values` is as from :func:`parse_log`, with lists instead of tuples.  The key `program`
    is as from :func:`find_program_facts`; it is missing if the log does not describe a program.
    The reason in `broken` is cut to :data:`strata.util.bounded.REASON` characters.
    Outcomes are in the order of `cells`.  strata/measure/parsed.py stores them in results/parsed.
    The parsers run in a process with limits on time and memory (:mod:`strata.util.bounded`), and
    only while the result is read.
    Raises UserError if a parser exceeds a limit or cannot be loaded.
    """

    def parse_logs(name_part: bounded.NamePart) -> Iterator[Fields]:
        """Yield the outcome of each log in `cells`; it runs in the process with limits.

        name_part: sets the name of the log and its parser, which messages on limits have.
        """
        for path, record, planned in cells:
            with open(path, "rb") as file:
                log = file.read()
            parser_path = f"workloads/{record['workload']}/parse.py"
            name_part(f"{path}: {parser_path}" if named else parser_path)
            parse = load_parser(record["workload"], folder)
            try:
                yield {
                    "values": parse_log(log, record, planned["metrics"], parse),
                    **find_program_facts(log),
                }
            except BrokenLogError as error:
                yield {"broken": str(error)[: bounded.REASON]}

    return bounded.run_in_bounded_process(parse_logs)


def check_parser(workload: str, folder: str) -> None:
    """Raise UserError if the parser of a workload is missing or cannot be loaded.

    The parser is loaded in a process with limits on time and memory.
    folder: the folder of the project.
    """
    path = f"workloads/{workload}/parse.py"
    if not os.path.lexists(os.path.join(folder, path)):
        raise UserError(f"{path}: there is no such file: write one (docs/adding-a-workload.md)")

    def load_named_parser(name_part: bounded.NamePart) -> Iterator[None]:
        """Load the parser, and yield once; it runs in the process with limits.

        name_part: sets the name of the parser's file, which messages on limits have.
        """
        name_part(path)
        load_parser(workload, folder)
        yield None

    # The iterator does its work only while it is read.
    list(bounded.run_in_bounded_process(load_named_parser))


def find_program_facts(log: bytes) -> Fields:
    """Return ``{program: facts}``: the facts of the measured program that a log states.

    log: the content of the file.
    The facts are the keys of the first line that looks like a JSON object with the key `tool`, and
    the largest `huge_page_bytes` in the log.  The result is empty if the log has neither.  The
    cell's record keeps the facts as `program`.
    Raises BrokenLogError if the line is not valid JSON.
    """
    line = re.search(rb'^\{.*"tool":.*\}$', log, re.MULTILINE)
    try:
        facts: Fields = json.loads(line[0]) if line else {}
    # The log may be of an untrusted archive: JSON that is nested too deeply raises RecursionError.
    except (ValueError, RecursionError) as error:
        raise BrokenLogError(f"the line with the key tool is not JSON: {error}") from error
    # 18 digits: a larger number is not a size in bytes, and is skipped.
    sizes = [int(size) for size in re.findall(rb'"huge_page_bytes": ([0-9]{1,18})\b', log)]
    if sizes:
        facts["huge_page_bytes"] = max(sizes)
    return {"program": facts} if facts else {}


@functools.cache
def load_parser(workload: str, folder: str = paths.PROJECT) -> Parser:
    """Load and return the function `parse` from workloads/NAME/parse.py in a project's folder.

    The function takes the lines of a log and the parameters of the cell's record, and returns the
    values.  It raises BrokenLogError for a log that it cannot parse; `guard_parser` in
    workloads/kit/logs.py converts a KeyError, TypeError and the like.
    workload: the name of the workload.
    folder: the absolute path of the project's folder.
    Adds the folder workloads to `sys.path`, where parsers find `kit`.  Each parser is loaded once.
    Raises UserError that names the file if it cannot be loaded or defines no such function.
    """
    workloads = os.path.join(folder, "workloads")
    path = os.path.join(workloads, workload, "parse.py")
    if workloads not in sys.path:
        sys.path.append(workloads)
    # All parsers have the same file name, so each gets its own module name.
    spec = importlib.util.spec_from_file_location(f"strata_parser_of_{workload}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    # The module `dataclasses` looks up in `sys.modules` the module of a class.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        # The statements of an author's module may raise anything.
        raise UserError(f"{path}: cannot be loaded: {type(error).__name__}: {error}") from error
    parse = getattr(module, "parse", None)
    # Only a function of Python has `__code__`; other callables are assumed to take two arguments.
    argument_count = getattr(getattr(parse, "__code__", None), "co_argcount", 2)
    if not callable(parse) or argument_count != 2:
        raise UserError(f"{path}: needs a function parse(lines, parameters)")
    return guard_parser(parse)


def parse_log(log: bytes, record: Record, metrics: Fields, parse: Parser) -> list[LapValues]:
    """Return (value, way, values of the laps) for each value of a cell's log.

    log: the content of the file.
    record: the record of the cell.
    metrics: the metrics of the workload by name, as in the plan: each has `unit`, and if declared
    `statistic` and `optional`.
    parse: the parser, as from :func:`load_parser`.

    The values are in the order of the metrics, and the values of one metric in the order of the
    log.  Runs in slices and whole runs (the way) have separate values.  Laps that do not count
    according to the record are checked, but do not enter the values.

    Without laps the list of a value is empty.  With laps the value is the average over them
    (:func:`_average_value`).  Values of equal systems that ran at once have the factor `system`
    (from 0), unless a load generator measured them together.
    Raises BrokenLogError with the reason, after the number of the lap.
    """
    require(b"\0" not in log, "not a text file: it contains NUL bytes")
    # A byte that is not UTF-8 becomes a lone surrogate, on which parsers do not fail.
    lines = log.decode(errors="surrogateescape").removesuffix("\n").split("\n")
    # Lap → whether it counts; a lap that the record does not name counts.
    counts = {lap["lap"]: lap["counts"] for lap in record.get("laps", ())}
    values: list[LapValues] = []
    laps_by_way: dict[str, list[list[Value]]] = {}
    for lap, way, lap_lines in log_sections.split_laps(lines):
        try:
            run_values = _parse_run(lap_lines, way, record, metrics, parse)
        except BrokenLogError as error:
            raise BrokenLogError(str(error) if lap is None else f"lap {lap}: {error}") from error
        if lap is None:
            values = [(value, way, []) for value in run_values]
        elif counts.get(lap, True):
            laps_by_way.setdefault(way, []).append(run_values)
    for way, laps in laps_by_way.items():
        averages = _average_laps(laps, metrics)
        # A percentile that some lap does not have was left out, but its metric may be required.
        _check_values([value for value, _ in averages], metrics)
        values += [(value, way, lap_values) for value, lap_values in averages]
    metric_names = list(metrics)
    # Sorting is stable: values of one metric stay in the order of the log.
    return sorted(values, key=lambda entry: metric_names.index(entry[0].metric))


def _parse_run(
    lines: list[str], way: str, record: Record, metrics: Fields, parse: Parser
) -> list[Value]:
    """Return the checked values of one run.

    lines: the lines of the run.
    way: `slices` or `whole`; only a run in slices must have a line with the times of its slices.
    record: the record of the cell.
    metrics: the metrics of the workload by name, as in the plan.
    parse: the parser, as from :func:`load_parser`.
    Raises BrokenLogError with the reason.
    """
    has_slices = any(line.startswith(log_sections.SLICES) for line in lines)
    reason = "a run in slices, and no other, should say when each of them was"
    require(has_slices == (way == "slices"), reason)
    values = _parse_systems(lines, record, parse)
    _check_values(values, metrics)
    return values


def _parse_systems(lines: list[str], record: Record, parse: Parser) -> list[Value]:
    """Return the values of one run, parsed for each system, or once for the client of all systems.

    lines: the lines of the run, in sections if there are several systems.
    record: the record of the cell; `commands` say whether the run was at the client, which then
    measured all systems together.
    parse: the parser, as from :func:`load_parser`.
    If each of several systems is parsed, its values get its number, from 0, as the factor `system`.
    Raises BrokenLogError, which names the system if there are several.
    """
    parameters = record["parameters"]
    count = record.get("system", {}).get("count") or 1
    if count == 1:
        return parse(lines, parameters)
    sections = log_sections.split_sections(lines, log_sections.SYSTEM_MARKER)
    client_commands = [command for command in record["commands"] if command.get("at") == "client"]
    if any(command.get("step") == "run" for command in client_commands):
        return parse(log_sections.select_system_lines(sections, None), parameters)
    values = []
    for system in range(count):
        try:
            system_values = parse(log_sections.select_system_lines(sections, system), parameters)
        except BrokenLogError as error:
            raise BrokenLogError(f"system {system}: {error}") from error
        for value in system_values:
            values.append(value._replace(factors={**value.factors, "system": system}))
    return values


def _average_laps(laps: list[list[Value]], metrics: Fields) -> list[tuple[Value, list[float]]]:
    """Return (average, values of the laps) for each combination of a metric and factors.

    laps: the values of each lap that counts.
    metrics: the declared metrics; `statistic` of a metric says how its laps are averaged.
    Values of different laps belong together if they have the same metric and the same factors.
    A percentile that is missing in some lap is left out.  Raises BrokenLogError if a value that is
    not a percentile is missing in some lap.
    """
    values_by_key: dict[tuple[str, ...], list[Value]] = {}
    for lap in laps:
        for value in lap:
            values_by_key.setdefault(value.key, []).append(value)
    averages = []
    for values in values_by_key.values():
        first = values[0]
        lap_values = [value.value for value in values]
        statistic = metrics[first.metric].get("statistic")
        if len(values) < len(laps):
            reason = f"not every lap has the same values of {first.metric}"
            require(statistic == "percentile", reason)
            continue
        average = _average_value(lap_values, statistic)
        averages.append((first._replace(value=average), lap_values))
    return averages


def _average_value(lap_values: Sequence[float], statistic: str | None) -> float:
    """Return the average of a value over the laps.

    lap_values: the value in each lap, at least one; all are finite and positive.
    statistic: the statistic of the metric, as workload.yaml declares it: "harmonic" for the
    harmonic mean, "percentile" for the median, otherwise the arithmetic mean.
    """
    if statistic == "harmonic":
        # The rate of all work over all time: J. E. Smith, Characterizing computer performance with
        # a single number, Communications of the ACM 31, 1988.
        return len(lap_values) / sum(1 / value for value in lap_values)
    if statistic == "percentile":
        # The median, since a mean of percentiles is not a percentile.  The module statistics would
        # take a cell's time.
        ordered = sorted(lap_values)
        # For an odd number of values both indices are the same.
        upper = len(ordered) // 2
        lower = len(ordered) - 1 - upper
        return (ordered[lower] + ordered[upper]) / 2
    return sum(lap_values) / len(lap_values)


def _check_values(values: list[Value], metrics: Fields) -> None:
    """Raise BrokenLogError unless the values are distinct, positive and as the metrics declare.

    Values are distinct if no two have the same metric and the same factors.
    metrics: the metrics by name, with `unit`; one that is not `optional` needs a value.
    """
    for metric, unit, number, _ in values:
        require(metric in metrics, f"the parser returns {metric}, which is not a declared metric")
        declared_unit = metrics[metric]["unit"]
        reason = f"{metric} should be in {declared_unit}, and the parser returns it in {unit}"
        require(unit == declared_unit, reason)
        is_positive = math.isfinite(number) and number > 0
        require(is_positive, f"{metric} is {number}, which is not positive")
    required_metrics = {name for name, metric in metrics.items() if not metric.get("optional")}
    missing_metrics = required_metrics - {value.metric for value in values}
    require(not missing_metrics, f"no value of {', '.join(sorted(missing_metrics))}")
    distinct_keys = {value.key for value in values}
    require(len(distinct_keys) == len(values), "the parser returns a value twice")

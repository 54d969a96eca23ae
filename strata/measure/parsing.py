"""The values of one cell: its log, read by its workload's checks and parser in bounded time (:func:`read`).

It needs the standard library alone, since it also runs at the end of every cell.
"""

import functools
import importlib.util
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator

from strata.measure import log_sections
from strata.util import bounded, paths
from strata.util.data_types import Fields, PlannedWorkload, Record
from strata.util.errors import UserError

# What the parsers share.
sys.path.insert(0, os.path.join(paths.PROJECT, "workloads"))
from kit.checks import BrokenLogError, plain, require
from kit.logs import Parser, Value, guarded

__all__ = ["BrokenLogError", "Parser", "Value", "load_parser", "of_laps", "plain"]
# The log's path, the record, and the workload as planned for its environment.
Given = tuple[str, Record, PlannedWorkload]


def read(given: Iterable[Given], folder: str, named: bool = True) -> Iterator[Fields]:
    """Of each log, ``{checks, values, program}``, or ``{checks, broken}`` with why it is no good one.

    checks: as of :func:`strata.measure.log_sections.checks`.  values: of :func:`of_laps`, as lists.
    folder: of the project.  named: whether messages name the log.  Raises UserError where a parser
    or a pattern exceeds a limit (:mod:`strata.util.bounded`), or a parser cannot be loaded.
    """

    def work(at: bounded.At) -> Iterator[Fields]:
        for path, record, planned in given:
            with open(path, "rb") as file:
                log = file.read()
            place = (f"{path}: " if named else "") + f"workloads/{record['workload']}"
            yield _read(log, record, planned, folder, at, place)

    return bounded.run(work)


def check_loads(workload: str, folder: str) -> None:
    """Raise UserError where a parser cannot be loaded."""

    def work(at: bounded.At) -> Iterator[None]:
        at(f"workloads/{workload}/parse.py")
        load_parser(workload, folder)
        yield None

    list(bounded.run(work))


def _read(
    log: bytes, record: Record, planned: PlannedWorkload, folder: str, at: bounded.At, place: str
) -> Fields:
    found: list[Fields] = []
    text, systems = log.decode(errors="replace"), record.get("system", {}).get("parts") or 1
    for number, check in enumerate(planned["cell"]["checks"]):
        at(f"{place}/workload.yaml: checks.{number}.pattern")
        found += log_sections.checks([check], text, systems)
    failed = [check["name"] for check in found if not check["passed"]]
    try:
        require(not failed, f"its check failed: {', '.join(failed)}")
        at(f"{place}/parse.py")
        parse = load_parser(record["workload"], folder)
        values = of_laps(log, record, planned["metrics"], parse)
        return {"checks": found, "values": values, "program": program(log)}
    except BrokenLogError as broken:
        return {"checks": found, "broken": str(broken)[: bounded.REASON]}


def program(log: bytes) -> Fields:
    """``{program: …}``: what the first program said of itself, the object with the key `tool`; with the largest
    `huge_page_bytes` that any printed.  Empty where none did.  Raises BrokenLogError where it is no JSON."""
    told = re.search(rb'^\{.*"tool":.*\}$', log, re.MULTILINE)
    try:
        found: Fields = json.loads(told[0]) if told else {}
    except ValueError as error:
        raise BrokenLogError(f"what its program says of itself is no JSON: {error}") from error
    pages = [int(size) for size in re.findall(rb'"huge_page_bytes": ([0-9]+)', log)]
    found |= {"huge_page_bytes": max(pages)} if pages else {}
    return {"program": found} if found else {}


@functools.cache
def load_parser(workload: str, folder: str = paths.PROJECT) -> Parser:
    """The parser of a workload: `parse` of workloads/NAME/parse.py below the project's folder, an absolute path.

    It takes the lines of a log and the parameters of the cell's record, and raises BrokenLogError alone.  Raises
    UserError that names the file if it cannot be loaded or defines no `parse`.
    """
    workloads = os.path.join(folder, "workloads")
    path = os.path.join(workloads, workload, "parse.py")
    if workloads not in sys.path:
        sys.path.append(workloads)
    spec = importlib.util.spec_from_file_location(f"strata_parser_of_{workload}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        parse = getattr(module, "parse", None)
        if getattr(getattr(parse, "__code__", None), "co_argcount", 2) != 2 or not callable(parse):
            raise UserError(f"{path}: needs a function parse(lines, parameters)")
        return guarded(parse)
    except UserError:
        raise
    except Exception as error:  # whatever a parser's own module level raises
        raise UserError(f"{path}: cannot be loaded: {type(error).__name__}: {error}") from error


def of_laps(
    log: bytes, record: Record, metrics: Fields, parse: Parser
) -> list[tuple[Value, list[float]]]:
    """The values of a cell, in the order of the metrics, and of each metric in the order of the log.

    Beside each stand those of its laps in their order, none of a cell without laps.

    log: the content of the file.  record: of the cell.
    metrics: of the workload, as in the plan: name to `unit`, and if declared `statistic` and `optional`.
    parse: as from :func:`load_parser`.

    Of several laps the value is their mean, of a metric whose `statistic` is harmonic the harmonic mean, and of a
    percentile the median.  Values of equal systems that ran at once have the factor `system` (from 0), unless a load
    generator measured them together.  Raises BrokenLogError with the reason.
    """
    require(b"\0" not in log, "not a text file: it contains NUL bytes")
    lines = log.decode(errors="surrogateescape").removesuffix("\n").split("\n")
    laps = []
    for lap, own in log_sections.laps(lines):
        try:
            laps.append(_of_systems(own, record, parse))
            _check(laps[-1], metrics)
        except BrokenLogError as error:
            raise BrokenLogError(str(error) if lap is None else f"lap {lap}: {error}") from error
    values = [(value, []) for value in laps[0]] if lap is None else _condensed(laps, metrics)
    # A percentile that not all laps have was left out.
    _check([value for value, _ in values], metrics)
    names = list(metrics)
    return sorted(values, key=lambda one: names.index(one[0].metric))


def _of_systems(lines: list[str], record: Record, parse: Parser) -> list[Value]:
    """The values of all systems that ran a cell at once, whose outputs stand one after the other."""
    parameters, count = record["parameters"], record.get("system", {}).get("parts") or 1
    if count == 1:
        return parse(lines, parameters)
    parts = log_sections.parts(lines, log_sections.MARK)
    # A load generator at the client reaches all systems.
    if any(
        command.get("step") == "run" and command.get("at") == "client"
        for command in record["commands"]
    ):
        return parse(log_sections.of_system(parts, None), parameters)
    values = []
    for system in range(count):
        try:
            found = parse(log_sections.of_system(parts, system), parameters)
        except BrokenLogError as error:
            raise BrokenLogError(f"system {system}: {error}") from error
        values += [one._replace(factors={**one.factors, "system": system}) for one in found]
    return values


def _condensed(laps: list[list[Value]], metrics: Fields) -> list[tuple[Value, list[float]]]:
    """The mean over the laps of each value, and what it is the mean of.

    A percentile that some lap has too few samples for is left out.
    """
    held = [{one.key: one for one in lap} for lap in laps]
    values = []
    for key in dict.fromkeys(key for lap in held for key in lap):
        one = next(lap[key] for lap in held if key in lap)
        statistic = metrics[one.metric].get("statistic")
        measured = [lap[key].value for lap in held if key in lap]
        if len(measured) < len(laps):
            require(statistic == "percentile", f"not every lap has the same values of {one.metric}")
            continue
        # The rate of all work over all time: J. E. Smith, Characterizing computer performance with a single number,
        # Communications of the ACM 31, 1988.
        if statistic == "harmonic":
            found = len(laps) / sum(1 / x for x in measured)
        elif statistic == "percentile":
            # There is no mean of percentiles: that of a lap (the median) as there are as many below as above.
            ordered, half = sorted(measured), len(laps) // 2
            found = (ordered[half] + ordered[~half]) / 2
        else:
            found = sum(measured) / len(laps)
        values.append((one._replace(value=found), measured))
    return values


def _check(values: list[Value], metrics: Fields) -> None:
    """Check that the values are those of the workload's metrics."""
    for one in values:
        require(
            one.metric in metrics,
            f"the parser returns {one.metric}, which is no metric of the workload",
        )
        unit = metrics[one.metric]["unit"]
        require(
            one.unit == unit,
            f"{one.metric} should be in {unit}, and the parser returns it in {one.unit}",
        )
        require(
            math.isfinite(one.value) and one.value > 0,
            f"{one.metric} is {one.value}, which is not positive",
        )
    there = {one.metric for one in values}
    missing = [
        name for name, metric in metrics.items() if not metric.get("optional") and name not in there
    ]
    require(not missing, f"no value of {', '.join(missing)}")
    require(
        len({one.key for one in values}) == len(values),
        "the parser returns a value twice",
    )

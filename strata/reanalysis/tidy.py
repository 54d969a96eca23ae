"""One table of all values, and another of what is missing or refused.

Files are named here, and no others are opened: some folders of the repository hold private keys.
"""

import collections
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from strata.host.observe import NOT_AVAILABLE
from strata.reanalysis import logs, mysql, workbooks
from strata.reanalysis.reading import Factors, Refusal, Value
from strata.reanalysis.source import Files, complaint, revision
from strata.results.tidy import FACTOR, merge_orders
from strata.util import files, paths, programs, progress
from strata.util.errors import UserError

SERIES_COLUMNS = ("workload", "environment", "metric", "unit")
VALUE_COLUMNS = ("selection", "repetition", "value", "file", "line")
LOGS = {"linux": "native", "docker": "docker", "vm": "vm"}
# The virtual machine's log of fio was replaced after the figures were made.
REPLACED, REVISION = "fio/results/vm.log", "b72ae3e"
# What the figures call NAT with a volume (docker-nofs) had the host's network and the container's own files: a
# transaction takes as many packets as natively, and a third of those behind NAT.
MYSQL = {"bml": "native", "docker": "docker-hostnet", "docker-nofs": "docker-hostnet-layered"}
MYSQL |= {"docker-nofs-nonet": "docker-layered", "KVM": "vm"}
MYSQL_FOLDER = "mysql/results/performance-governor"
REDIS = {"native": "native", "dockerbridge": "docker", "dockerhost": "docker-hostnet", "vm": "vm"}
# Measured again a day later over all numbers of connections, and in no figure.
SUPERSEDED = "redis/results/run_dockerbridge_20140716_2252.txt"
WORKBOOKS = {"netperf": workbooks.netperf, "nuttcp": workbooks.nuttcp}


class Row(NamedTuple):
    """A value with all that it is of; or a refusal, with neither workload nor environment."""

    file: str
    found: Value | Refusal
    workload: str = ""
    environment: str = ""


def make(folder: str, to: str, paper: str | None = None) -> None:
    """Write tidy.csv, unreadable.csv and source.json into the folder `to`, and where `paper` names a file, the paper of
    them there and its tables in `to`.

    folder: a checkout, a git directory, or a folder of the files, in which those of the older revision lie below
    ``at-b72ae3e``.  Raises UserError where it holds nothing that can be read.
    """
    if wrong := complaint(folder):
        raise UserError(wrong)
    rows = list(_rows(Files(folder)))
    values = [(row, row.found) for row in rows if isinstance(row.found, Value)]
    if not values:
        raise UserError(
            f"{folder}: holds none of the logs and workbooks that the original's figures rest on"
        )
    count: collections.Counter[tuple[Any, ...]] = collections.Counter()
    names = merge_orders(list(value.factors) for _, value in values)
    lines = []
    for row, value in values:
        factors = [value.factors.get(name, "") for name in names]
        head = (row.workload, row.environment, value.metric, value.unit)
        series = (*head, *factors, value.selection)
        count[series] += 1
        lines.append((*series, count[series], f"{value.value:.15g}", row.file, value.line))
    columns = [*SERIES_COLUMNS, *(f"{FACTOR}{name}" for name in names), *VALUE_COLUMNS]
    refused = [
        (row.file, row.found.line or "", row.found.reason)
        for row in rows
        if isinstance(row.found, Refusal)
    ]
    files.write_csv(os.path.join(to, "tidy.csv"), columns, lines)
    files.write_csv(os.path.join(to, "unreadable.csv"), ["file", "line", "reason"], refused)
    source = {
        "revision": revision(folder) or NOT_AVAILABLE,
        "files": len({row.file for row, _ in values}),
    }
    files.write_json(os.path.join(to, "source.json"), source)
    for file, line, reason in refused:
        progress.shown(f"{file}{f':{line}' if line else ''}: {reason}")
    unused = f"{len(refused)} places that cannot be used"
    progress.printed(f"reanalysis: {len(lines)} values in {len(count)} series; {unused}")
    if paper is not None:
        programs.r(os.path.join(paths.PROJECT, "analysis/reanalyse.R"), to, paper)


def _rows(source: Files) -> Iterator[Row]:
    for place, workload, read in (
        ("RandomAccess", "randomaccess", logs.randomaccess),
        ("Stream", "stream", logs.stream),
        ("fio", "fio", logs.fio),
    ):
        for name, environment in LOGS.items():
            file = f"{place}/results/{name}.log"
            if file == REPLACED:
                yield from _storage(source)
            else:
                yield from _of(source, file, workload, environment, read)
    for name, environment in LOGS.items():
        file = f"linpack/results/{name}.log"
        yield from _of(
            source,
            file,
            "linpack",
            environment,
            functools.partial(logs.linpack, name=f"{name}.log"),
        )
    for name, environment in MYSQL.items():
        yield from _database(source, f"{MYSQL_FOLDER}/{name}", environment)
    for name, read_book in WORKBOOKS.items():
        yield from _of(source, f"{name}/results/{name}.xlsx", name, "", read_book, text=False)
    for name, environment in REDIS.items():
        found = [
            file
            for file in source.names
            if file.startswith(f"redis/results/run_{name}_") and file.endswith(".txt")
        ]
        if not found:
            yield Row(
                f"redis/results/run_{name}_*.txt",
                Refusal(0, f"missing: no values of redis in {environment}"),
            )
        for file in found:
            rows = _of(source, file, "redis", environment, logs.redis)
            yield from _as(rows, "superseded") if file == SUPERSEDED else rows


def _of(
    source: Files,
    file: str,
    workload: str,
    environment: str,
    read: Callable[[Any], Any],
    text: bool = True,
) -> Iterator[Row]:
    """What a reader finds in a file."""
    content = source.read(file)
    if content is None:
        yield Row(
            file,
            Refusal(
                0, f"missing: no values of {workload}{f' in {environment}' if environment else ''}"
            ),
        )
        return
    if not content or (text and b"\0" in content):
        yield Row(file, Refusal(1, "the file is empty, or holds NUL bytes and is no text"))
        return
    try:
        found = list(read(_lines(content) if text else content))
    except ValueError as error:
        yield Row(file, Refusal(1, str(error)))
        return
    if not found:
        yield Row(file, Refusal(1, f"holds no results of {workload}"))
    for one in found:
        own = one.environment if isinstance(one, Value) else ""
        yield Row(file, one, workload, own or environment)


def _lines(content: bytes) -> list[str]:
    """The lines of a log, each as a terminal shows it: a carriage return begins it again."""
    return [
        line.rstrip("\r").split("\r")[-1]
        for line in content.decode("ascii", "replace").rstrip("\n").split("\n")
    ]


def _storage(source: Files) -> Iterator[Row]:
    """fio's log of the virtual machine as the figures show it, and the one that replaced it."""
    old = f"at-{REVISION}/{REPLACED}"
    if source.read(REPLACED) != source.read(old):
        yield from _as(_of(source, REPLACED, "fio", "vm", logs.fio), "variant")
    yield from _of(source, old, "fio", "vm", logs.fio)


def _as(rows: Iterator[Row], selection: str) -> Iterator[Row]:
    for row in rows:
        found = row.found
        yield row._replace(
            found=found._replace(selection=selection) if isinstance(found, Value) else found
        )


def _database(source: Files, folder: str, environment: str) -> Iterator[Row]:
    names = [file for file in source.names if os.path.dirname(file) == folder]
    outputs: list[list[Factors]] = []
    for kind, first in (("records-", False), ("dstat", True)):
        found = [
            file
            for file in names
            if os.path.basename(file).startswith(kind) and file.endswith(".csv") == first
        ]
        if not found:
            yield Row(
                f"{folder}/{kind}*",
                Refusal(
                    0,
                    f"missing: no {'processor use' if first else 'values'} of mysql in {environment}",
                ),
            )
        for file in found:
            read = functools.partial(mysql.dstat, outputs=outputs) if first else mysql.sysbench
            rows = list(_of(source, file, "mysql", environment, read))
            values = [row.found for row in rows if isinstance(row.found, Value)]
            if threads := [value.factors for value in values if value.metric == "throughput"]:
                outputs.append(threads)
            yield from rows

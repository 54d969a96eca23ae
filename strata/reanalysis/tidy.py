"""Write one table of all published values, and another of what is missing or refused.

Only files that are named here are opened: some folders of the repository hold private keys.
"""

import collections
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from strata.host.observe import NOT_AVAILABLE
from strata.reanalysis import logs, mysql, workbooks
from strata.reanalysis.reading import Factors, Readings, Refusal, Value
from strata.reanalysis.source import PublishedFiles, explain_unusable_folder, read_commit_id
from strata.results.tidy import FACTOR, merge_name_lists
from strata.util import files, paths, programs, progress
from strata.util.errors import UserError

# The columns of tidy.csv, between which the columns of factors are: analysis/reanalysis.R reads it.
SERIES_COLUMNS = ("workload", "environment", "metric", "unit")
VALUE_COLUMNS = ("selection", "repetition", "value", "file", "line")
# Names of files and folders in the repository, and what Strata calls their environments.
LOGS = {"linux": "native", "docker": "docker", "vm": "vm"}
# The virtual machine's log of fio was replaced after the figures were made: they show its content
# in this commit.
REPLACED, REVISION = "fio/results/vm.log", "b72ae3e"
# The figures call docker-nofs "NAT with a volume".  It had the host's network and the container's
# own files: a transaction takes as many packets as natively, and a third of those behind NAT.
MYSQL = {"bml": "native", "docker": "docker-hostnet", "docker-nofs": "docker-hostnet-layered"}
MYSQL |= {"docker-nofs-nonet": "docker-layered", "KVM": "vm"}
MYSQL_FOLDER = "mysql/results/performance-governor"
REDIS = {"native": "native", "dockerbridge": "docker", "dockerhost": "docker-hostnet", "vm": "vm"}
# A day later this was measured again for all numbers of connections; no figure shows it.
SUPERSEDED = "redis/results/run_dockerbridge_20140716_2252.txt"
WORKBOOKS = {"netperf": workbooks.read_netperf, "nuttcp": workbooks.read_nuttcp}

Reader = Callable[[Any], Readings]


class Row(NamedTuple):
    """A value or a refusal, and the file that holds it.

    workload, environment: of a value; a refusal's are not used.
    """

    file: str
    reading: Value | Refusal
    workload: str = ""
    environment: str = ""


def write_reanalysis_tables(folder: str, to: str, paper: str | None = None) -> None:
    """Write tidy.csv, unreadable.csv and source.json, and if requested the paper of reanalysis.

    folder: a checkout or git directory of the published results, or a folder of their files, in
    which files of the older revision are below ``at-b72ae3e``.
    to: the folder to write.  analysis/reanalysis.R reads the columns and keys of its files.
    paper: the path of the paper, whose tables are written into `to`; None for no paper.
    Raises UserError if the folder holds no value that can be read.
    Prints a line for each refusal, and the number of values.
    The parameters must have the names that ``add_reanalysis_options`` of strata/options.py gives to
    the options.
    """
    if reason := explain_unusable_folder(folder):
        raise UserError(reason)
    rows = list(_read_all_files(PublishedFiles(folder)))
    columns, table = _build_table(rows)
    if not table:
        raise UserError(
            f"{folder}: holds none of the logs and workbooks that the original's figures are made "
            "from"
        )
    files.write_csv(os.path.join(to, "tidy.csv"), columns, table)
    # The line is empty if the whole file is refused.
    refusals = [
        (row.file, row.reading.line or "", row.reading.reason)
        for row in rows
        if isinstance(row.reading, Refusal)
    ]
    files.write_csv(os.path.join(to, "unreadable.csv"), ["file", "line", "reason"], refusals)
    source_facts = {
        "revision": read_commit_id(folder) or NOT_AVAILABLE,
        "files": len({row.file for row in rows if isinstance(row.reading, Value)}),
    }
    files.write_json(os.path.join(to, "source.json"), source_facts)
    for file, line, reason in refusals:
        place = f"{file}:{line}" if line else file
        progress.print_message(f"{place}: {reason}")
    repetition_index = columns.index("repetition")
    # Each series has exactly one value with the repetition 1.
    series_count = sum(row[repetition_index] == 1 for row in table)
    progress.print_line(
        f"reanalysis: {len(table)} values in {series_count} series; {len(refusals)} places that "
        "cannot be used"
    )
    if paper is not None:
        programs.run_r(os.path.join(paths.PROJECT, "analysis/reanalyse.R"), to, paper)


def _build_table(rows: list[Row]) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return the names of the columns of tidy.csv, and its rows as tuples.

    rows: values and refusals; refusals are left out.
    Each factor of any value has a column, which is empty for values without the factor.  The values
    of a series are numbered from 1, in the order of `rows`.  A value has 15 significant digits.
    The items of a tuple must be in the order of `SERIES_COLUMNS`, factors and `VALUE_COLUMNS`.
    """
    values = [(row, row.reading) for row in rows if isinstance(row.reading, Value)]
    factors = merge_name_lists(list(value.factors) for _, value in values)
    repetitions: collections.Counter[tuple[object, ...]] = collections.Counter()
    table: list[tuple[object, ...]] = []
    for row, value in values:
        series = (
            row.workload,
            row.environment,
            value.metric,
            value.unit,
            *(value.factors.get(name, "") for name in factors),
            value.selection,
        )
        repetitions[series] += 1
        # A float keeps up to 15 significant digits of any decimal number.
        number = f"{value.value:.15g}"
        table.append((*series, repetitions[series], number, row.file, value.line))
    return [*SERIES_COLUMNS, *(f"{FACTOR}{name}" for name in factors), *VALUE_COLUMNS], table


def _read_all_files(source: PublishedFiles) -> Iterator[Row]:
    """Yield the rows of all files behind the original's figures.

    The order must stay: tidy.csv has it, and the numbers of repetitions follow from it.
    """
    for folder, workload, read in (
        ("RandomAccess", "randomaccess", logs.read_randomaccess),
        ("Stream", "stream", logs.read_stream),
        ("fio", "fio", logs.read_fio),
    ):
        for name, environment in LOGS.items():
            file = f"{folder}/results/{name}.log"
            if file == REPLACED:
                yield from _read_replaced_fio_log(source)
            else:
                yield from _read_file(source, file, workload, environment, read)
    for name, environment in LOGS.items():
        log = f"{name}.log"
        read_log = functools.partial(logs.read_linpack, name=log)
        yield from _read_file(source, f"linpack/results/{log}", "linpack", environment, read_log)
    for name, environment in MYSQL.items():
        yield from _read_mysql_folder(source, f"{MYSQL_FOLDER}/{name}", environment)
    for name, read_book in WORKBOOKS.items():
        file = f"{name}/results/{name}.xlsx"
        yield from _read_file(source, file, name, "", read_book, is_text=False)
    for name, environment in REDIS.items():
        beginning = f"redis/results/run_{name}_"
        runs = [
            file for file in source.names if file.startswith(beginning) and file.endswith(".txt")
        ]
        if not runs:
            yield Row(f"{beginning}*.txt", _build_missing_refusal("values of redis", environment))
        for file in runs:
            rows = _read_file(source, file, "redis", environment, logs.read_redis)
            if file == SUPERSEDED:
                rows = _set_selection(rows, "superseded")
            yield from rows


def _build_missing_refusal(values: str, environment: str) -> Refusal:
    """Return a refusal which says that values of an environment are missing.

    values: a noun for the message, such as "values of redis".
    environment: its name; "" for all environments.
    """
    return Refusal(0, f"missing: no {values}{f' in {environment}' if environment else ''}")


def _read_file(
    source: PublishedFiles,
    file: str,
    workload: str,
    environment: str,
    reader: Reader,
    is_text: bool = True,
) -> Iterator[Row]:
    """Yield the rows of a file; one refusal if the file is missing, empty or unreadable.

    source: the published files.
    file: the path of the file in `source`.
    workload: the workload of the values.
    environment: the environment of values that do not name one themselves.
    reader: a function that yields values and refusals.  Its argument is the list of the file's
    lines or, unless `is_text`, the bytes of the file.  It raises ValueError for content of another
    kind, which becomes a refusal.
    is_text: whether the file is a log, in which NUL bytes are a sign of damage.
    """
    content = source.read_file(file)
    if content is None:
        yield Row(file, _build_missing_refusal(f"values of {workload}", environment))
        return
    if not content or (is_text and b"\0" in content):
        yield Row(file, Refusal(1, "the file is empty, or holds NUL bytes and is no text"))
        return
    try:
        readings = list(reader(_split_lines(content) if is_text else content))
    except ValueError as error:
        yield Row(file, Refusal(1, str(error)))
        return
    if not readings:
        yield Row(file, Refusal(1, f"holds no results of {workload}"))
    for reading in readings:
        value_environment = reading.environment if isinstance(reading, Value) else ""
        yield Row(file, reading, workload, value_environment or environment)


def _split_lines(content: bytes) -> list[str]:
    """Return the lines of a log as a terminal shows them.

    content: the bytes of the log; those that are not ASCII are replaced.
    A carriage return within a line overwrites it: only the text after the last one counts.  Empty
    lines at the end are dropped.
    """
    lines = content.decode("ascii", "replace").rstrip("\n").split("\n")
    return [line.rstrip("\r").split("\r")[-1] for line in lines]


def _read_replaced_fio_log(source: PublishedFiles) -> Iterator[Row]:
    """Yield fio's values in the virtual machine from two logs, the replacement and the old one.

    The figures show the old log.  If the two differ, the values of the replacement have the
    selection ``variant``.
    """
    old = f"at-{REVISION}/{REPLACED}"
    if source.read_file(REPLACED) != source.read_file(old):
        rows = _read_file(source, REPLACED, "fio", "vm", logs.read_fio)
        yield from _set_selection(rows, "variant")
    yield from _read_file(source, old, "fio", "vm", logs.read_fio)


def _set_selection(rows: Iterator[Row], selection: str) -> Iterator[Row]:
    """Yield the rows, with the selection of their values set; refusals stay as they are."""
    for row in rows:
        if isinstance(row.reading, Value):
            row = row._replace(reading=row.reading._replace(selection=selection))
        yield row


def _read_mysql_folder(source: PublishedFiles, folder: str, environment: str) -> Iterator[Row]:
    """Yield the values of MySQL in an environment, and the host's CPU usage during its runs.

    source: the published files.
    folder: the folder of the outputs of sysbench (``records-…``) and dstat (``dstat….csv``).
    environment: the environment of the values.
    Sysbench's outputs must be read first: they give the factors of the runs that dstat shows.
    """
    sysbench_files, dstat_files = [], []
    for file in source.names:
        parent, name = os.path.split(file)
        if parent == folder and name.startswith("records-") and not name.endswith(".csv"):
            sysbench_files.append(file)
        elif parent == folder and name.startswith("dstat") and name.endswith(".csv"):
            dstat_files.append(file)
    if not sysbench_files:
        yield Row(f"{folder}/records-*", _build_missing_refusal("values of mysql", environment))
    # The factors of the runs in each of sysbench's outputs.
    outputs: list[list[Factors]] = []
    for file in sysbench_files:
        runs: list[Factors] = []
        for row in _read_file(source, file, "mysql", environment, mysql.read_sysbench):
            # A run has one throughput, and further values.
            if isinstance(row.reading, Value) and row.reading.metric == "throughput":
                runs.append(row.reading.factors)
            yield row
        if runs:
            outputs.append(runs)
    if not dstat_files:
        yield Row(f"{folder}/dstat*", _build_missing_refusal("processor use of mysql", environment))
    read_dstat = functools.partial(mysql.read_dstat, outputs=outputs)
    for file in dstat_files:
        yield from _read_file(source, file, "mysql", environment, read_dstat)

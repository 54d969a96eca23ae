"""Read the workbooks of netperf and nuttcp, where the authors typed their results.

The line of a value is its row in the first sheet.
"""

import io
import warnings
import zipfile
from collections.abc import Iterator
from typing import Any

import openpyxl
from openpyxl.utils.exceptions import InvalidFileException

from strata.reanalysis.reading import Factors, Readings, Refusal, Value

# The environments, by the first words of their columns' headings.
ENVIRONMENTS = {
    "Docker Host": "docker-hostnet",
    "Docker NAT": "docker",
    "Native": "native",
    "KVM": "vm",
}
# The system under test is the client.
DIRECTIONS = {"C->S": "transmit", "S->C": "receive"}
# Rows, from 1, with the headings of columns.
NETPERF_HEAD, NUTTCP_HEAD, CONNECTIONS_HEAD = 3, 4, 19
# Rows with rates in Mbit/s.  The rows below them hold the same in Gbit/s.
NUTTCP_ROWS = (5, 7)


def read_netperf(content: bytes) -> Readings:
    """Yield the rate (tx/s) and its reciprocal, the latency (µs), by test and environment.

    content: the bytes of netperf's workbook.
    Yields a refusal for each test without a rate.
    Raises ValueError if the content is not a workbook.
    """
    sheet = _open_sheet(content)
    columns = {
        column: environment
        for column, environment in _find_environments(sheet, NETPERF_HEAD)
        if _read_text(sheet, NETPERF_HEAD, column).endswith("/s")
    }
    for row in range(NETPERF_HEAD + 1, sheet.max_row + 1):
        test = _read_text(sheet, row, 1)
        if not test:
            continue
        for column, environment in columns.items():
            rate = _read_number(sheet, row, column)
            if rate is None:
                yield Refusal(row, f"{test}: no rate is given for {environment}")
                continue
            factors: Factors = {"test": test}
            yield Value("rate", "tx/s", factors, rate, row, environment=environment)
            yield Value("latency", "us", factors, 1e6 / rate, row, environment=environment)


def read_nuttcp(content: bytes) -> Readings:
    """Yield the throughput by direction (Mbit/s), and by number of connections (Gbit/s).

    content: the bytes of nuttcp's workbook.  The places of its rows are fixed: NUTTCP_ROWS,
    NUTTCP_HEAD and CONNECTIONS_HEAD.
    Raises ValueError if the content is not a workbook.
    """
    sheet = _open_sheet(content)
    for row in NUTTCP_ROWS:
        direction = DIRECTIONS.get(_read_text(sheet, row, 1))
        if direction is not None:
            factors: Factors = {"direction": direction}
            yield from _read_throughput(sheet, row, NUTTCP_HEAD, "Mbit/s", factors, "paper")
    for row in range(CONNECTIONS_HEAD + 1, sheet.max_row + 1):
        connections = _read_number(sheet, row, 1)
        if connections is not None:
            factors = {"connections": round(connections)}
            yield from _read_throughput(sheet, row, CONNECTIONS_HEAD, "Gbit/s", factors, "variant")


def _read_throughput(
    sheet: Any, row: int, head: int, unit: str, factors: Factors, selection: str
) -> Iterator[Value]:
    """Yield the throughput of each environment in a row; cells without a number are left out.

    sheet: a sheet of openpyxl.
    row: the number of the row, from 1.
    head: the number of the row with the columns' headings.
    unit: the unit of the values.
    factors: the factors of the values.
    selection: the selection of the values.
    """
    for column, environment in _find_environments(sheet, head):
        rate = _read_number(sheet, row, column)
        if rate is not None:
            yield Value("throughput", unit, factors, rate, row, selection, environment)


def _open_sheet(content: bytes) -> Any:
    """Return the first sheet of an Excel workbook, with the values of its formulas.

    Raises ValueError if the content is not a workbook.
    """
    try:
        with warnings.catch_warnings():
            # Warnings concern extensions, such as formats; values are not affected.
            warnings.simplefilter("ignore")
            return openpyxl.load_workbook(io.BytesIO(content), data_only=True).worksheets[0]
    except (
        InvalidFileException,
        zipfile.BadZipFile,
        KeyError,
        IndexError,
        SyntaxError,
        OSError,
    ) as error:
        raise ValueError(f"not an Excel workbook ({error})") from None


def _find_environments(sheet: Any, row: int) -> Iterator[tuple[int, str]]:
    """Yield (column, environment) for each column whose heading names an environment.

    row: the number of the row with the headings.
    Columns are numbered from 1; the first one holds the headings of rows and is left out.
    """
    for column in range(2, sheet.max_column + 1):
        heading = _read_text(sheet, row, column)
        for beginning, environment in ENVIRONMENTS.items():
            if heading.startswith(beginning):
                yield column, environment


def _read_text(sheet: Any, row: int, column: int) -> str:
    """Return the text in a cell, stripped; empty for a number or an empty cell."""
    value = sheet.cell(row, column).value
    return value.strip() if isinstance(value, str) else ""


def _read_number(sheet: Any, row: int, column: int) -> float | None:
    """Return the positive number in a cell; None for any other content.

    Formulas that refer to empty cells have the value 0, which is not a result.
    """
    value = sheet.cell(row, column).value
    return float(value) if isinstance(value, int | float) and value > 0 else None

"""The workbooks of netperf and nuttcp, into which the authors typed results: no raw output was published of these.

The line of a value is its row.
"""

import io
import warnings
import zipfile
from collections.abc import Iterator
from typing import Any

import openpyxl
from openpyxl.utils.exceptions import InvalidFileException

from strata.reanalysis.reading import Factors, Refusal, Value

# What the heads of columns begin with; the longer ones first.
ENVIRONMENTS = {
    "Docker Host": "docker-hostnet",
    "Docker NAT": "docker",
    "Native": "native",
    "KVM": "vm",
}
DIRECTIONS = {"C->S": "transmit", "S->C": "receive"}  # as the system under test sees it, the client
NETPERF_HEAD, NUTTCP_HEAD, CONNECTIONS_HEAD = 3, 4, 19
# Rates in Gbit/s stand below the same in Mbit/s.
NUTTCP_ROWS = (5, 7)

Found = Iterator[Value | Refusal]


def netperf(content: bytes) -> Found:
    """The transactions a second of each environment and test, and their reciprocal, the latency in µs."""
    sheet = _sheet(content)
    heads = {
        column: name
        for column, name in _heads(sheet, NETPERF_HEAD)
        if _text(sheet, NETPERF_HEAD, column)[-2:] == "/s"
    }
    for row in range(NETPERF_HEAD + 1, sheet.max_row + 1):
        test = _text(sheet, row, 1)
        for column, name in heads.items():
            if test and (rate := _number(sheet, row, column)):
                factors: Factors = {"test": test}
                yield Value("rate", "tx/s", factors, rate, row, environment=name)
                yield Value("latency", "us", factors, 1e6 / rate, row, environment=name)
            elif test:
                yield Refusal(row, f"{test}: no rate is given for {name}")


def nuttcp(content: bytes) -> Found:
    """The throughput of each environment and direction in Mbit/s, and over numbers of connections in Gbit/s."""
    sheet = _sheet(content)
    for row in NUTTCP_ROWS:
        direction = DIRECTIONS.get(_text(sheet, row, 1))
        for column, name in _heads(sheet, NUTTCP_HEAD):
            rate = _number(sheet, row, column)
            if direction and rate:
                yield Value(
                    "throughput", "Mbit/s", {"direction": direction}, rate, row, environment=name
                )
    for row in range(CONNECTIONS_HEAD + 1, sheet.max_row + 1):
        connections = _number(sheet, row, 1)
        for column, name in _heads(sheet, CONNECTIONS_HEAD):
            rate = _number(sheet, row, column)
            if connections and rate:
                yield Value(
                    "throughput",
                    "Gbit/s",
                    {"connections": round(connections)},
                    rate,
                    row,
                    "variant",
                    name,
                )


def _sheet(content: bytes) -> Any:
    """The first sheet of a workbook, with the values of its formulas.  Raises ValueError if it is not a workbook."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of extensions that say nothing of values
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


def _heads(sheet: Any, row: int) -> Iterator[tuple[int, str]]:
    for column in range(2, sheet.max_column + 1):
        text = _text(sheet, row, column)
        if name := next(
            (name for head, name in ENVIRONMENTS.items() if text.startswith(head)), None
        ):
            yield column, name


def _text(sheet: Any, row: int, column: int) -> str:
    value = sheet.cell(row, column).value
    return value.strip() if isinstance(value, str) else ""


def _number(sheet: Any, row: int, column: int) -> float | None:
    """None where nothing was typed: zero is what an empty cell amounts to."""
    value = sheet.cell(row, column).value
    return float(value) if isinstance(value, int | float) and value > 0 else None

"""What the bench found: one row for each measured command."""

import csv
import statistics
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from bench.spent import Spent


@dataclass(frozen=True)
class Row:
    """A command that was measured: of which theme, tool and size, in which round; seconds, and bytes of memory."""

    theme: str
    tool: str
    size: int
    round: int
    cpu: float
    wall: float
    peak: int

    @staticmethod
    def of(theme: str, tool: str, size: int, number: int, spent: Spent) -> "Row":
        """The row of a command that spent this."""
        return Row(theme, tool, size, number, round(spent.cpu, 4), round(spent.wall, 4), spent.peak)


class Rows(list[Row]):
    """Rows, in the order in which they were measured."""

    def add(self, row: Row) -> None:
        """Keep a row and print it."""
        self.append(row)
        seconds = f"{row.cpu:9.2f} CPU s {row.wall:9.2f} s {row.peak / 1e6:7.0f} MB"
        print(f"{row.theme:10s} {row.tool:14s} {row.size:6d} round {row.round} {seconds}", flush=True)

    def only(self, theme: str, tool: str | None = None, size: int | None = None) -> "Rows":
        """Those of a theme, and of a tool and a size where they are given."""
        return Rows(row for row in self if row.theme == theme and tool in (None, row.tool) and size in (None, row.size))

    def sized(self, size: int) -> "Rows":
        """Those of a size."""
        return Rows(row for row in self if row.size == size)

    def sizes(self) -> list[int]:
        """Their different sizes, ascending."""
        return sorted({row.size for row in self})

    def tools(self) -> list[str]:
        """Their different tools, as they came."""
        return list(dict.fromkeys(row.tool for row in self))

    def each(self, what: str) -> list[float]:
        """Milliseconds (`what`: cpu or wall) of every row for each of its cells or logs."""
        return [1000 * getattr(row, what) / row.size for row in self]

    def median(self, what: str) -> float:
        """Of cpu, wall or peak."""
        return statistics.median(getattr(row, what) for row in self)

    def each_median(self) -> float:
        """Milliseconds of CPU time for each of their cells or logs."""
        return statistics.median(self.each("cpu"))

    def write(self, path: Path) -> None:
        """All rows as CSV."""
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
            writer.writeheader()
            writer.writerows(asdict(row) for row in self)


def paired(ours: Rows, theirs: Rows) -> list[tuple[Row, Row]]:
    """Rows of two tools round by round: what disturbs a round disturbs both."""
    others = {row.round: row for row in theirs}
    return [(row, others[row.round]) for row in ours if row.round in others]

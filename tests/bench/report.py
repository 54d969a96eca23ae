"""The bench's tables, as they stand in docs/architecture.md, and whether its targets are met."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from bench import logs
from bench.idle import Idle
from bench.rows import Rows, paired
from bench.tools import Loop, Make, ReFrame, Snakemake, Strata

OURS = Strata.name
TABLES = ("table", "summary")
ORDER = (Strata, ReFrame, Snakemake, Make, Loop)


@dataclass
class Found:
    """All that a run of the bench found.  absent: tool → why it could not be measured.  archive: its bytes."""

    rows: Rows = field(default_factory=Rows)
    idle: list[Idle] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    archive: int = 0


@dataclass(frozen=True)
class Target:
    """What was to be at most `limit`, and what it is; None where it was not measured."""

    what: str
    found: float | None
    limit: float
    unit: str

    def line(self) -> list[str]:
        """Its row of the table."""
        shown = "not measured" if self.found is None else f"{self.found:.3g}{self.unit}"
        met = "" if self.found is None else "yes" if self.found <= self.limit else "no"
        return [self.what, shown, f"{self.limit:g}{self.unit}", met]


def markdown(header: list[str], body: list[list[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def spread(values: list[float], shape: str = "{:.1f}") -> str:
    """The median of several values with the least and the greatest."""
    middle = shape.format(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({shape.format(min(values))}–{shape.format(max(values))})"


def cells(found: Found, what: str) -> str:
    """Milliseconds (`what`: cpu or wall) for each cell, by tool and number of cells."""
    rows = found.rows.only("cells")
    tools = [tool.name for tool in ORDER if rows.only("cells", tool.name)]
    body = []
    for size in rows.sizes():
        values = [rows.only("cells", tool, size).each(what) for tool in tools]
        body.append([f"{size:,}", *[spread(each) if each else "–" for each in values]])
    return markdown(["cells", *tools], body)


def against(found: Found) -> str:
    """What this pipeline takes beside ReFrame and above Snakemake, paired round by round."""
    body = []
    for size in found.rows.only("cells", OURS).sizes():
        ratio, above = ratios(found, ReFrame.name, size), extra(found, size)
        body.append([f"{size:,}", spread(above) if above else "–", spread(ratio, "{:.2f}") if ratio else "–"])
    return markdown(["cells", "CPU ms a cell above Snakemake", "CPU time over ReFrame's"], body)


def ratios(found: Found, other: str, size: int) -> list[float]:
    """CPU time of this pipeline over that of another tool, round by round."""
    pairs = paired(found.rows.only("cells", OURS, size), found.rows.only("cells", other, size))
    return [ours.cpu / theirs.cpu for ours, theirs in pairs]


def extra(found: Found, size: int) -> list[float]:
    """Milliseconds of CPU time that each cell takes beyond Snakemake's own, round by round."""
    pairs = paired(found.rows.only("cells", OURS, size), found.rows.only("cells", Snakemake.name, size))
    return [1000 * (ours.cpu - theirs.cpu) / size for ours, theirs in pairs]


def growth(rows: Rows) -> float | None:
    """What each thing costs at the greatest size over what it costs at the size before: 1 where growth is linear."""
    sizes = rows.sizes()
    if len(sizes) < 2:
        return None
    early, late = (statistics.median(rows.sized(size).each("cpu")) for size in sizes[-2:])
    return late / early


def commands(found: Found, themes: dict[str, str], each: str) -> str:
    """Whole commands: seconds, milliseconds of CPU time for each thing, and memory."""
    body = []
    for theme, words in themes.items():
        rows = found.rows.only(theme)
        for tool in rows.tools():
            for size in rows.only(theme, tool).sizes():
                some = rows.only(theme, tool, size)
                seconds = [row.cpu for row in some]
                numbers = [spread(seconds), f"{statistics.median(some.each('cpu')):.2f}"]
                rest = [f"{some.median('wall'):.1f}", f"{some.median('peak') / 1e6:.0f}"]
                body.append([words.format(tool=tool), f"{size:,}", *numbers, *rest])
    return markdown(["", each, "CPU s", "CPU ms each", "s on the clock", "MB"], body)


def workload_costs(found: Found) -> dict[str, tuple[float, float]]:
    """Workload → milliseconds of CPU time for each further log: in its table, and in the summary."""
    costs = {}
    for load in found.rows.only("each table").tools():
        tables, summaries = (found.rows.only(theme, load) for theme in ("each table", "each summary"))
        costs[load] = further(tables), further(summaries)
    return costs


def further(rows: Rows) -> float:
    """Milliseconds of CPU time for each thing beyond the least size."""
    least, *_, most = rows.sizes()
    return 1000 * (rows.sized(most).median("cpu") - rows.sized(least).median("cpu")) / (most - least)


def workloads(found: Found) -> str:
    """What each further log of every workload takes."""
    body = [
        [load, f"{logs.log_bytes(load) / 1000:.1f}", f"{table:.1f}", f"{summary:.1f}"]
        for load, (table, summary) in workload_costs(found).items()
    ]
    return markdown(["workload", "kB a log", "CPU ms a log, read and checked", "compared"], body)


def idle(found: Found) -> str:
    """What tools do while a cell sleeps."""
    body = [
        [one.tool, str(one.processes), f"{100 * one.share:.3f} %", f"{one.wakeups / one.seconds:.1f}"]
        for one in found.idle
    ]
    return markdown(["", "processes", "of one core", "wake-ups a second"], body)


def targets(found: Found) -> list[Target]:
    """What is aimed at, and what was found."""
    ours, dry = found.rows.only("cells", OURS), found.rows.only("dry run", OURS)
    beside = [each for size in ours.sizes() for each in [ratios(found, ReFrame.name, size)] if each]
    above = [each for size in ours.sizes() for each in [extra(found, size)] if each]
    many = [part.sized(part.sizes()[-1]) for part in (found.rows.only(theme, logs.LOAD) for theme in TABLES) if part]
    further_logs = [sum(both) for both in workload_costs(found).values()]
    busy = [100 * one.share for one in found.idle if one.tool == OURS]
    dry_seconds = [row.cpu for row in dry.sized(dry.sizes()[-1])] if dry else []
    return [
        Target("CPU time of a cell over ReFrame's", _middle(beside[-1:]), 0.5, ""),
        Target("CPU time of a cell above Snakemake's", _middle(above[-1:]), 60, " ms"),
        Target("growth: a cell of the greatest number over one of the number before", growth(ours), 1.1, ""),
        Target("growth of the dry run, likewise", growth(dry), 1.1, ""),
        Target("dry run of the greatest number", _middle([dry_seconds]), 10, " s"),
        Target("rerun of one cell", _middle([[row.cpu for row in found.rows.only("rerun")]]), 2, " s"),
        Target("CPU time of a log, of the greatest number", _sum([part.each_median() for part in many]), 5, " ms"),
        Target("memory for that number", max((part.median("peak") / 1e9 for part in many), default=None), 1, " GB"),
        Target("CPU time of a further log, mean of all workloads", _middle([further_logs], statistics.mean), 5, " ms"),
        Target("CPU time of a further log of the dearest workload", max(further_logs, default=None), 5, " ms"),
        Target("busy while a cell sleeps, of one core", _middle([busy]), 1, " %"),
    ]


def _middle(series: list[list[float]], of: Callable = statistics.median) -> float | None:
    """Of the last series; None where there is none or it is empty."""
    return of(series[-1]) if series and series[-1] else None


def _sum(values: list[float]) -> float | None:
    return sum(values) if values else None


def text(found: Found, about: list[str]) -> str:
    """The whole report in Markdown."""
    absent = [f"{tool}: not available: {reason}" for tool, reason in found.absent.items()]
    goals = markdown(["target", "found", "at most", "met"], [target.line() for target in targets(found)])
    dry = commands(found, {"dry run": "{tool}"}, "cells")
    table = commands(found, {"table": "{tool}: logs read and checked", "summary": "{tool}: compared"}, "logs")
    archive = commands(found, {"archive": "archive made", "verify": "archive verified"}, "logs")
    parts = [
        *about,
        *absent,
        "CPU ms a cell\n\n" + cells(found, "cpu"),
        "Milliseconds a cell on the clock\n\n" + cells(found, "wall"),
        against(found),
        "Dry run\n\n" + dry,
        "Logs\n\n" + table,
        workloads(found),
        f"Archive of {found.archive / 1e9:.2f} GB\n\n" + archive,
        "While a cell sleeps\n\n" + idle(found),
        goals,
    ]
    return "\n".join(part if part.endswith("\n") else part + "\n" for part in parts)

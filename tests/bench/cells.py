"""Cells that do nothing, in every tool: round after round, so that noise falls on all alike."""

import random
import shutil
from pathlib import Path

from bench.rows import Row, Rows
from bench.spent import Failed, Spent, environment, run
from bench.tools import SNAKEMAKE, Strata, Tool


def measure(tool: Tool, folder: Path, cells: int, variables: dict[str, str]) -> Spent:
    """Run so many cells in a folder of its own.  Raises Failed where not every one was done."""
    argv = tool.prepare(folder, cells)
    spent = run(argv, folder, variables)
    done = tool.done(folder, spent.printed)
    if done != cells:
        raise Failed(f"{tool.name} did {done} of {cells} cells\n{spent.printed[-3000:]}")
    return spent


def rounds(tools: list[Tool], sizes: list[int], count: int, room: Path, rows: Rows) -> None:
    """Every tool at every size once in a round, in a random order; once before them for what is compiled and cached."""
    variables = environment(room / "home")
    for tool in tools:
        measure(tool, room / f"first-{tool.name}", 1, variables)
    for number in range(1, count + 1):
        for size in sizes:
            for tool in random.Random(f"{number}/{size}").sample(tools, len(tools)):
                folder = room / f"{tool.name}-{size}-{number}"
                rows.add(Row.of("cells", tool.name, size, number, measure(tool, folder, size, variables)))
                if not (isinstance(tool, Strata) and number == count):
                    shutil.rmtree(folder)


def once(tools: list[Tool], size: int, room: Path, rows: Rows) -> None:
    """Once so many cells that anything that does not grow with their number alone would show."""
    for tool in tools:
        folder = room / f"{tool.name}-{size}-long"
        rows.add(Row.of("cells", tool.name, size, 1, measure(tool, folder, size, environment(room / "home"))))
        shutil.rmtree(folder)


def rerun(size: int, number: int, room: Path, rows: Rows) -> None:
    """Measure one deleted cell of a project that :func:`rounds` left."""
    folder = room / f"{Strata.name}-{size}-{number}"
    log = sorted(folder.glob("results/raw/*/*/*.log"))[size // 2]
    log.unlink()
    argv = [*SNAKEMAKE, str(log.relative_to(folder))]
    rows.add(Row.of("rerun", Strata.name, size, 1, run(argv, folder, environment(room / "home"))))
    if not log.exists():
        raise Failed(f"{log} was not measured again")

"""A dry run: what reading the workflow and deciding on its jobs takes."""

import random
import re
from pathlib import Path

from bench.rows import Row, Rows
from bench.spent import Failed, environment, run
from bench.tools import SNAKEMAKE, Snakemake, Strata


def rounds(sizes: list[int], count: int, room: Path, rows: Rows) -> None:
    """A dry run of this pipeline and one of Snakemake with the barest rule, in every round at every size."""
    tools = [Strata(), Snakemake()]
    variables = environment(room / "home")
    for size in sizes:
        for tool in tools:
            tool.prepare(room / f"dry-{tool.name}-{size}", size)
    for number in range(1, count + 1):
        for size in sizes:
            for tool in random.Random(f"{number}/{size}").sample(tools, len(tools)):
                argv = [*SNAKEMAKE, "--dry-run", "--quiet", "rules", "--", tool.target]
                spent = run(argv, room / f"dry-{tool.name}-{size}", variables)
                planned = re.search(r"^cell +(\d+)$", spent.printed, re.MULTILINE)
                if not planned or int(planned[1]) != size:
                    raise Failed(f"the dry run of {tool.name} planned other than {size} cells\n{spent.printed[-3000:]}")
                rows.add(Row.of("dry run", tool.name, size, number, spent))

"""``snakemake --summary`` for people: a line for each environment's cells of a workload, and one for all else."""

from collections import Counter
from collections.abc import Iterable

from strata.base.errors import UserError

_COLUMNS = ["output_file", "date", "rule", "log-file(s)", "status", "plan"]
_PENDING = "update pending"


def told(lines: Iterable[str]) -> str:
    """The lines of Snakemake's table as a shorter one.

    Raises UserError where they are no such table.
    """
    rows = [line.rstrip("\n").split("\t") for line in lines]
    if not rows or rows[0] != _COLUMNS or any(len(row) != len(_COLUMNS) for row in rows):
        raise UserError("this is no table of `snakemake --summary`; see `make summary`")
    cells: dict[tuple[str, str], Counter] = {}
    others = []
    for name, date, _, _, status, plan in rows[1:]:
        state = status if plan != _PENDING else f"to be made ({status})" if status != "ok" else "to be made"
        parts = name.split("/")
        if name.startswith("results/raw/") and name.endswith(".log"):
            cells.setdefault((parts[2], parts[3]), Counter())[state] += 1
        elif name.startswith(("results/raw/", "results/made/")):
            continue
        # A figure is drawn in several forms by one job.
        elif not name.startswith("results/figures/") or name.endswith(".pdf"):
            others.append((name, state, date if date != "-" else ""))
    table = [
        (f"{environment} · {load}", ", ".join(f"{count} {state}" for state, count in sorted(counts.items())), "")
        for (environment, load), counts in sorted(cells.items())
    ]
    table += sorted(others)
    widths = [max((len(row[column]) for row in table), default=0) for column in (0, 1)]
    return "\n".join(f"{row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]}".rstrip() for row in table)

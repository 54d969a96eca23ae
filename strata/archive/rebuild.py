"""The paper made again from archived logs by the archive's own code."""

import contextlib
import os
import sys

from strata.archive import check, derive, guide, sums
from strata.base import places
from strata.base.errors import UserError
from strata.results import products
from strata.results.judge import load


def rebuild(path: str, target: str | None) -> int:
    """Make an archive's paper again in `target`, and print of each product whether it is the same.

    Gives the exit status: 0 where every table is byte-identical, else 1.  Raises UserError where a file of the archive
    is not the one of its checksum, where `target` is there already, or where the paper cannot be made.
    """
    work = target or f"{os.path.basename(os.path.abspath(path)).removesuffix('.zip')}-rebuilt"
    if os.path.exists(work) and (not os.path.isdir(work) or os.listdir(work)):
        raise UserError(f"{work}: is there already; remove it, or name another folder with --to")
    with contextlib.ExitStack() as stack:
        with check.blameless(path):
            folder = stack.enter_context(check.unpacked(path))
            found = sums.findings(folder)
        if found:
            raise UserError("\n".join([f"{path}: does not verify, and is not rebuilt:", *found]))
        os.makedirs(work, exist_ok=True)
        derive.archived_code(folder, work)
        print(f"rebuild: making the paper again in {work}", file=sys.stderr, flush=True)
        derive.remake(folder, work, papers=True)
        states = derive.states(folder, work, products.made(load(folder, places.PLAN)))
        unlike = guide.unlike(folder) if derive.NOT_COMPARABLE in states.values() else []
    for name, state in states.items():
        print(f"{state:9}  {name}")
    for text in unlike:
        print(f"rebuild: papers are {derive.NOT_COMPARABLE}: {text}", file=sys.stderr)
    tables = [state for name, state in states.items() if name.endswith(".csv")]
    papers = [states[name] for name in products.PAPERS]
    print(f"rebuild: {tables.count('identical')} of {len(tables)} tables are byte-identical", file=sys.stderr)
    print(
        f"rebuild: {papers.count('identical')} of {len(papers)} papers are (their bytes depend on fonts and the "
        f"versions of R, pandoc and LaTeX too); the paper is {os.path.join(work, products.PAPERS[0])}",
        file=sys.stderr,
    )
    return 0 if set(tables) <= {"identical"} and "missing" not in papers else 1

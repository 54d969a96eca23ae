"""The paper made again from archived logs: nothing is measured, and no Docker or QEMU is needed."""

import os
import shutil
import sys

from strata.archive import check, sums
from strata.base import places
from strata.base.errors import UserError
from strata.base.process import capture
from strata.results import judge, products

INPUTS = ("plan.json", "plan.csv", "image.json", "image-manifest.json", "raw", "failed", "precision")


def prepare(folder: str, work: str) -> None:
    """Lay out a project in `work`: the archived source, plan, logs and records of the archive in `folder`."""
    shutil.copytree(os.path.join(folder, "source"), work, dirs_exist_ok=True)
    for name in INPUTS:
        path, target = (os.path.join(root, "results", name) for root in (folder, work))
        if os.path.isdir(path):
            shutil.copytree(path, target)
        elif os.path.exists(path):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(path, target)


def remake(work: str, partial: bool) -> None:
    """Make tables and papers in a prepared project, by its own code.

    Raises UserError with what the command said, where one fails.
    """
    commands = [
        [sys.executable, "-m", "strata", "tidy", *(["--partial"] if partial else [])],
        ["Rscript", "analysis/tables.R", "results"],
        *(["Rscript", "analysis/report.R", paper] for paper in products.PAPERS),
    ]
    for command in commands:
        capture(["env", "-C", work, f"PYTHONPATH={os.path.abspath(work)}", *command], timeout=3600)
    sums.write_tables(work, products.tables(judge.load(work, places.PLAN)))


def compare(folder: str, work: str) -> list[tuple[str, str]]:
    """(name, state) of every product of the archive in `folder`; identical, different or missing in `work`."""
    found = []
    for name in products.made(judge.load(folder, places.PLAN)):
        again = os.path.join(work, name)
        if not os.path.isfile(again):
            state = "missing"
        else:
            same = sums.digest(os.path.join(folder, name)) == sums.digest(again)
            state = "identical" if same else "different"
        found.append((name, state))
    return found


def rebuild(path: str, target: str | None) -> int:
    """Verify an archive, make its paper again in `target`, and print of each product whether it is the same.

    Gives the exit status: 0 where every table is byte-identical, else 1.  Raises UserError where the archive does
    not verify, where `target` is there already, or where the paper cannot be made.
    """
    work = target or f"{os.path.basename(os.path.abspath(path)).removesuffix('.zip')}-rebuilt"
    if os.path.exists(work) and (not os.path.isdir(work) or os.listdir(work)):
        raise UserError(f"{work}: is there already; remove it, or name another folder with --to")
    with check.unpacked(path) as (folder, found):
        found = found + check.findings(folder)
        if found:
            raise UserError("\n".join([f"{path}: does not verify, and is not rebuilt:", *found]))
        os.makedirs(work, exist_ok=True)
        prepare(folder, work)
        # By it an archive that is made there knows its source.
        shutil.copyfile(os.path.join(folder, sums.NAME), os.path.join(work, sums.NAME))
        print(f"rebuild: making the paper again in {work}", file=sys.stderr, flush=True)
        remake(work, judge.load(folder, "archive.json")["partial"])
        states = compare(folder, work)
    for name, state in states:
        print(f"{state:9}  {name}")
    tables = [state for name, state in states if name.endswith(".csv")]
    others = [state for name, state in states if not name.endswith(".csv")]
    print(f"rebuild: {tables.count('identical')} of {len(tables)} tables are byte-identical", file=sys.stderr)
    print(
        f"rebuild: {others.count('identical')} of {len(others)} papers are (their bytes depend on the "
        f"versions of R, pandoc and LaTeX too); the paper is {os.path.join(work, products.PAPERS[0])}",
        file=sys.stderr,
    )
    return 0 if set(tables) <= {"identical"} and "missing" not in others else 1

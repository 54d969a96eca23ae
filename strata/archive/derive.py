"""Tables and papers made again of archived logs, by some code: nothing is measured, and no Docker or QEMU is needed."""

import filecmp
import os
import shutil
import sys

from strata.base import places
from strata.base.errors import UserError
from strata.base.process import capture
from strata.results import products
from strata.results.judge import load

# What of the results is measured or decided; the rest is made of it.
INPUTS = ("plan.json", "plan.csv", "image.json", "image-manifest.json", "raw", "failed", "precision")
# Folders of the project whose code and texts tables and papers are made by.
_CODE = ("strata", "schemas", "published", "workloads", "analysis", "paper")


def own_code(work: str) -> None:
    """Lay out the code of this checkout in `work`."""
    unneeded = shutil.ignore_patterns("__pycache__", "tests", "fixtures")
    for name in _CODE:
        if os.path.isdir(path := os.path.join(places.PROJECT, name)):
            shutil.copytree(path, os.path.join(work, name), ignore=unneeded, dirs_exist_ok=True)


def archived_code(folder: str, work: str) -> None:
    """Lay out in `work` the source of an archive: what it holds, or else the commit that it names.

    Raises UserError where this repository has no such commit.
    """
    source, tar = load(folder, "archive.json")["source"], os.path.join(work, "source.tar")
    if source["packed"]:
        shutil.copytree(os.path.join(folder, "source"), work, dirs_exist_ok=True)
        return
    revision = str(source["revision"])
    done = capture(["git", "-C", places.PROJECT, "archive", "--output", os.path.abspath(tar), revision], check=False)
    if done.returncode != 0:
        raise UserError(
            f"the archive holds no source but names commit {revision}, which this repository has not: "
            "`git fetch --unshallow`, or take the whole archive"
        )
    capture(["tar", "-C", work, "-xf", tar])
    os.unlink(tar)


def remake(folder: str, work: str, papers: bool) -> None:
    """Make tables, and papers if asked, of the logs of an archive in `folder` by the code that is laid out in `work`.

    Raises UserError with what the command said, where one fails.
    """
    results = os.path.join(folder, "results")
    shutil.copytree(
        results,
        os.path.join(work, "results"),
        ignore=lambda where, names: set(names) - set(INPUTS) if where == results else set(),
        dirs_exist_ok=True,
    )
    make_tables(work, ["--partial"] if load(folder, "archive.json")["partial"] else [])
    if papers:
        make_papers(work)


def make_tables(work: str, options: list[str]) -> None:
    """Make all tables of a project from its logs, by its own code."""
    capture(_in(work, sys.executable, "-m", "strata", "tidy", *options), timeout=3600)
    capture(_in(work, "Rscript", "analysis/tables.R", "results"), timeout=3600)


def make_papers(work: str) -> None:
    """Make the papers of a project from its tables, by its own code."""
    for paper in products.PAPERS:
        capture(_in(work, "Rscript", "analysis/report.R", paper), timeout=3600)


def _in(work: str, *words: str) -> list[str]:
    return ["env", "-C", work, f"PYTHONPATH={os.path.abspath(work)}", *words]


def states(folder: str, work: str, names: list[str]) -> dict[str, str]:
    """Whether each of an archive's products is identical, different or missing in `work`."""
    found = {}
    for name in names:
        archived, again = (os.path.join(root, name) for root in (folder, work))
        there = os.path.exists(again)
        same = there and os.path.exists(archived) and filecmp.cmp(archived, again, shallow=False)
        found[name] = "identical" if same else "different" if there else "missing"
    return found

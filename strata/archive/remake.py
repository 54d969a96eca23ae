"""Tables and papers made again of archived logs, by some code: nothing is measured, and no Docker or QEMU is needed."""

import contextlib
import filecmp
import os
import shutil

from strata.archive import checksums, metadata, source
from strata.experiment import plan
from strata.results import outputs
from strata.util import paths, programs
from strata.util.errors import UserError
from strata.util.files import sync, write_text
from strata.util.process import capture
from strata.util.progress import say, shown

# The state of a paper whose bytes follow from what this machine has not.
NOT_COMPARABLE = "not comparable here"
# What of the results is measured or decided; the rest is made of it.
INPUTS = (
    "plan.json",
    "plan.csv",
    "image.json",
    "image-manifest.json",
    "raw",
    "failed",
    "precision",
)
# Folders of the project whose code and texts tables and papers are made by.
_CODE = ("strata", "schemas", "published", "workloads", "analysis", "paper")


def own_code(work: str) -> None:
    """Lay out the code of this checkout in `work`."""
    unneeded = shutil.ignore_patterns("__pycache__", "tests", "fixtures")
    for name in _CODE:
        if os.path.isdir(path := os.path.join(paths.PROJECT, name)):
            shutil.copytree(path, os.path.join(work, name), ignore=unneeded, dirs_exist_ok=True)


def archived_code(folder: str, work: str) -> None:
    """Lay out in `work` the source of an archive: what it holds, or else the commit that it names.

    Raises UserError where this repository has no such commit.
    """
    of, tar = metadata.read(folder)["source"], os.path.abspath(os.path.join(work, "source.tar"))
    if of["packed"]:
        shutil.copytree(os.path.join(folder, "source"), work, dirs_exist_ok=True)
        return
    if source.committed(paths.PROJECT, of["revision"]) is None:
        why = source.lacking(paths.PROJECT, of["revision"])
        raise UserError(
            f"the archive holds no source but names a commit. {why}; or take the whole archive"
        )
    objects = programs.git(paths.PROJECT, "rev-parse", "--git-path", "objects", check=True).stdout
    objects = os.path.join(paths.PROJECT, objects.strip())
    # From a repository without settings: those of this one may name programs that change files.
    with programs.scratch("objects") as bare:
        programs.git(bare, "init", "--quiet", "--bare", check=True)
        words = ("archive", "--output", tar, of["revision"])
        programs.git(bare, *words, check=True, GIT_OBJECT_DIRECTORY=objects)
    capture(["tar", "-C", work, "-xf", tar])
    os.unlink(tar)


def remake(folder: str, work: str, papers: bool) -> None:
    """Lay out the logs of an archive in `folder`, and make tables and papers of them as :func:`make`."""
    lay_out(folder, work)
    make(folder, work, papers)


def lay_out(folder: str, work: str) -> None:
    """Copy what tables are made of from an archive in `folder` to `work`."""
    results = os.path.join(folder, "results")
    shutil.copytree(
        results,
        os.path.join(work, "results"),
        ignore=lambda where, names: set(names) - set(INPUTS) if where == results else set(),
        dirs_exist_ok=True,
    )


def make(folder: str, work: str, papers: bool) -> None:
    """Make tables, and papers if requested, by the code and of the logs that are laid out in `work`.

    Raises as :func:`make_tables`.
    """
    make_tables(work, ["--partial"] if metadata.read(folder)["partial"] else [])
    if papers:
        make_papers(work)


def make_tables(work: str, options: list[str], to: str = "results") -> str:
    """Make all tables of a project from its logs, by its own code; what there is to know of logs that are left out.

    to: folder below `work`.  Raises UserError where a log or record is refused, MachineError where a tool fails.
    """
    # The versions that older archives hold know no other folder.
    elsewhere = [to] if to != "results" else []
    said = programs.python(
        work, "tidy", *options, *(word for name in elsewhere for word in ("--to", name))
    ).stderr
    programs.r("analysis/tables.R", "results", *elsewhere, folder=work)
    return said


def make_papers(work: str) -> None:
    """Make the papers of a project from its tables, by its own code."""
    for paper in outputs.PAPERS:
        programs.r("analysis/report.R", paper, folder=work)


def tables(partial: bool, to: str) -> None:
    """Make the tables of the project in the working directory in a folder, with their checksums (rule `tables`)."""
    os.makedirs(to, exist_ok=True)
    for line in make_tables(".", ["--partial"] if partial else [], to).splitlines():
        shown(line)
    names = {name: os.path.join(to, os.path.relpath(name, "results")) for name in _tables()}
    lines = [f"{checksums.of_file(path)}  {name}\n" for name, path in names.items()]
    write_text(os.path.join(to, checksums.NAME), "".join(lines), lasting=True)


def paper(out: str) -> None:
    """Make a paper of the project in the working directory (rule `paper`).

    Tables that were edited since they were made are made again first.
    """
    if edited := _edited():
        say("tables", f"made again, since these were edited: {', '.join(edited)}")
        with programs.scratch("tables", "results/tmp") as folder:
            tables(True, folder)
            for name in [*_tables(), f"results/{checksums.NAME}"]:
                os.replace(os.path.join(folder, os.path.relpath(name, "results")), name)
        for name in sorted({os.path.dirname(name) for name in _tables()}):
            sync(name)
    programs.r("analysis/report.R", out)


def _tables() -> list[str]:
    return outputs.tables(plan.read_checked())


def _edited() -> list[str]:
    """The tables that are not those of their checksums."""
    written: list[str] = []
    with (
        contextlib.suppress(FileNotFoundError),
        open(f"results/{checksums.NAME}", encoding="utf-8") as file,
    ):
        written = file.read().splitlines()
    return [
        name
        for name in _tables()
        if not os.path.exists(name) or f"{checksums.of_file(name)}  {name}" not in written
    ]


def states(folder: str, work: str, names: list[str]) -> dict[str, str]:
    """Whether each of an archive's products is identical, different or missing in `work`.

    A different paper is not comparable where the archive's was made with other fonts, versions of R and so on.
    """
    found = {}
    for name in names:
        archived, again = (os.path.join(root, name) for root in (folder, work))
        there = os.path.exists(again)
        same = there and os.path.exists(archived) and filecmp.cmp(archived, again, shallow=False)
        found[name] = "identical" if same else "different" if there else "missing"
    papers = [name for name in outputs.PAPERS if found.get(name) == "different"]
    if papers and metadata.unlike(folder):
        found |= dict.fromkeys(papers, NOT_COMPARABLE)
    return found

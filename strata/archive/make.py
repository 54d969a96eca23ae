"""An archive of the project in the working directory, from its files to the checked whole."""

import os
import shutil
import sys
import tempfile

from strata.archive import check, container, crate, guide, rebuild, sums
from strata.archive.stage import Stage
from strata.base import places
from strata.base.checking import legible
from strata.base.errors import UserError
from strata.results import products

# More than this many doubts are no help to look through in a terminal.
MOST_DOUBTS = 40


def make(out: str, with_image: bool) -> None:
    """Write the archive to `out` and say on standard error what it holds.

    Raises UserError where something lacks, or where what was put together does not pass its own verification.
    """
    os.makedirs("results/tmp", exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="archive-", dir="results/tmp") as room:
        folder = os.path.join(room, "archive")
        os.mkdir(folder)
        stage = Stage(os.getcwd(), folder)
        stage.add_source()
        stage.add_results()
        if stage.inputs_were_rewritten():
            print("archive: making the paper again without what is private", file=sys.stderr)
            _remake(stage, os.path.join(room, "again"))
        guide.add_recipe(stage)
        if with_image:
            stage.add_image()
        guide.add_packages(stage)
        about = guide.facts(stage, with_image)
        guide.add_guide(stage, about, crate.VERSION)
        stage.finish_rewriting()
        stage.check_leaks()
        crate.write(folder, about)
        sums.write(folder)
        found = check.findings(folder)
        if found:
            raise UserError("\n".join(["archive: not written, since it would not verify:", *found]))
        _list_doubts(stage)
        container.pack(folder, out)
        _report(stage, out, len(container.files_below(folder)))


def _remake(stage: Stage, work: str) -> None:
    """Replace tables, figures and papers by those that follow from what is archived."""
    os.mkdir(work)
    rebuild.prepare(stage.folder, work)
    rebuild.remake(work, bool(stage.missing))
    for name in (*products.made(stage.experiment), places.SUMS):
        shutil.copyfile(os.path.join(work, name), stage.path(name))


def _list_doubts(stage: Stage) -> None:
    """Say what may be private, so that it can be looked at before the archive is there."""
    doubts = stage.private.doubts
    if doubts:
        print("archive: left in it, since it may be data; look whether it may be published:", file=sys.stderr)
    for text, name in list(doubts.items())[:MOST_DOUBTS]:
        print(f"archive:   {legible(text, 80)} (first in {name})", file=sys.stderr)
    if len(doubts) > MOST_DOUBTS:
        print(f"archive:   … and {len(doubts) - MOST_DOUBTS} more", file=sys.stderr)


def _report(stage: Stage, out: str, count: int) -> None:
    untracked = stage.source.untracked
    if untracked:
        told = ", ".join(legible(name, 80) for name in untracked[:MOST_DOUBTS])
        more = f" and {len(untracked) - MOST_DOUBTS} more" if len(untracked) > MOST_DOUBTS else ""
        print(f"archive: not in it, since git does not track them: {told}{more}", file=sys.stderr)
    for text in stage.warnings:
        print(f"archive: warning: {text}", file=sys.stderr)
    for word in stage.private.kept:
        print(
            f"archive: warning: '{word}' is a name of this machine and a word of the source; it stays", file=sys.stderr
        )
    for name, marks in sorted(stage.rewritten.items()):
        told = ", ".join(f"{total} × {mark}" for mark, total in sorted(marks.items()))
        print(f"archive: rewritten: {name} ({told})", file=sys.stderr)
    size = os.path.getsize(out)
    print(f"archive: {out}: {count} files, {size:,} bytes, SHA-256 {sums.digest(out)}", file=sys.stderr)

"""An archive of the project in the working directory, from its files to the checked whole."""

import os
import sys
import tempfile

from strata.archive import check, container, crate, guide, sums
from strata.archive.stage import Stage
from strata.base.checking import legible
from strata.base.errors import UserError

# More than this many lines are no help to look through in a terminal.
MOST = 40


def make(out: str, with_image: bool, allowed: list[str] | None = None, others: list[str] | None = None) -> None:
    """Write the archive to `out` and say on standard error what it holds.

    allowed, others: as of :class:`strata.archive.private.Private`.
    Raises UserError where something lacks or is private, or where what was put together does not pass its own
    verification.
    """
    os.makedirs("results/tmp", exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="archive-", dir="results/tmp") as folder:
        stage = Stage(os.getcwd(), folder)
        stage.add_source()
        stage.add_results()
        guide.add_recipe(stage)
        if with_image:
            stage.add_image()
        guide.add_packages(stage)
        about = guide.facts(stage, with_image)
        guide.add_guide(stage, about, crate.VERSION)
        if found := stage.look(allowed or [], others or []):
            lines = [f"{one.place}: {one.what}: {legible(one.text, 80)}" for one in found]
            raise UserError("\n".join(["archive: not written, since this is private:", *_some(lines), _REMEDY]))
        crate.write(folder, about)
        sums.write(folder)
        if wrong := check.findings(folder):
            raise UserError("\n".join(["archive: not written, since it would not verify:", *wrong]))
        container.pack(folder, out)
        _report(stage, out, len(container.files_below(folder)))


_REMEDY = (
    "take it out and measure or write that anew, or allow it: archive_allow in config.yaml lists such texts, or places "
    "as FILE:LINE"
)


def _some(lines: list[str]) -> list[str]:
    return lines[:MOST] + ([f"… and {len(lines) - MOST} more"] if len(lines) > MOST else [])


def _report(stage: Stage, out: str, count: int) -> None:
    if untracked := [legible(name, 80) for name in stage.source.untracked]:
        told = ", ".join(_some(untracked))
        print(f"archive: not in it, since git does not track them: {told}", file=sys.stderr)
    for text in stage.warnings:
        print(f"archive: warning: {text}", file=sys.stderr)
    size = os.path.getsize(out)
    print(f"archive: {out}: {count} files, {size:,} bytes, SHA-256 {sums.digest(out)}", file=sys.stderr)

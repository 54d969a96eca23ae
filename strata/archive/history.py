"""Set several dates or machines side by side: archives, projects or folders of results, in the order given."""

import contextlib
import os
import re
import shutil
import sys
import tempfile

from strata.archive import compare, sums
from strata.base.errors import UserError
from strata.base.files import write_json


def _names(paths: list[str], given: list[str] | None) -> list[str]:
    """What the sides are called.  Raises UserError where there are more or fewer names than sides, or like ones."""
    if len(paths) < 2:
        raise UserError("a history needs at least two sides: archives, projects or folders of results")
    if given and len(given) != len(paths):
        raise UserError(f"--names: there are {len(given)} for {len(paths)} sides; each side needs its own")
    names = given or [compare.name_of(path) for path in paths]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice and given:
        raise UserError(f"--names: {twice[0]!r} stands twice; each side needs its own")
    return [f"{name} ({place})" if name in twice else name for place, name in enumerate(names, 1)]


def _paper(results: str, name: str, place: int, out: str) -> str | None:
    """Copy a side's paper; the way to it from the folder of the page.  None where it has none."""
    paper = os.path.join(os.path.dirname(os.path.abspath(results)), "paper", "report.pdf")
    if not os.path.isfile(paper):
        return None
    # Whatever a side is called, its file has a name that any system and address can hold.
    called = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")
    way = f"papers/{place}-{called}.pdf" if called else f"papers/{place}.pdf"
    os.makedirs(os.path.join(out, "papers"), exist_ok=True)
    shutil.copyfile(paper, os.path.join(out, way))
    return way


def history(paths: list[str], names: list[str] | None, effect: str | None, out: str) -> int:
    """Write the history into the folder `out`, say what it comes to, and give the exit status as `compare` does.

    effect: the minimum effect, such as ``2%``; None for that of the paper.
    """
    chosen = [] if effect is None else ["--effect", repr(compare.share(effect))]
    called = _names(paths, names)
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(compare.results_of(path)) for path in paths]
        work = stack.enter_context(tempfile.TemporaryDirectory(prefix="strata-history-"))
        # Papers of a former history are not of this one.
        shutil.rmtree(os.path.join(out, "papers"), ignore_errors=True)
        sides = [
            {
                "name": name,
                "results": results,
                "source": os.path.basename(os.path.abspath(path)),
                "sha256": sums.digest(path) if os.path.isfile(path) else None,
                "paper": _paper(results, name, place, out),
            }
            for place, (path, name, results) in enumerate(zip(paths, called, found, strict=True), 1)
        ]
        listing = os.path.join(work, "sides.json")
        write_json(listing, {"sides": sides})
        status = compare.written("history", ["--sides", listing, *chosen], out)
    print(f"history: {os.path.join(out, 'index.html')}, history.csv and ratios.csv are written", file=sys.stderr)
    return status

"""Compare testbeds: archives, projects or folders of results, two or more, by the analysis of this project."""

import contextlib
import glob
import os
from collections.abc import Iterator
from typing import Any

from strata.archive import check, output
from strata.archive.checksums import of_file
from strata.util import paths, programs, progress
from strata.util.errors import MachineError, UserError
from strata.util.files import read_json, write_json

# Exit statuses, for use in CI.
SAME, DIFFERENT, NOT_COMPARABLE, UNDECIDED = 0, 1, 2, 3
_STATUS = {
    "no difference": SAME,
    "difference": DIFFERENT,
    "nothing to compare": NOT_COMPARABLE,
    "undecided": UNDECIDED,
}


def main(**options: Any) -> int:
    """Compare, and give status 2 with a message for trouble of our own and what cannot be compared."""
    try:
        return compare(**options)
    except (UserError, OSError) as error:
        progress.complain(error)
        return NOT_COMPARABLE


def compare(sides: list[str], names: list[str] | None, effect: str | None, out: str) -> int:
    """Write the comparison into the folder `out`, say what it comes to, and give the exit status.

    effect: the minimum effect, such as ``2%``; None for that of the paper.

    Status 0: no difference beyond it, and something is decided; 1: a difference; 2: nothing on two
    sides has an interval; 3: all is undecided.  Raises UserError for what cannot be compared.
    """
    called, least = names_of(sides, names), [] if effect is None else [repr(share(effect))]
    with contextlib.ExitStack() as stack:
        described = [
            {
                "name": name,
                "results": os.path.abspath(stack.enter_context(results_of(path))),
                "source": os.path.basename(os.path.abspath(path)),
                "sha256": of_file(path) if os.path.isfile(path) else "",
            }
            for path, name in zip(sides, called, strict=True)
        ]
        _refuse_equal(described)
        listing = os.path.join(stack.enter_context(programs.scratch("compare")), "sides.json")
        write_json(listing, described)
        folder = stack.enter_context(output.whole_folder(out))
        programs.r(os.path.join(paths.PROJECT, "analysis/compare.R"), listing, folder, *least)
        outcome = read_json(os.path.join(folder, "outcome.json"))
        if not outcome or outcome.get("outcome") not in _STATUS:
            raise MachineError("analysis/compare.R: it ended without writing a good outcome.json")
    progress.printed(outcome["text"])
    progress.shown(
        f"compare: {os.path.join(out, 'index.html')}, comparison.csv and provenance.csv are written"
    )
    return _STATUS[outcome["outcome"]]


def _refuse_equal(testbeds: list[dict[str, str]]) -> None:
    """Raise UserError where two testbeds hold the same values: they cannot differ from each other."""
    first: dict[tuple[tuple[str, str], ...], str] = {}
    for testbed in testbeds:
        results = testbed["results"]
        tables = sorted(glob.glob(f"{glob.escape(results)}/tidy/*.csv"))
        files = [os.path.join(results, "plan.json"), *tables]
        values = tuple((os.path.relpath(file, results), of_file(file)) for file in files)
        if tables and values in first:
            raise UserError(
                f"{first[values]} and {testbed['name']} hold the same values, so nothing can differ;"
                " name results of another machine or date"
            )
        first[values] = testbed["name"]


@contextlib.contextmanager
def results_of(path: str) -> Iterator[str]:
    """The folder of results that a path names: itself, in a project, or in an archive, which is verified first.

    Raises UserError where there are none, or where the archive does not verify.
    """
    if os.path.isfile(path) or os.path.exists(os.path.join(path, "archive.json")):
        with contextlib.ExitStack() as stack:
            with check.blameless(path):
                folder = stack.enter_context(check.unpacked(path))
                found = check.findings(folder)
            if found:
                raise UserError(f"{path}: does not verify, and is not compared:", *found)
            yield os.path.join(folder, "results")
        return
    for folder in (path, os.path.join(path, "results")):
        if os.path.exists(os.path.join(folder, "plan.json")):
            yield folder
            return
    raise UserError(
        f"{path}: holds no results/plan.json; name an archive, a project, or its folder of results"
    )


def names_of(sides: list[str], given: list[str] | None) -> list[str]:
    """What the sides are called: as given, or by their files' names, with their place where these are alike.

    Raises UserError where there are fewer than two sides, more or fewer names than sides, or like ones.
    """
    if len(sides) < 2:
        raise UserError(
            "a comparison needs at least two sides: archives, projects or folders of results"
        )
    if given and len(given) != len(sides):
        raise UserError(
            f"--names: there are {len(given)} for {len(sides)} sides; each side needs its own"
        )
    names = given or [_name_of(os.path.abspath(path)) for path in sides]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice and given:
        raise UserError(f"--names: {twice[0]!r} stands twice; each side needs its own")
    return [f"{name} ({place})" if name in twice else name for place, name in enumerate(names, 1)]


def _name_of(path: str) -> str:
    name = os.path.basename(os.path.dirname(path) if os.path.basename(path) == "results" else path)
    return name.removesuffix(".zip")


def share(effect: str) -> float:
    """The minimum effect that was given, as a share.  Raises UserError where it is none."""
    try:
        given = float(effect.removesuffix("%")) / 100
    except ValueError:
        given = -1.0
    if not 0 <= given < 1:
        raise UserError(
            f"--effect: is {effect!r}; must be a share such as 2%, at least 0% and below 100%"
        )
    return given

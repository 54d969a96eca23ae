"""Compare testbeds: two or more archives, projects or folders of results."""

import contextlib
import glob
import os
from collections.abc import Iterator
from typing import Any

from strata.archive import check, output
from strata.archive.checksums import hash_file
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
Testbed = dict[str, str]


def main(**options: Any) -> int:
    """Call :func:`compare`; return 2 after a message where it cannot compare."""
    try:
        return compare(**options)
    except (UserError, OSError) as error:
        progress.print_error(error)
        return NOT_COMPARABLE


def compare(sides: list[str], names: list[str] | None, effect: str | None, out: str) -> int:
    """Write a comparison into a folder, print its outcome, and return the exit status.

    sides: paths of archives, projects or folders of results.  names: of the sides; None: of their
    files.
    effect: the smallest difference that matters, such as ``2%``; None: the paper's.
    out: the folder to write.

    Status 0: no difference, and something is decided; 1: a difference; 2: no series has an interval
    on two sides; 3: all is undecided.  Raises UserError for sides or options that cannot be
    compared.
    """
    names = choose_names(sides, names)
    options = [] if effect is None else [repr(parse_share(effect))]
    with contextlib.ExitStack() as stack:
        testbeds = [
            {
                "name": name,
                "results": os.path.abspath(stack.enter_context(open_results(path))),
                "source": os.path.basename(os.path.abspath(path)),
                "sha256": hash_file(path) if os.path.isfile(path) else "",
            }
            for path, name in zip(sides, names, strict=True)
        ]
        _refuse_equal(testbeds)
        listing = os.path.join(
            stack.enter_context(programs.temporary_folder("compare")), "sides.json"
        )
        write_json(listing, testbeds)
        folder = stack.enter_context(output.whole_folder(out))
        script = os.path.join(paths.PROJECT, "analysis/compare.R")
        programs.run_r(script, listing, folder, *options)
        outcome = read_json(os.path.join(folder, "outcome.json"))
        if not outcome or outcome.get("outcome") not in _STATUS:
            raise MachineError("analysis/compare.R: it ended without writing a good outcome.json")
    progress.print_line(outcome["text"])
    page = os.path.join(out, "index.html")
    progress.print_message(f"compare: {page}, comparison.csv and provenance.csv are written")
    return _STATUS[outcome["outcome"]]


def _refuse_equal(testbeds: list[Testbed]) -> None:
    """Raise UserError if two testbeds hold the same values, so that nothing can differ."""
    names: dict[tuple[tuple[str, str], ...], str] = {}
    for testbed in testbeds:
        results = testbed["results"]
        tables = sorted(glob.glob(f"{glob.escape(results)}/tidy/*.csv"))
        files = [os.path.join(results, "plan.json"), *tables]
        values = tuple((os.path.relpath(file, results), hash_file(file)) for file in files)
        if tables and values in names:
            raise UserError(
                f"{names[values]} and {testbed['name']} hold the same values, so nothing can "
                "differ; name results of another machine or date"
            )
        names[values] = testbed["name"]


@contextlib.contextmanager
def open_results(path: str) -> Iterator[str]:
    """Yield the folder of results at a path: itself, in a project, or in a verified archive.

    Raises UserError where there are no results, or where the archive does not verify.
    """
    if os.path.isfile(path) or os.path.exists(os.path.join(path, "archive.json")):
        with contextlib.ExitStack() as stack:
            with check.report_machine_failures(path):
                folder = stack.enter_context(check.open_archive(path))
                faults = check.find_faults(folder)
            if faults:
                raise UserError(f"{path}: does not verify, and is not compared:", *faults)
            yield os.path.join(folder, "results")
        return
    if not os.path.exists(path):
        raise UserError(
            f"{path}: there is no such file; name an archive, a project, or its folder of results"
        )
    for folder in (path, os.path.join(path, "results")):
        if os.path.exists(os.path.join(folder, "plan.json")):
            yield folder
            return
    raise UserError(
        f"{path}: holds no results/plan.json; name an archive, a project, or its folder of results"
    )


def choose_names(sides: list[str], names: list[str] | None) -> list[str]:
    """Return the names of the sides: as given, or of their files, numbered where equal.

    Raises UserError for fewer than two sides, another number of names than of sides, or equal
    names.
    """
    if len(sides) < 2:
        raise UserError(
            "a comparison needs at least two sides: archives, projects or folders of results"
        )
    if names and len(names) != len(sides):
        raise UserError(
            f"--names: there are {len(names)} for {len(sides)} sides; each side needs its own"
        )
    chosen = names or [_name_file(os.path.abspath(path)) for path in sides]
    repeated = sorted({name for name in chosen if chosen.count(name) > 1})
    if repeated and names:
        raise UserError(f"--names: {repeated[0]!r} is given twice; each side needs its own")
    return [
        f"{name} ({number})" if name in repeated else name for number, name in enumerate(chosen, 1)
    ]


def _name_file(path: str) -> str:
    """Return the name of an archive or of a project, also for the path of its folder `results`."""
    project = os.path.dirname(path) if os.path.basename(path) == "results" else path
    return os.path.basename(project).removesuffix(".zip")


def parse_share(effect: str) -> float:
    """Return the number of a share such as ``2%``.  Raises UserError for any other text."""
    try:
        share = float(effect.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise UserError(
            f"--effect: is {effect!r}; must be a share such as 2%, at least 0% and below 100%"
        )
    return share

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
    "equivalent": SAME,
    "difference": DIFFERENT,
    "nothing to compare": NOT_COMPARABLE,
    "undecided": UNDECIDED,
}
# Sessions that a side must hold if it holds more than one: fewer say too little of how they vary.
SESSIONS = 3
Testbed = dict[str, Any]


def compare(sides: list[str], names: list[str] | None, effect: str | None, out: str) -> int:
    """Compare testbeds, write the comparison into a folder, and print its outcome.

    sides: paths of archives, projects or folders of results, two or more; or of folders that hold
    several of these, one for each session.
    names: a name for each side; None: the names of their files.
    effect: the smallest difference that matters, such as ``2%``; None: that of the paper.
    out: the folder to write index.html and the tables into.

    Returns the exit status: 0 if all that decides is equivalent, 1 if something differs, 2 if no
    series has an interval on two sides, 3 otherwise.
    Raises UserError for sides or options that cannot be compared, and MachineError if the script of
    R writes no outcome.  `out` is then as it was before.
    """
    names = choose_names(sides, names)
    options = [] if effect is None else [repr(parse_share(effect))]
    with contextlib.ExitStack() as stack:
        listed = [list_sessions(path) for path in sides]
        _require_equal_design(sides, listed)
        testbeds = [
            open_testbed(stack, path, sessions, name)
            for path, sessions, name in zip(sides, listed, names, strict=True)
        ]
        _refuse_equal(testbeds)
        for path, testbed in zip(sides, testbeds, strict=True):
            require_starts(path, testbed["results"])
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


def list_sessions(side: str) -> list[str]:
    """Return the paths of the sessions that a side holds: archives, projects or results.

    side: the path of one of these, which is a session itself, or of a folder of several.
    """
    is_session = os.path.isfile(side) or any(
        os.path.exists(os.path.join(side, name))
        for name in ("archive.json", "plan.json", "results/plan.json")
    )
    if is_session or not os.path.isdir(side):
        return [side]
    entries = [os.path.join(side, name) for name in sorted(os.listdir(side))]
    sessions = [
        entry
        for entry in entries
        if entry.endswith(".zip") or os.path.exists(os.path.join(entry, "results/plan.json"))
    ]
    return sessions or [side]


def _require_equal_design(sides: list[str], listed: list[list[str]]) -> None:
    """Raise UserError unless each side is one session, or each holds enough of them.

    sides: paths.  listed: the sessions of each.
    """
    if all(len(sessions) == 1 for sessions in listed):
        return
    for side, sessions in zip(sides, listed, strict=True):
        if len(sessions) < SESSIONS:
            raise UserError(
                f"{side}: holds {len(sessions)} of the at least {SESSIONS} sessions that each side "
                "needs where one holds several; measure more, each after a restart, or name one "
                "session for each side"
            )


def open_testbed(stack: contextlib.ExitStack, path: str, sessions: list[str], name: str) -> Testbed:
    """Return a side as analysis/compare.R reads it; its archives stay unpacked with `stack`.

    path: as it was named.  sessions: as :func:`list_sessions` returns them.  name: of the side.
    Raises as :func:`open_results`.
    """
    folders = [stack.enter_context(open_results(session)) for session in sessions]
    digests = [hash_file(session) for session in sessions if os.path.isfile(session)]
    return {
        "name": name,
        "results": [os.path.abspath(folder) for folder in folders],
        "source": os.path.basename(os.path.abspath(path)),
        "sha256": " ".join(digests),
    }


def read_starts(results: str) -> set[str]:
    """Return the starts of the kernel and of Docker in which cells were measured.

    results: the folder of results.  A cell whose record does not say it counts for none.
    """
    pattern = os.path.join(glob.escape(results), "raw/*/*/*.json")
    nodes = [(read_json(path) or {}).get("node") or {} for path in glob.iglob(pattern)]
    return {f"{node['boot']} {node.get('docker')}" for node in nodes if node.get("boot")}


def require_starts(side: str, sessions: list[str]) -> None:
    """Raise UserError if two sessions of a side are of one start of kernel and Docker.

    side: its path, for the message.  sessions: folders of results.
    """
    known: set[str] = set()
    for results in sessions:
        starts = read_starts(results)
        if known & starts:
            raise UserError(
                f"{side}: two of its sessions were measured without a restart between them, and "
                "count as one; measure more, each after a restart of the machine or of Docker"
            )
        known |= starts


def _refuse_equal(testbeds: list[Testbed]) -> None:
    """Raise UserError if two sessions have the same plan and tables, so that nothing can differ."""
    names: dict[tuple[tuple[str, str], ...], str] = {}
    for testbed in testbeds:
        for results in testbed["results"]:
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
    """Yield the folder of results that a path names, after checking it if it is an archive's.

    path: an archive (a file or an unpacked folder), a project, or its folder of results.
    An archive's file is unpacked into a temporary folder, which is removed when the block ends.
    Raises UserError if there are no results or the archive has faults, and MachineError if the
    archive cannot be checked on this machine.
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
    """Return a unique name for each side: the given one, or that of its file.

    sides: paths.  names: one for each side; None or empty: the names of the files, with the number
    of the side, from 1, appended where two are equal.
    Raises UserError for fewer than two sides, for more or fewer names than sides, and for equal
    names that were given.
    """
    if len(sides) < 2:
        raise UserError(
            "a comparison needs at least two sides: archives, projects or folders of results"
        )
    if names and len(names) != len(sides):
        raise UserError(
            f"--names: there are {len(names)} for {len(sides)} sides; each side needs its own"
        )
    chosen = names or [name_file(os.path.abspath(path)) for path in sides]
    repeated = sorted({name for name in chosen if chosen.count(name) > 1})
    if repeated and names:
        raise UserError(f"--names: {repeated[0]!r} is given twice; each side needs its own")
    return [
        f"{name} ({number})" if name in repeated else name for number, name in enumerate(chosen, 1)
    ]


def name_file(path: str) -> str:
    """Return the base name of an archive, without ``.zip``, or of a project.

    The path of a project's folder `results` gives the name of the project.
    """
    project = os.path.dirname(path) if os.path.basename(path) == "results" else path
    return os.path.basename(project).removesuffix(".zip")


def parse_share(effect: str, option: str = "--effect") -> float:
    """Return a percentage such as ``2%`` as a fraction, here 0.02; the percent sign may be missing.

    option: its name in messages.
    Raises UserError for another text, and for less than 0 % or 100 % and more.
    """
    try:
        share = float(effect.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise UserError(
            f"{option}: is {effect!r}; must be a share such as 2%, at least 0% and below 100%"
        )
    return share

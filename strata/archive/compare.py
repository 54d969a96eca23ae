"""The command ``strata compare``: compare archives, projects or folders of results by ratios."""

import contextlib
import csv
import glob
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from strata.archive import check, light, output
from strata.archive.checksums import format_checksum, hash_file
from strata.experiment import plan
from strata.results import tidy, validate
from strata.util import paths, programs, progress
from strata.util.errors import MachineError, UserError
from strata.util.files import read_json, write_json

# The exit status for each outcome that analysis/compare.R may write.  CI jobs rely on the numbers.
_STATUS = {"equivalent": 0, "difference": 1, "nothing to compare": 2, "undecided": 3}
# Sessions that a side must hold if it holds more than one: fewer say too little of how they vary.
MIN_SESSIONS = 3
# A side, as analysis/compare.R reads it: {name, results, source, sha256} of open_testbed.
Testbed = dict[str, Any]


def compare_testbeds(
    sides: list[str], names: list[str] | None, effect: str | None, out: str
) -> int:
    """Compare testbeds, write the comparison into a folder, and print its outcome.

    sides: paths of archives, projects or folders of results, two or more; or of folders that hold
    several of these, one for each session.
    names: a name for each side; None for the names of their files.
    effect: the smallest difference that matters, for example ``2%``; None for that of the paper.
    out: the folder to write index.html and the tables into.
    Returns the exit status, on which CI jobs rely: 0 if everything that decides is equivalent, 1 if
    something differs, 2 if no series has an interval on two sides, 3 if it stays undecided.
    Raises UserError for sides or options that cannot be compared, and MachineError if the script of
    R writes no outcome.  `out` is then as it was before.
    The parameters must have the names that ``add_compare_options`` of strata/options.py gives to
    the options.
    """
    names = choose_side_names(sides, names)
    options = [] if effect is None else [repr(parse_share(effect))]
    with contextlib.ExitStack() as stack:
        sessions = {path: list_sessions(path) for path in sides}
        _check_session_counts(sessions)
        testbeds = [
            open_testbed(stack, path, sessions[path], name)
            for path, name in zip(sides, names, strict=True)
        ]
        _check_sessions_differ(testbeds)
        for path, testbed in zip(sides, testbeds, strict=True):
            check_session_starts(path, testbed["results"])
        check_output_folder(out, [folder for testbed in testbeds for folder in testbed["results"]])
        temporary_folder = stack.enter_context(programs.create_temporary_folder("compare"))
        sides_file = os.path.join(temporary_folder, "sides.json")
        write_json(sides_file, testbeds)
        output_folder = stack.enter_context(output.write_whole_folder(out))
        script = os.path.join(paths.PROJECT, "analysis/compare.R")
        programs.run_r(script, sides_file, output_folder, *options)
        # The script writes this file last, with the keys `outcome` and `text`.
        summary = read_json(os.path.join(output_folder, "outcome.json"))
        if not summary or summary.get("outcome") not in _STATUS:
            raise MachineError("analysis/compare.R: it ended without writing a good outcome.json")
    progress.print_line(summary["text"])
    page = os.path.join(out, "index.html")
    progress.print_message(f"compare: {page}, comparison.csv and provenance.csv are written")
    return _STATUS[summary["outcome"]]


def list_sessions(side: str) -> list[str]:
    """Return the paths of the sessions that a side holds, sorted; at least one.

    side: the path of an archive, a project or its results, which is one session, or of a folder
    that holds several of these.
    A path that is none of these is returned as a session, which :func:`open_results` then refuses.
    Every zip file in the folder counts as a session, so that a broken one is reported.
    """
    if not os.path.isdir(side):
        return [side]
    for name in ("archive.json", "plan.json", "results/plan.json"):
        if os.path.exists(os.path.join(side, name)):
            return [side]
    sessions = []
    for name in sorted(os.listdir(side)):
        path = os.path.join(side, name)
        plan_paths = [os.path.join(path, plan) for plan in ("plan.json", "results/plan.json")]
        if name.endswith(".zip") or any(map(os.path.exists, plan_paths)):
            sessions.append(path)
    return sessions if sessions else [side]


def _check_session_counts(sessions: dict[str, list[str]]) -> None:
    """Raise UserError unless each side has one session, or each has at least `MIN_SESSIONS`.

    sessions: path of each side → the paths of its sessions.
    """
    if all(len(session_paths) == 1 for session_paths in sessions.values()):
        return
    for side, session_paths in sessions.items():
        if len(session_paths) < MIN_SESSIONS:
            raise UserError(
                f"{side}: holds {len(session_paths)} of at least {MIN_SESSIONS} sessions, which "
                "each side needs if one side has several. Measure more, each after a restart, or "
                "name one session for each side."
            )


def open_testbed(stack: contextlib.ExitStack, path: str, sessions: list[str], name: str) -> Testbed:
    """Check and open a side, and return it as analysis/compare.R reads it.

    stack: removes the unpacked archives when it closes; the result can be used until then.
    path: the path of the side, as the user gave it.
    sessions: the paths of its sessions, as :func:`list_sessions` returns them.
    name: the name of the side, for tables and figures.
    Returns ``{name, results, source, sha256}``: `results` lists the absolute path of each session's
    results, `source` is the base name of `path`, and `sha256` holds the digests of archives that
    are files, in hexadecimal and space-separated.
    Raises as :func:`open_results` does.
    """
    folders = [stack.enter_context(open_results(session)) for session in sessions]
    digests = [hash_file(session) for session in sessions if os.path.isfile(session)]
    return {
        "name": name,
        "results": [os.path.abspath(folder) for folder in folders],
        "source": os.path.basename(os.path.abspath(path)),
        "sha256": " ".join(digests),
    }


def list_starts(results: str) -> set[str]:
    """Return the starts of kernel and Docker under which the cells in a folder of results ran.

    results: the path of the folder of results.
    A start is a string: the kernel's boot ID, a space, and the time of Docker's start, which is
    "None" without Docker.
    Cells whose record names no boot (:func:`strata.host.node.identify_node`) are left out.
    The form must stay: ``strata gate`` stores starts (strata/gate/), and looks for the boot ID at
    the beginning.
    """
    starts = set()
    for path in glob.iglob(os.path.join(glob.escape(results), "raw/*/*/*.json")):
        record = read_json(path) or {}
        node = record.get("node") or {}
        if node.get("boot"):
            starts.add(f"{node['boot']} {node.get('docker')}")
    return starts


def check_session_starts(side: str, sessions: list[str]) -> None:
    """Raise UserError if two sessions of a side were measured in one start of kernel and Docker.

    side: the path of the side, for the message.
    sessions: the folder of results of each session.
    Sessions whose records name no start pass.
    """
    earlier_starts: set[str] = set()
    for results in sessions:
        starts = list_starts(results)
        if earlier_starts & starts:
            raise UserError(
                f"{side}: two of its sessions were measured without a restart between them, and "
                "count as one. Measure more, each after a restart of the machine or of Docker."
            )
        earlier_starts |= starts


def _check_sessions_differ(testbeds: list[Testbed]) -> None:
    """Raise UserError if two sessions have the same plan and tables, and so cannot differ.

    testbeds: the sides, as :func:`open_testbed` returns them.
    Sessions without tables pass.
    """
    # The checksums of a session's files → the name of the session's side.
    side_names: dict[str, str] = {}
    for testbed in testbeds:
        for results in testbed["results"]:
            tables = sorted(glob.glob("tidy/*.csv", root_dir=results))
            checksums = "".join(format_checksum(results, name) for name in ("plan.json", *tables))
            if tables and checksums in side_names:
                raise UserError(
                    f"{side_names[checksums]} and {testbed['name']} hold the same values, so "
                    "nothing can differ. Name results of another machine or date."
                )
            side_names[checksums] = testbed["name"]


@contextlib.contextmanager
def open_results(path: str, takes_light: bool = False, needs_tables: bool = True) -> Iterator[str]:
    """Check an archive, a project or a folder of results, and yield its folder of results.

    path: an archive (a file or an unpacked folder), a project, or its folder of results.
    takes_light: whether a light archive, which holds only ratios and sessions, is accepted.
    needs_tables: whether measured values must be in tables with the right columns.
    Raises UserError if there are no results or they have faults, and MachineError if an archive
    cannot be checked on this machine.
    An archive that is a file is unpacked into a temporary folder, which is removed when the `with`
    block ends.
    """
    is_archive = os.path.isfile(path) or os.path.exists(os.path.join(path, "archive.json"))
    if is_archive or (takes_light and light.is_light_archive(path)):
        with _open_archived_results(path, takes_light) as results:
            yield results
        return
    if not os.path.exists(path):
        raise UserError(
            f"{path}: there is no such file; name an archive, a project, or its folder of results"
        )
    for results in (path, os.path.join(path, "results")):
        if os.path.exists(os.path.join(results, "plan.json")):
            faults = _find_folder_faults(results, takes_light, needs_tables)
            if faults:
                raise UserError(f"{path}: its results cannot be used:", *faults)
            yield results
            return
    raise UserError(
        f"{path}: holds no results/plan.json; name an archive, a project, or its folder of results"
    )


@contextlib.contextmanager
def _open_archived_results(path: str, takes_light: bool) -> Iterator[str]:
    """Unpack and check an archive, and yield its folder of results.

    path: the archive's file, or the folder of an unpacked one.
    takes_light: whether a light archive is accepted.
    Raises UserError if the archive has faults or is refused, and MachineError if it cannot be
    checked on this machine.
    The temporary folder is removed when the `with` block ends.
    """
    with contextlib.ExitStack() as stack:
        # Only errors of the check are converted, not those of the caller's block.  The stack keeps
        # the unpacked folder for that block.
        with check.convert_to_machine_error(path):
            folder = stack.enter_context(check.open_archive(path))
            if not light.is_light_archive(folder):
                faults = check.find_archive_faults(folder)
            elif takes_light:
                faults = light.find_light_archive_faults(folder)
            else:
                raise UserError(
                    f"{path}: is a light archive, which holds no runs. Name a whole one, or put it "
                    "beside others by `strata pool`."
                )
        if faults:
            raise UserError(f"{path}: does not verify, and is not used:", *faults)
        yield os.path.join(folder, "results")


def _find_folder_faults(folder: str, takes_light: bool, needs_tables: bool) -> list[str]:
    """Return a sentence, with the path of the file, for each fault of a folder of results.

    folder: a folder of results with a plan.json.
    takes_light: whether the tables of a light archive are checked, and not those of values.
    needs_tables: whether tables are checked at all.
    If the plan has mistakes, these are the only result, since the tables follow from it.
    """
    try:
        experiment = validate.load_object(folder, "plan.json")
        faults = [text.removeprefix("results/") for text in plan.find_plan_mistakes(experiment)]
    except UserError as error:
        faults = [*error.args]
    if faults:
        return [os.path.join(folder, fault) for fault in faults]
    if not needs_tables:
        return []
    # Path of each needed table in the folder → the columns that it must have.
    tables: dict[str, Sequence[str]] = {}
    if takes_light:
        for name in light.FILES:
            tables[os.path.relpath(name, "results")] = light.list_table_columns(name)
    else:
        logs = glob.glob(os.path.join(glob.escape(folder), "raw/*/*/*.log"))
        if not logs:
            return [f"{os.path.join(folder, 'raw')}: holds no log, so nothing was measured there"]
        measured_workloads = {os.path.basename(os.path.dirname(log)) for log in logs}
        for name in sorted(measured_workloads & set(experiment["workloads"])):
            tables[f"tidy/{name}.csv"] = (*tidy.CELL_COLUMNS, *tidy.VALUE_COLUMNS)
            tables[f"laps/{name}.csv"] = (*tidy.CELL_COLUMNS, "lap", "value")
    for table, columns in tables.items():
        table_path = os.path.join(folder, table)
        # All tables of values are made with comparisons.csv.
        target = f"results/{table}" if takes_light else "results/comparisons.csv"
        # Without partial=true, cells that are still due would be measured first.
        command = f"snakemake --cores 1 --config partial=true -- {target}"
        remedy = f"`{command}` in its project makes it again"
        if not os.path.isfile(table_path):
            faults.append(f"{table_path}: is missing: {remedy}")
            continue
        if fault := _find_table_fault(table_path, columns):
            faults.append(f"{table_path}{fault}: remove it; {remedy}")
    return faults


def _find_table_fault(path: str, columns: Sequence[str]) -> str:
    """Return the first fault of a CSV table, as the end of a sentence; "" if it has none.

    path: the path of the table; bytes that are not UTF-8 are replaced.
    columns: the columns that the table must have.  A column `value` has to hold finite numbers.
    Returns for example ``, line 3: has 4 cells in place of 5``; the path precedes it.
    """
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        for column in columns:
            if column not in header:
                return f": lacks the column {column}"
        value_index = header.index("value") if "value" in columns else None
        for row in reader:
            if len(row) != len(header):
                return f", line {reader.line_num}: has {len(row)} cells in place of {len(header)}"
            if value_index is not None and not _is_number(row[value_index]):
                return f", line {reader.line_num}: the value {row[value_index]!r} is no number"
    return ""


def _is_number(text: str) -> bool:
    """Return whether a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def check_output_folder(out: str, folders: Iterable[str]) -> None:
    """Raise UserError if output would replace files in a folder of results.

    out: the folder for output; it must not hold a plan.json, nor be or lie in one of `folders`.
    folders: the folders of results that are read.
    """
    # The separator at the end keeps results-2 from counting as a part of results.
    path = f"{os.path.realpath(out)}{os.sep}"
    is_in_results = any(
        path.startswith(f"{os.path.realpath(folder)}{os.sep}") for folder in folders
    )
    if is_in_results or os.path.exists(os.path.join(out, "plan.json")):
        raise UserError(
            f"--to: {out} is a folder of results, whose tables would be replaced; name another one"
        )


def choose_side_names(sides: list[str], names: list[str] | None) -> list[str]:
    """Return a unique name for each side, in their order: the user's name, or that of its file.

    sides: the paths of the sides.
    names: a name for each side; None or empty for the names of the files.
    If the files of two sides have the same name, the number of the side is appended, as in
    ``archive (1)`` and ``archive (2)``.
    Raises UserError for fewer than two sides, for more or fewer names than sides, and if the user
    gives a name twice.
    """
    if len(sides) < 2:
        raise UserError(
            "a comparison needs at least two sides: archives, projects or folders of results"
        )
    if names and len(names) != len(sides):
        raise UserError(
            f"--names: there are {len(names)} for {len(sides)} sides; each side needs its own"
        )
    side_names = names or [get_base_name(os.path.abspath(path)) for path in sides]
    repeated = sorted({name for name in side_names if side_names.count(name) > 1})
    if repeated and names:
        raise UserError(f"--names: {repeated[0]!r} is given twice; each side needs its own")
    return [
        f"{name} ({number})" if name in repeated else name
        for number, name in enumerate(side_names, 1)
    ]


def get_base_name(path: str) -> str:
    """Return the base name of an archive, without ``.zip``, or of a project.

    path: an absolute path.  A project's folder `results` gets the name of the project.
    ``strata compare`` gives this name to a side, and ``strata reproduce`` to a folder.
    """
    project = os.path.dirname(path) if os.path.basename(path) == "results" else path
    return os.path.basename(project).removesuffix(".zip")


def parse_share(effect: str, option: str = "--effect") -> float:
    """Return a percentage as a fraction, for example 0.02 for ``2%``.

    effect: the percentage, as the user typed it.
    option: the name of the command's option, for the message.
    Raises UserError for a string of another form, for a number without its ``%``, which could be a
    fraction, and unless it is above 0 % and below 100 %.
    """
    # The check below refuses NaN, since no comparison with it is true.
    share = math.nan
    if effect.endswith("%"):
        with contextlib.suppress(ValueError):
            share = float(effect.removesuffix("%")) / 100
    if not 0 < share < 1:
        raise UserError(
            f"{option}: is {effect!r}; must be a percentage such as 2%, above 0% and below 100%"
        )
    return share

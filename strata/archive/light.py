"""The light archive: a few kilobytes that hold the ratios and sessions of results, and no log.

It is made to be sent and kept: ``strata pool`` puts several side by side.  It is read as carefully
as a whole archive.  Nothing in it can be made again from logs; it names the digest of these.
"""

import csv
import hashlib
import os
import re
from collections.abc import Collection

from strata.archive import checksums, zip_file
from strata.experiment import blocks
from strata.results import validate
from strata.results.validate import load_object
from strata.util import paths, validation
from strata.util.constants import get_result_path
from strata.util.data_types import Fields, Plan
from strata.util.errors import UserError

FACTS = "light.json"
# The format of light archives: this version reads this one only.
FORMAT = 3
RATIOS, SESSIONS = get_result_path("ratios"), get_result_path("sessions")
FILES = (RATIOS, SESSIONS)
NOTE = "A light archive holds no logs, from which its tables could be made again."
# The columns of both tables, and the regular expression that each value of a column must match.
_NUMBER = r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]{1,2})?"
_MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z"
_MACHINE = r"[0-9a-f]{12}"
_SESSION = rf"{_MACHINE}-{_MOMENT}"
_TEXT = r"[^\x00-\x1f\x7f]{0,400}"
_FORMS = {
    RATIOS: {
        **dict.fromkeys(("workload", "metric", "environment", "reference", "title"), _TEXT),
        **dict.fromkeys(("metric_label", "series", "unit", "label", "question"), _TEXT),
        "better": "higher|lower",
        "family": "containers|sandboxes|machines",
        "valid": "yes|no",
        "headline": "yes|no",
        "session": _SESSION,
        "machine": _MACHINE,
        "repetition": "[1-9][0-9]{0,8}",
        "ratio": _NUMBER,
        "robust": _NUMBER,
    },
    SESSIONS: {
        "session": _SESSION,
        "machine": _MACHINE,
        "from": _MOMENT,
        "to": _MOMENT,
        **dict.fromkeys(("boot", "docker_start"), _TEXT),
        "cells": "[1-9][0-9]{0,8}",
        **dict.fromkeys(("cpu_model", "cpus", "memory_bytes", "cache_bytes", "kernel"), _TEXT),
        **dict.fromkeys(("os", "virtualization", "docker", "gvisor", "vm"), _TEXT),
    },
}
Row = dict[str, str]


def build_summary(folder: str, given_facts: Fields) -> Fields:
    """Return the content of light.json, which identifies the logs behind a light archive.

    folder: the project's folder, with the logs.
    given_facts: the values of the keys `strata` and `source`, which do not follow from results.
    Returns a mapping with the keys of schemas/light.schema.json.
    Raises UserError if nothing was measured.
    The digest in `raw` identifies the logs: two archives of the same logs have the same.  It covers
    the lines, in their order, that SHA256SUMS of a whole archive has for logs and records of
    measured cells.  If it were computed in another way, old and new archives of the same logs would
    seem to differ.
    """
    experiment = load_object(folder, paths.PLAN)
    cells = blocks.Order(experiment, os.path.join(folder, "results")).list_cells()
    measured_cells = validate.list_measured_cells(cells, folder)
    if not measured_cells:
        raise UserError("nothing was measured yet, so there is nothing to archive")
    file_names = set()
    for cell in measured_cells:
        for suffix in ("log", "json"):
            file_names.add(paths.get_cell_path("raw", *cell, suffix))
    digest = hashlib.sha256()
    # The order of bytes, as zip_file.list_files has it.
    for name in sorted(file_names, key=str.encode):
        digest.update(checksums.format_checksum(folder, name).encode())
    return {
        "format": FORMAT,
        **given_facts,
        **_select_pooled_settings(experiment),
        "missing": len(cells) - len(measured_cells),
        "raw": {"files": len(file_names), "sha256": digest.hexdigest()},
    }


def _select_pooled_settings(experiment: Plan) -> Fields:
    """Return ``{scale, environments}`` of a plan, where an environment's value is its layers.

    Only sessions that agree in both are pooled.  light.json has the same keys.
    """
    layers = {name: entry["layers"] for name, entry in experiment["environments"].items()}
    return {"scale": experiment["scale"], "environments": layers}


def read_settings(results: str) -> Fields:
    """Return `scale` and `environments` (name → layers) of results in a project or light archive.

    results: the folder of results, whose files were checked.
    """
    if os.path.exists(os.path.join(results, os.path.basename(paths.PLAN))):
        return _select_pooled_settings(load_object(results, os.path.basename(paths.PLAN)))
    facts = load_object(os.path.dirname(os.path.abspath(results)), FACTS)
    return {key: facts[key] for key in ("scale", "environments")}


def list_table_columns(name: str) -> list[str]:
    """Return the columns that a table of `FILES` has in every light archive."""
    return [*_FORMS[name]]


def is_light_archive(folder: str) -> bool:
    """Return whether a folder is an unpacked light archive: it has a light.json."""
    return os.path.lexists(os.path.join(folder, FACTS))


def find_light_archive_faults(folder: str) -> list[str]:
    """Return a sentence for each fault of an unpacked light archive; an empty list for a good one.

    folder: the folder of the unpacked archive.
    The order of the checks must stay, since each relies on the earlier ones.  The first check with
    faults is therefore the last that runs.
    Callers convert errors except UserError, whose sentences are faults, by
    :func:`strata.archive.check.convert_to_machine_error`.
    """
    try:
        for find_faults in (checksums.find_checksum_faults, _find_wrong_facts, _find_wrong_rows):
            if faults := find_faults(folder):
                return faults
    except UserError as error:
        return [*error.args]
    return []


def _find_wrong_facts(folder: str) -> list[str]:
    """Return a sentence for each fault of the list of files and of light.json.

    A wrong list of files, or another format, ends the check: all later checks rely on both.
    """
    names = set(zip_file.list_files(folder))
    expected_names = {FACTS, checksums.NAME, *FILES}
    faults = [f"{name}: missing" for name in sorted(expected_names - names)]
    faults += [f"{name}: no light archive holds it" for name in sorted(names - expected_names)]
    if faults:
        return faults
    facts = load_object(folder, FACTS)
    archive_format = facts.get("format")
    if archive_format != FORMAT:
        return [f"{FACTS}: its format is {archive_format}; this version reads format {FORMAT}"]
    schema = validation.load_schema("light")
    return [f"{FACTS}: {key}: {text}" for key, text in validation.find_schema_faults(schema, facts)]


def _find_wrong_rows(folder: str) -> list[str]:
    """Return a list with a sentence for the first wrong row of both tables, or an empty list.

    folder: the folder of the unpacked archive, whose light.json was checked.
    The tables are sessions.csv, which is checked first, and ratios.csv.  Rows must agree with
    light.json, with each other and in themselves.
    Raises UserError, which names the line, for a value that its column cannot have.
    """
    environments = load_object(folder, FACTS)["environments"]
    sessions = _read_rows(folder, SESSIONS)
    ratios = _read_rows(folder, RATIOS)
    if fault := _find_session_fault(sessions):
        return [fault]
    # Session → its machine.
    machines = {row["session"]: row["machine"] for row in sessions}
    if fault := _find_ratio_fault(ratios, environments, machines):
        return [fault]
    return []


def _find_session_fault(sessions: list[Row]) -> str:
    """Return a sentence for the first fault in the rows of sessions.csv; "" if there is none."""
    session_ids = {row["session"] for row in sessions}
    if not sessions or len(session_ids) < len(sessions):
        return f"{SESSIONS}: it must name each session once"
    # The header is line 1.
    for line_number, row in enumerate(sessions, 2):
        # Timestamps of the form YYYY-MM-DDTHH:MM:SSZ are in the order of their characters.
        if not row["session"].startswith(f"{row['machine']}-") or row["from"] > row["to"]:
            return f"{SESSIONS}:{line_number}: session, machine, from and to contradict one another"
    return ""


def _find_ratio_fault(
    ratios: list[Row], environments: Collection[str], machines: dict[str, str]
) -> str:
    """Return a sentence for the first fault in the rows of ratios.csv; "" if there is none.

    ratios: the rows, whose values have the forms of their columns.
    environments: the names of the environments in light.json.
    machines: session → its machine, of all rows of sessions.csv.
    """
    keys_so_far = set()
    # The header is line 1.
    for line_number, row in enumerate(ratios, 2):
        workload, environment = row["workload"], row["environment"]
        if environment not in environments:
            return f"{RATIOS}:{line_number}: {FACTS} has no environment {environment!r}"
        if machines.get(row["session"]) != row["machine"]:
            return f"{RATIOS}:{line_number}: its session and machine are not in {SESSIONS}"
        # The form of a number lets 1e99 pass, which is not a measured ratio.
        if not 1e-9 < float(row["ratio"]) < 1e9 or not 1e-9 < float(row["robust"]) < 1e9:
            return f"{RATIOS}:{line_number}: a ratio must be above 0, and no larger than 1e9"
        # Workload, metric, factors and environment name a series, and the repetition its block.
        factors = tuple(value for name, value in row.items() if name.startswith("factor_"))
        key = (workload, row["metric"], factors, environment, row["repetition"])
        if key in keys_so_far:
            return f"{RATIOS}:{line_number}: the block of this series is there twice"
        keys_so_far.add(key)
    return ""


def _read_rows(folder: str, name: str) -> list[Row]:
    """Check a table against `_FORMS`, and return its rows as ``{column: string}``.

    folder: the folder of the unpacked archive.
    name: the path of the table in the archive, `RATIOS` or `SESSIONS`.
    Columns may have any order, and ratios may have further columns for factors.
    Raises UserError, which names the line, for a wrong column, or a value that does not match its
    pattern in `_FORMS`.
    """
    forms = _FORMS[name]
    try:
        with open(os.path.join(folder, name), newline="", encoding="utf-8") as file:
            lines: list[list[str]] = [*csv.reader(file, strict=True)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{name}: is not a table of texts: {error}") from None
    header = lines[0] if lines else []
    expected_columns = [*forms]
    if name == RATIOS:
        factor_columns = {
            column for column in header if re.fullmatch(r"factor_[A-Za-z0-9_]{1,60}", column)
        }
        expected_columns += factor_columns
    # Lists are compared and not sets, since a column may not occur twice.
    if sorted(header) != sorted(expected_columns):
        raise UserError(f"{name}:1: its columns must be {', '.join(forms)}")
    rows = []
    # The header is line 1.
    for line_number, values in enumerate(lines[1:], 2):
        place = f"{name}:{line_number}"
        if len(values) != len(header):
            raise UserError(f"{place}: has {len(values)} values for {len(header)} columns")
        row = dict(zip(header, values, strict=True))
        for column, value in row.items():
            if not re.fullmatch(forms.get(column, _TEXT), value):
                raise UserError(f"{place}: {column}: is not a value that this column has")
        rows.append(row)
    return rows

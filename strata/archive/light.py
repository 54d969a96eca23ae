"""The light archive: a few kilobytes that hold the ratios and sessions of results, and no log.

It is made to be sent and kept: ``strata pool`` puts several side by side.  It is read as carefully
as a whole archive.  Nothing in it can be made again from logs; it names the digest of these.
"""

import csv
import hashlib
import os
import re

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

    Its keys are in schemas/light.schema.json.
    folder: the project's folder, with the logs.
    given_facts: the values of the keys `strata` and `source`, which do not follow from results.
    The digest in `raw` identifies the logs: two archives of the same logs have the same.  It covers
    the lines, in their order, that SHA256SUMS of a whole archive has for logs and records of
    measured cells.  If it were computed in another way, old and new archives of the same logs would
    seem to differ.
    Raises UserError if nothing was measured.
    """
    experiment = load_object(folder, paths.PLAN)
    cells = blocks.Order(experiment, os.path.join(folder, "results")).list_cells()
    measured = validate.list_measured_cells(cells, folder)
    if not measured:
        raise UserError("nothing was measured yet, so there is nothing to archive")
    names = {
        paths.get_cell_path("raw", *cell, suffix) for cell in measured for suffix in ("log", "json")
    }
    digest = hashlib.sha256()
    for name in sorted(names, key=str.encode):
        digest.update(checksums.format_checksum(folder, name).encode())
    return {
        "format": FORMAT,
        **given_facts,
        **_select_pooled_settings(experiment),
        "missing": len(cells) - len(measured),
        "raw": {"files": len(names), "sha256": digest.hexdigest()},
    }


def _select_pooled_settings(experiment: Plan) -> Fields:
    """Return the scale of a plan and the layers of its environments.

    Only sessions that agree in both are pooled.  The keys are `scale` and `environments`, as in
    light.json.
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

    The order of the checks must stay, since each relies on the earlier ones: the first check with
    faults is the last.
    Callers convert other errors by :func:`strata.archive.check.convert_to_machine_error`.
    """
    try:
        return (
            checksums.find_checksum_faults(folder)
            or _find_wrong_facts(folder)
            or _find_wrong_rows(folder)
        )
    except UserError as error:
        return [*error.args]


def _find_wrong_facts(folder: str) -> list[str]:
    """Return a sentence for each fault of the list of files and of light.json.

    A wrong list of files, or another format, ends the check: all later checks rely on both.
    """
    names = set(zip_file.list_files(folder))
    expected = {FACTS, checksums.NAME, *FILES}
    faults = [f"{name}: missing" for name in sorted(expected - names)]
    faults += [f"{name}: no light archive holds it" for name in sorted(names - expected)]
    if faults:
        return faults
    facts = load_object(folder, FACTS)
    if facts.get("format") != FORMAT:
        supported = f"this version reads format {FORMAT}"
        return [f"{FACTS}: its format is {facts.get('format')}; {supported}"]
    schema = validation.load_schema("light")
    return [f"{FACTS}: {key}: {text}" for key, text in validation.find_schema_faults(schema, facts)]


def _find_wrong_rows(folder: str) -> list[str]:
    """Return a sentence for the first wrong row of both tables; an empty list if all are right.

    The tables are sessions.csv, which is checked first, and ratios.csv.  Rows must agree with
    light.json, with each other and in themselves.
    Raises UserError, which names the line, for a value that its column cannot have.
    """
    environments = load_object(folder, FACTS)["environments"]
    sessions = _read_rows(folder, SESSIONS)
    ratios = _read_rows(folder, RATIOS)
    machines = {row["session"]: row["machine"] for row in sessions}
    if not sessions or len(machines) < len(sessions):
        return [f"{SESSIONS}: it must name each session once"]
    # The header is line 1.
    for line, row in enumerate(sessions, 2):
        if not row["session"].startswith(f"{row['machine']}-") or row["from"] > row["to"]:
            return [f"{SESSIONS}:{line}: session, machine, from and to contradict one another"]
    series_blocks = set()
    for line, row in enumerate(ratios, 2):
        workload, environment = row["workload"], row["environment"]
        if environment not in environments:
            return [f"{RATIOS}:{line}: {FACTS} has no environment {environment!r}"]
        if machines.get(row["session"]) != row["machine"]:
            return [f"{RATIOS}:{line}: its session and machine are not in {SESSIONS}"]
        # The form of a number lets 1e99 pass, which is not a measured ratio.
        if not 1e-9 < float(row["ratio"]) < 1e9 or not 1e-9 < float(row["robust"]) < 1e9:
            return [f"{RATIOS}:{line}: a ratio must be above 0, and no larger than 1e9"]
        factors = tuple(text for name, text in row.items() if name.startswith("factor_"))
        key = (workload, row["metric"], factors, environment, row["repetition"])
        if key in series_blocks:
            return [f"{RATIOS}:{line}: the block of this series is there twice"]
        series_blocks.add(key)
    return []


def _read_rows(folder: str, name: str) -> list[Row]:
    """Return the rows of a table, column → text, after checking them against `_FORMS`.

    name: the path of the table in the archive, `RATIOS` or `SESSIONS`.  Columns may have any order,
    and ratios may have further columns for factors.
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
    expected = set(forms)
    if name == RATIOS:
        expected.update(
            column for column in header if re.fullmatch(r"factor_[A-Za-z0-9_]{1,60}", column)
        )
    # Sorted lists differ from sets in that a column may not occur twice.
    if sorted(header) != sorted(expected):
        raise UserError(f"{name}:1: its columns must be {', '.join(forms)}")
    rows = []
    for line, values in enumerate(lines[1:], 2):
        if len(values) != len(header):
            raise UserError(f"{name}:{line}: has {len(values)} values for {len(header)} columns")
        row = dict(zip(header, values, strict=True))
        for column, value in row.items():
            if not re.fullmatch(forms.get(column, _TEXT), value):
                raise UserError(f"{name}:{line}: {column}: is not a value that this column has")
        rows.append(row)
    return rows

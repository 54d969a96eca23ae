"""The command ``strata try``."""

import contextlib
import glob
import os
import shlex
import shutil
import sys
from typing import Any

from strata.environments.common import registry
from strata.experiment import config, measuring, planning, workload
from strata.experiment.folder import make_folder
from strata.host import capacity
from strata.trial import answer
from strata.trial import request as requests
from strata.trial.request import REFERENCE, WORKLOAD, Request
from strata.util import paths, programs, progress
from strata.util.constants import result_path
from strata.util.data_types import Fields, Plan
from strata.util.errors import UserError
from strata.util.files import read_json, remove_tree
from strata.util.signals import Interrupted

# Exit statuses.
ANSWERED, FAILED, INTERRUPTED = 0, 1, 130
# The folders of cells that failed, and of those that were measured.
KINDS = ("failed", "raw")
# The tables of which the answer is made.
TABLES = tuple(map(result_path, ("summary", "comparisons", "verdicts", "runs")))


def main(
    argv: list[str],
    json_file: str | None,
    csv_file: str | None,
    html_file: str | None,
    name: str | None,
    fresh: bool,
    **options: Any,
) -> int:
    """Run the command ``try``, and return the exit status.

    argv: the words of the command that is tried.
    json_file, csv_file, html_file: files to write; None: none.
    name: of the experiment.  fresh: whether it begins anew.
    options: the arguments of :func:`strata.trial.request.read_request`.
    The status is ANSWERED if every available environment has an answer, FAILED if one has none,
    and INTERRUPTED if nothing was measured before a signal came.
    Raises UserError if the command fails in all environments, or cannot be compared.
    """
    request = requests.read_request(argv, **options)
    line = measuring.ProgressLine()
    try:
        folder, experiment = _prepare(request, name, fresh, line)
    except Interrupted:
        line.clear()
        progress.print_message("strata: ended before anything was measured; nothing is left")
        return INTERRUPTED
    is_complete = _measure(folder, experiment, request, line)
    line.clear()
    experiment = read_json(os.path.join(folder, paths.PLAN)) or experiment
    rows = answer.collect_rows(folder, experiment)
    missing = answer.explain_missing(folder, experiment, rows)
    if not rows:
        if is_complete is None:
            progress.print_message("strata: ended before an answer; the same command goes on")
            return INTERRUPTED
        _refuse(folder, request, experiment, missing)
    _print_answer(folder, request, experiment, rows, missing, is_complete is None)
    facts = {
        "command": request.argv,
        "experiment": folder,
        "margin": experiment["precision"]["margin"],
        "missing": missing,
    }
    answer.write_files(rows, facts, json_file, csv_file)
    if html_file:
        _write_page(folder, html_file)
    failed = [key for key in missing if experiment["environments"][key]["available"]]
    return FAILED if failed else ANSWERED


def _measure(
    folder: str, experiment: Plan, request: Request, line: measuring.ProgressLine
) -> bool | None:
    """Measure until the answer is known or the budget is spent, and make the tables of it.

    folder: of the experiment.  experiment: its plan.  line: shows the results after each round.
    If the command fails in some environments, the others are measured.
    Returns whether all was measured; None if a signal came meanwhile.  The tables then hold what
    was measured, if anything was.
    """
    is_complete = _make_tables(folder, request, line)
    if is_complete is False and _leave_out_failing(folder, experiment):
        is_complete = _make_tables(folder, request, line)
    if not is_complete and glob.glob(f"{glob.escape(folder)}/results/raw/*/{WORKLOAD}/*.log"):
        line.show("the tables of what was measured …")
        _make_tables(folder, request, line, "--config", "partial=true")
    return is_complete


def _make_tables(
    folder: str, request: Request, line: measuring.ProgressLine, *options: str
) -> bool | None:
    """Return whether Snakemake made all tables of an answer; None if a signal came meanwhile.

    options: more words for Snakemake.
    """
    try:
        return measuring.run_snakemake(
            folder,
            TABLES,
            *options,
            line=line,
            at_round=lambda number: _describe_round(folder, number, request),
        )
    except Interrupted:
        return None


def _prepare(
    request: Request, name: str | None, fresh: bool, line: measuring.ProgressLine
) -> tuple[str, Plan]:
    """Make the folder and the configuration of an experiment, with a trial run if it is new.

    Returns the folder, and the plan.
    Raises UserError if nothing can be compared here, or if the trial run fails.
    """
    with programs.temporary_folder("try") as scratch:
        archive = os.path.join(scratch, requests.ARCHIVE)
        sha1 = requests.pack_files(request.files, archive) if request.files else ""
        settings = requests.make_configuration(request, sha1)
        folder = requests.choose_name(request, settings, name, fresh)
        is_new = not os.path.lexists(folder)
        make_folder(folder)
        existing = None if fresh else requests.read_settings(folder)
        if fresh:
            remove_tree(os.path.join(folder, "results"))
        if sha1:
            shutil.move(archive, os.path.join(folder, requests.ARCHIVE))
    shown = f"strata try {shlex.join(sys.argv[2:])}"
    try:
        if (
            requests.is_same_experiment(existing, settings)
            and existing
            and "runs" in _command_parameters(existing)
        ):
            requests.extend_budget(settings, existing, folder)
        else:
            requests.write_settings(folder, {**settings, "repetitions": 1}, shown)
            experiment = _plan(folder)
            _require_comparison(experiment)
            seconds = _try_once(folder, request, experiment, line)
            _command_parameters(settings).update(requests.choose_laps(seconds))
        requests.write_settings(folder, settings, shown)
        return folder, _plan(folder)
    except BaseException:
        if is_new:
            remove_tree(folder)
        raise


def _leave_out_failing(folder: str, experiment: Plan) -> bool:
    """Leave environments out in which the command always failed; return whether others are left."""
    failing = []
    for name, entry in experiment["environments"].items():
        folders = [os.path.join(folder, f"results/{kind}/{name}/{WORKLOAD}") for kind in KINDS]
        failed, good = (os.path.isdir(path) and os.listdir(path) for path in folders)
        if entry["available"] and failed and not good:
            failing.append(name)
    others = [
        name
        for name, entry in experiment["environments"].items()
        if entry["available"] and name not in failing
    ]
    settings = requests.read_settings(folder)
    if not failing or REFERENCE not in others or len(others) < 2 or settings is None:
        return False
    settings["leave_out"] = {name: [WORKLOAD] for name in failing}
    requests.write_settings(folder, settings, f"the command failed in {', '.join(failing)}")
    return True


def _command_parameters(settings: Fields) -> Fields:
    """Return the parameters of the command in a configuration."""
    parameters: Fields = settings["workloads"][WORKLOAD]
    return parameters


def _plan(folder: str) -> Plan:
    """Return the plan of an experiment's configuration, and require the rights to measure it."""
    with requests.inside(folder):
        workload.read_declaration.cache_clear()
        experiment = planning.make_plan(config.read_config(), capacity.read_facts())
    for entry in experiment["environments"].values():
        for layer in entry["layers"][:1]:
            kind = next(iter(layer))
            if entry["available"] and (reason := registry.layer_class(kind).permission_reason()):
                raise UserError(f"nothing can be measured: {reason}")
    return experiment


def _require_comparison(experiment: Plan) -> None:
    """Raise UserError, with the reasons, unless native and another environment are available."""
    entries = experiment["environments"]
    available = [name for name, entry in entries.items() if entry["available"]]
    if REFERENCE in available and len(available) > 1:
        return
    reasons = [f"{name}: {entry['reason']}" for name, entry in entries.items() if entry["reason"]]
    raise UserError("there is nothing to compare on this machine:", *reasons)


def _try_once(
    folder: str, request: Request, experiment: Plan, line: measuring.ProgressLine
) -> float:
    """Run the command once, natively, and return its seconds.

    Raises UserError with the command's last lines and what a person may do, if it fails.
    """
    limit = request.budget_seconds / sum(
        entry["available"] for entry in experiment["environments"].values()
    )
    overrides = f"workloads={{{WORKLOAD}: {{runs: 1, warmups: 0, laps: 1, limit: {limit:.1f}}}}}"
    line.show("a first run, natively …")
    target = paths.cell_path("raw", REFERENCE, WORKLOAD, 1, "log")
    done = measuring.run_snakemake(folder, [target], "--config", overrides, line=line)
    line.clear()
    record = read_json(os.path.join(folder, target.replace(".log", ".json")))
    if not done or record is None:
        with contextlib.suppress(FileNotFoundError):
            missing = answer.explain_missing(folder, experiment, [])
            _refuse(folder, request, experiment, {REFERENCE: missing[REFERENCE]})
    parsed = read_json(os.path.join(folder, target.replace("raw", "parsed").replace("log", "json")))
    values = (parsed or {}).get("outcome", {}).get("values", [])
    return float(next(value[2] for value, *_ in values if value[0] == "time"))


def _refuse(folder: str, request: Request, experiment: Plan, missing: dict[str, str]) -> None:
    """Raise UserError: the command gave no value; with reasons, remedies and commands by hand."""
    raise UserError(*_explain_failures(folder, request, experiment, missing))


def _explain_failures(
    folder: str, request: Request, experiment: Plan, missing: dict[str, str]
) -> list[str]:
    """Return lines on the environments in which the command failed."""
    lines = []
    for name, reason in missing.items():
        if not experiment["environments"][name]["available"]:
            continue
        if reason == "not measured":
            reason += f"; {os.path.join(folder, measuring.LOG)} has what was printed"
        lines.append(f"strata: {name}: {request.shown}: {reason}")
        lines += [f"  remedy: {hint}" for hint in requests.find_hints(request, reason)]
        if by_hand := answer.format_by_hand(request, experiment, name):
            lines.append(f"  by hand: {by_hand}")
    return lines or [
        f"strata: nothing was measured: {os.path.join(folder, measuring.LOG)} says why"
    ]


def _describe_round(folder: str, number: int, request: Request) -> str:
    """Return the results after a round in one line."""
    decision = read_json(os.path.join(folder, result_path("precision", round=number))) or {}
    state = decision.get("workloads", {}).get(WORKLOAD, {})
    phrases = []
    for row in state.get("verdicts", []):
        if row["from"] is not None:
            ratio, low, high = (100 * row[key] for key in ("ratio", "from", "to"))
            phrases.append(f"{row['environment']} {ratio:.1f} % [{low:.1f}, {high:.1f}]")
    spent = progress.format_duration(decision.get("spent_seconds", 0))
    return f"{', '.join(phrases)} ({spent} of {request.budget})"


def _print_answer(
    folder: str,
    request: Request,
    experiment: Plan,
    rows: list[Fields],
    missing: dict[str, str],
    is_interrupted: bool,
) -> None:
    """Print the answer, and what to do with it.

    rows: of the environments that have values.  missing: name of another environment → reason.
    """
    margin = experiment["precision"]["margin"]
    seconds = answer.block_seconds(folder, experiment)
    lines = [request.shown, *answer.format_lines(rows, missing, margin, seconds)]
    for text in lines:
        progress.print_line(text)
    if note := answer.describe_disturbed(folder):
        progress.print_line(note)
    progress.print_line(
        "  intervals: 95 %, over fresh systems; n: blocks, within the sessions so far on this machine; "
        f"all is in {folder}"
    )
    is_open = any(row["verdict"] == "undecided" and row["low"] is not None for row in rows)
    if is_interrupted or is_open:
        state = "ended early" if is_interrupted else "undecided"
        progress.print_line(f"  {state}: the same command adds blocks; --budget sets how long")
    failed = {
        name: reason
        for name, reason in missing.items()
        if experiment["environments"][name]["available"]
    }
    if failed:
        for text in _explain_failures(folder, request, experiment, failed):
            progress.print_message(text)


def _write_page(folder: str, out: str) -> None:
    """Write the one-page report of an experiment."""
    script = os.path.join(paths.PROJECT, "analysis/try.R")
    programs.run_r(script, os.path.abspath(os.path.join(folder, "results")), os.path.abspath(out))

"""The command ``strata try``."""

import contextlib
import glob
import os
import shlex
import shutil
import sys
from typing import Any

from strata.environments import docker
from strata.environments.common import registry
from strata.experiment import config, measuring, planning, workload
from strata.experiment.blocks import REFERENCE, list_available_environments
from strata.experiment.folder import prepare_experiment_folder
from strata.host import capacity
from strata.trial import answer
from strata.trial import request as requests
from strata.trial.answer import NOT_MEASURED
from strata.trial.request import WORKLOAD, Request
from strata.util import paths, programs, progress, yaml_files
from strata.util.constants import get_result_path
from strata.util.data_types import Fields, Plan
from strata.util.errors import UserError
from strata.util.files import prepare_outputs, read_json, read_text, remove_tree, write_output
from strata.util.signals import Interrupted

# Exit statuses; users' scripts rely on them (docs/how-to/try.md).
ANSWERED, FAILED = 0, 1
# The tables that the answer is made of.
TABLES = tuple(map(get_result_path, ("summary", "comparisons", "verdicts", "runs")))


def main(
    argv: list[str],
    json_file: str | None,
    csv_file: str | None,
    html_file: str | None,
    name: str | None,
    fresh: bool,
    **options: Any,
) -> int:
    """Run ``strata try``: measure a command in environments, print the answer, return the status.

    argv: the program and the arguments of the command that is tried.
    json_file, csv_file, html_file: the paths of files to write; None for no such file.
    name: the experiment's name; None for a name derived from the command.
    fresh: whether the experiment's earlier results are removed first.
    options: the arguments of :func:`strata.trial.request.read_request`, by the names that
    strata/options.py gives to the command's options.
    All results are kept in the experiment's folder, where the same command continues.
    The status is ANSWERED if every available environment has an answer, and FAILED if the command
    fails in one.
    Raises UserError if the command fails in all environments, or cannot be compared, and
    Interrupted, after the answer so far, if a signal left an environment without one.
    """
    with prepare_outputs({"--json": json_file, "--csv": csv_file, "--html": html_file}):
        request = requests.read_request(argv, **options)
        rows, facts, ending = _try_command(request, name, fresh)
    answer.write_answer(rows, facts, json_file, csv_file)
    if html_file:
        _write_page(facts["experiment"], html_file)
    if isinstance(ending, Interrupted):
        raise ending
    return ending


def _try_command(
    request: Request, name: str | None, fresh: bool
) -> tuple[list[Fields], Fields, int | Interrupted]:
    """Measure a command in environments, and print the answer.

    name, fresh: as for :func:`main`.
    Returns the answer's rows, the further facts of its JSON, and the exit status; or a signal in
    place of the status if it left an environment without an answer.
    Raises UserError as :func:`main` does, and Interrupted if there is no answer.
    """
    line = measuring.ProgressLine()
    try:
        folder, experiment = _prepare_experiment(request, name, fresh, line)
    except Interrupted:
        line.clear()
        progress.print_message("strata: ended before anything was measured; all is as it was")
        raise
    interruption = _measure_experiment(folder, experiment, request, line)
    line.clear()
    # Measuring may have changed the plan: environments are left out, or found not available.
    experiment = read_json(os.path.join(folder, paths.PLAN)) or experiment
    rows = answer.collect_answer_rows(folder)
    missing = answer.explain_missing_values(folder, experiment, rows)
    if not rows and interruption:
        progress.print_message("strata: ended before an answer; the same command goes on")
        raise interruption
    environments = experiment["environments"]
    failed = {key: reason for key, reason in missing.items() if environments[key]["available"]}
    unmeasured = [key for key, reason in failed.items() if interruption and reason == NOT_MEASURED]
    for key in unmeasured:
        del failed[key]
        missing[key] = f"{NOT_MEASURED} before the end"
    failures = []
    if failed or not rows:
        failures = _explain_failures(folder, request, experiment, failed)
    if not rows:
        raise UserError(*failures)
    _print_answer(folder, request, experiment, rows, missing, interruption is not None)
    for text in failures:
        progress.print_message(text)
    facts = {
        "command": request.argv,
        "experiment": folder,
        "margin": experiment["precision"]["margin"],
        "missing": missing,
    }
    if interruption and unmeasured:
        return rows, facts, interruption
    return rows, facts, FAILED if failed else ANSWERED


def _write_page(folder: str, path: str) -> None:
    """Write the answer as a page to a file, or to standard output if the path is ``-``.

    folder: the experiment's folder.
    """
    script = os.path.join(paths.PROJECT, "analysis/try.R")
    results = os.path.abspath(os.path.join(folder, "results"))
    with programs.create_temporary_folder("try") as scratch:
        page = os.path.join(scratch, "page.html")
        programs.run_r(script, results, page)
        write_output(path, read_text([page]))


def _measure_experiment(
    folder: str, experiment: Plan, request: Request, line: measuring.ProgressLine
) -> Interrupted | None:
    """Measure until the answer is known or the budget is spent, and make the answer's tables.

    folder: the experiment's folder.
    experiment: the experiment's plan.
    line: shows the results after each round.
    If the command always fails in some environments, they are left out of the configuration, and
    the others are measured.
    Returns the signal that ended the measurement; None if there was none.  If not all cells were
    measured, the tables hold only those that were; without a measured cell there are no tables.
    Raises Interrupted if a signal comes while these partial tables are made.
    """
    is_complete = False
    interruption = None
    try:
        is_complete = _measure_and_compute_tables(folder, request, line)
        if not is_complete and _leave_out_failing_environments(folder, experiment):
            is_complete = _measure_and_compute_tables(folder, request, line)
    except Interrupted as signal:
        interruption = signal
    if not is_complete and glob.glob(f"{glob.escape(folder)}/results/raw/*/{WORKLOAD}/*.log"):
        line.show("the tables of what was measured …")
        _measure_and_compute_tables(folder, request, line, "--config", "partial=true")
    return interruption


def _measure_and_compute_tables(
    folder: str, request: Request, line: measuring.ProgressLine, *options: str
) -> bool:
    """Measure the missing cells, and make the answer's TABLES, with Snakemake.

    folder: the folder of the experiment.
    request: the request of the user, whose budget the progress line shows.
    line: shows the results after each round.
    options: further arguments of Snakemake; with ``--config partial=true`` the tables are made from
    the cells measured so far.
    Returns whether all tables were made.  Raises Interrupted after a signal.
    """
    return measuring.run_snakemake(
        folder,
        TABLES,
        *options,
        line=line,
        describe_round=lambda number: _describe_round(folder, number, request),
    )


def _prepare_experiment(
    request: Request, name: str | None, fresh: bool, line: measuring.ProgressLine
) -> tuple[str, Plan]:
    """Create the folder and the configuration of an experiment, with a trial run if it is new.

    An experiment of the same command is continued: its budget is extended, and it keeps the
    parameters that followed from its trial run.
    name, fresh: as for :func:`main`.
    line: shows the progress.
    Returns the folder and the plan.  After an error or a signal, a new folder is removed, and an
    experiment that was to begin again is restored.
    Docker's daemon may be started.
    Raises UserError if nothing can be compared here, or if the trial run fails.
    """
    layer = docker.Layer
    if request.image and not (layer.explain_unavailability() or layer.explain_missing_permission()):
        # The image is read before a cell would start the daemon.
        docker.start_docker_daemon()
    with contextlib.ExitStack() as undo:
        with programs.create_temporary_folder("try") as scratch:
            archive = os.path.join(scratch, requests.ARCHIVE)
            sha1 = requests.pack_files(request.files, archive) if request.files else ""
            settings = requests.build_configuration(request, sha1)
            folder = requests.choose_experiment_folder(request, settings, name, fresh)
            if not os.path.lexists(folder):
                undo.callback(remove_tree, folder)
            prepare_experiment_folder(folder)
            if fresh:
                requests.set_aside_results(folder)
                undo.callback(requests.restore_earlier_results, folder)
            existing = requests.read_settings(folder)
            if sha1:
                shutil.move(archive, os.path.join(folder, requests.ARCHIVE))
        # The words after `strata try`, as a person typed them.
        command_line = f"strata try {shlex.join(sys.argv[2:])}"
        is_same = requests.is_same_experiment(existing, settings)
        # Before its trial run has ended, an experiment lacks the parameters that follow from it.
        if existing and is_same and "runs" in _get_command_parameters(existing):
            requests.extend_budget(settings, existing, folder)
        else:
            # The trial run takes one block; its seconds decide the laps of the others.
            requests.write_settings(folder, {**settings, "repetitions": 1}, command_line)
            experiment = _build_plan(folder)
            _check_comparison_is_possible(experiment)
            seconds = _time_native_run(folder, request, experiment, line)
            _get_command_parameters(settings).update(requests.choose_lap_parameters(seconds))
        requests.write_settings(folder, settings, command_line)
        experiment = _build_plan(folder)
        requests.remove_earlier_results(folder)
        # Every step succeeded, so the folder stays.
        undo.pop_all()
    return folder, experiment


def _leave_out_failing_environments(folder: str, experiment: Plan) -> bool:
    """Leave environments out of the configuration if the command always failed in them.

    experiment: the plan, which is not changed; Snakemake plans again from the changed config.yaml.
    Returns whether some are left out.  Nothing is changed unless native and another environment
    remain.
    """
    failed = measuring.list_pairs_of_cells(folder, "failed") - measuring.list_pairs_of_cells(
        folder, "raw"
    )
    available = list_available_environments(experiment)
    failing = [name for name in available if (name, WORKLOAD) in failed]
    remaining = [name for name in available if name not in failing]
    if not failing or REFERENCE not in remaining or len(remaining) < 2:
        return False
    settings = yaml_files.read_yaml_mapping(os.path.join(folder, config.FILE))
    settings["leave_out"] = {name: [WORKLOAD] for name in failing}
    requests.write_settings(folder, settings, f"the command failed in {', '.join(failing)}")
    return True


def _get_command_parameters(settings: Fields) -> Fields:
    """Return the parameters of the command in a configuration: the mapping itself, not a copy."""
    parameters: Fields = settings["workloads"][WORKLOAD]
    return parameters


def _build_plan(folder: str) -> Plan:
    """Return the plan of the configuration in an experiment's folder.

    The working directory is changed to the folder meanwhile.
    Raises UserError if this user may not measure one of its environments.
    """
    with contextlib.chdir(folder):
        # The declarations of another folder may differ.
        workload.read_declaration.cache_clear()
        experiment = planning.build_plan(config.read_config(), capacity.read_host_facts())
    for environment in experiment["environments"].values():
        if environment["available"]:
            # The lowest layer, which runs on this host, decides which rights are needed.
            [lowest] = environment["layers"][0]
            if reason := registry.load_layer_class(lowest).explain_missing_permission():
                raise UserError(f"nothing can be measured: {reason}")
    return experiment


def _check_comparison_is_possible(experiment: Plan) -> None:
    """Raise UserError, with the reasons, unless native and another environment are available."""
    available = list_available_environments(experiment)
    if REFERENCE in available and len(available) > 1:
        return
    reasons = [
        f"{name}: {environment['reason']}"
        for name, environment in experiment["environments"].items()
        if environment["reason"]
    ]
    raise UserError("there is nothing to compare on this machine:", *reasons)


def _time_native_run(
    folder: str, request: Request, experiment: Plan, line: measuring.ProgressLine
) -> float:
    """Run the command once, natively, and return its wall time in seconds.

    The run is the first native cell, with one run, one lap and no warm-ups.  Its results are
    removed, since no cell of the experiment has these parameters.
    Raises UserError with the last lines of the command's output, and remedies, if the run fails.
    """
    available = list_available_environments(experiment)
    # A longer command could not run once in every environment within the budget.
    limit = request.budget_seconds / len(available)
    overrides = f"workloads={{{WORKLOAD}: {{runs: 1, warmups: 0, laps: 1, limit: {limit:.1f}}}}}"
    line.show("a first run, natively …")
    log = paths.get_cell_path("raw", REFERENCE, WORKLOAD, 1, "log")
    is_measured = measuring.run_snakemake(folder, [log], "--config", overrides, line=line)
    line.clear()
    if not is_measured:
        reasons = answer.explain_missing_values(folder, experiment, [])
        native = {REFERENCE: reasons[REFERENCE]}
        raise UserError(*_explain_failures(folder, request, experiment, native))
    path = os.path.join(folder, paths.get_cell_path("parsed", REFERENCE, WORKLOAD, 1, "json"))
    parsed = read_json(path) or {}
    for kind in ("raw", "parsed"):
        remove_tree(os.path.join(folder, "results", kind))
    # Each value begins with (metric, unit, number).
    values = [value for value, *_ in parsed.get("outcome", {}).get("values", [])]
    return float(next(number for metric, _, number, *_ in values if metric == "time"))


def _explain_failures(
    folder: str, request: Request, experiment: Plan, failed: dict[str, str]
) -> list[str]:
    """Return lines with reasons, remedies and manual commands for a command that failed.

    failed: ``{environment: reason}``, as :func:`strata.trial.answer.explain_missing_values` returns
    it, of available environments only; empty if nothing was measured for another reason.
    """
    lines = []
    printed = [f"  | {text}" for text in measuring.read_last_log_lines(folder)]
    for name, reason in failed.items():
        if reason == NOT_MEASURED:
            # No cell gives a reason: a step before the first cell failed.
            lines.append(f"strata: {name}: {request.command_line}: not measured:")
            lines += printed
            continue
        lines.append(f"strata: {name}: {request.command_line}: {reason}")
        lines += [f"  remedy: {hint}" for hint in requests.list_hints(request, reason)]
        if by_hand := answer.format_manual_command(request, experiment, name):
            lines.append(f"  by hand: {by_hand}")
    return lines or ["strata: nothing was measured:", *printed]


def _describe_round(folder: str, number: int, request: Request) -> str:
    """Return a line on the results after a round: ratios with intervals, and the time spent.

    number: the number of the round, after which strata/results/decide.py wrote its decision.
    """
    decision = read_json(os.path.join(folder, get_result_path("precision", round=number))) or {}
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
    """Print the answer, the scope of its intervals, and how to continue.

    rows: as :func:`strata.trial.answer.collect_answer_rows` returns them.
    missing: ``{environment: reason}`` of the environments without a value.
    is_interrupted: whether a signal ended the measurement.
    """
    margin = experiment["precision"]["margin"]
    seconds = answer.compute_block_seconds(folder, experiment)
    lines = [request.command_line, *answer.format_answer_lines(rows, missing, margin, seconds)]
    for text in lines:
        progress.print_line(text)
    if note := answer.describe_disturbed_blocks(folder):
        progress.print_line(note)
    progress.print_line(
        "  intervals: 95 %, over fresh systems; n: blocks, within the sessions so far on this "
        f"machine; all is in {folder}"
    )
    is_open = any(row["verdict"] == "undecided" and row["low"] is not None for row in rows)
    if is_interrupted or is_open:
        state = "ended early" if is_interrupted else "undecided"
        progress.print_line(f"  {state}: the same command adds blocks; --budget sets how long")

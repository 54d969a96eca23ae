"""The command ``strata try``: measure a command line in several environments, and compare."""

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

# Exit statuses, on which users' scripts rely (docs/how-to/try.md).
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
    json_file: the path of a JSON file to write, ``-`` for standard output; None for no file.
    csv_file: the path of a CSV file to write, ``-`` for standard output; None for no file.
    html_file: the path of a page to write, ``-`` for standard output; None for no file.
    name: the experiment's name; None for a name derived from the command.
    fresh: whether the experiment's earlier results are removed first.
    options: the other arguments of :func:`strata.trial.request.read_request`.
    Returns ANSWERED if every available environment has an answer, and FAILED if the command fails
    in one.
    Raises UserError if the command fails in all environments, or cannot be compared.  Raises
    Interrupted, after printing the answer so far, if a signal left an environment without one.
    All results are kept in the experiment's folder, where the same command continues.
    The parameters must have the names that ``add_try_options`` of strata/options.py gives to the
    options.
    """
    with prepare_outputs({"--json": json_file, "--csv": csv_file, "--html": html_file}):
        request = requests.read_request(argv, **options)
        rows, facts, status_or_signal = _try_command(request, name, fresh)
    answer.write_answer(rows, facts, json_file, csv_file)
    if html_file:
        _write_page(facts["experiment"], html_file)
    if isinstance(status_or_signal, Interrupted):
        raise status_or_signal
    return status_or_signal


def _try_command(
    request: Request, name: str | None, fresh: bool
) -> tuple[list[Fields], Fields, int | Interrupted]:
    """Measure a command in environments, and print the answer.

    request: the request, which was checked.
    name: the experiment's name; None for a name derived from the command.
    fresh: whether the experiment's earlier results are removed first.
    Returns the answer's rows, the further facts of its JSON, and the exit status.  A signal takes
    the place of the status if it left an environment without an answer.
    Raises UserError if the command fails in all environments, or cannot be compared, and
    Interrupted if a signal came before there was any answer.
    """
    progress_line = measuring.ProgressLine()
    try:
        folder, experiment = _prepare_experiment(request, name, fresh, progress_line)
    except Interrupted:
        progress_line.clear()
        progress.print_message("strata: ended before anything was measured; all is as it was")
        raise
    signal = _measure_experiment(folder, experiment, request, progress_line)
    progress_line.clear()
    # Measuring may have changed the plan: environments are left out, or found not available.
    experiment = read_json(os.path.join(folder, paths.PLAN)) or experiment
    rows = answer.collect_answer_rows(folder)
    reasons = answer.explain_missing_values(folder, experiment, rows)
    if signal and not rows:
        progress.print_message("strata: ended before an answer; the same command goes on")
        raise signal
    failures, unmeasured = _split_missing_environments(experiment, reasons, signal is not None)
    for environment in unmeasured:
        reasons[environment] = f"{NOT_MEASURED} before the end"
    failure_lines = []
    if failures or not rows:
        failure_lines = _explain_failures(folder, request, experiment, failures)
    if not rows:
        raise UserError(*failure_lines)
    _print_answer(folder, request, experiment, rows, reasons, signal is not None)
    for text in failure_lines:
        progress.print_message(text)
    facts = {
        "command": request.argv,
        "experiment": folder,
        "margin": experiment["precision"]["margin"],
        "missing": reasons,
    }
    if signal and unmeasured:
        return rows, facts, signal
    return rows, facts, FAILED if failures else ANSWERED


def _split_missing_environments(
    experiment: Plan, reasons: dict[str, str], is_interrupted: bool
) -> tuple[dict[str, str], list[str]]:
    """Separate the environments where the command failed from those that a signal left out.

    experiment: the plan.
    reasons: ``{environment: reason}``, as :func:`strata.trial.answer.explain_missing_values`
    returns it; environments that are not available are in neither result.
    is_interrupted: whether a signal ended the measurement.
    Returns ``{environment: reason}`` of the failures, and the names of the environments that were
    not measured because of the signal.
    """
    failures: dict[str, str] = {}
    unmeasured: list[str] = []
    for environment, reason in reasons.items():
        if not experiment["environments"][environment]["available"]:
            continue
        if is_interrupted and reason == NOT_MEASURED:
            unmeasured.append(environment)
        else:
            failures[environment] = reason
    return failures, unmeasured


def _write_page(folder: str, path: str) -> None:
    """Write the answer as an HTML page to a file, or to standard output.

    folder: the experiment's folder.
    path: the path of the file, or ``-`` for standard output.
    Raises as :func:`strata.util.programs.run_r` does if analysis/try.R fails.
    """
    script = os.path.join(paths.PROJECT, "analysis/try.R")
    results = os.path.abspath(os.path.join(folder, "results"))
    with programs.create_temporary_folder("try") as scratch:
        page = os.path.join(scratch, "page.html")
        programs.run_r(script, results, page)
        write_output(path, read_text([page]))


def _measure_experiment(
    folder: str, experiment: Plan, request: Request, progress_line: measuring.ProgressLine
) -> Interrupted | None:
    """Measure until the answer is known or the budget is spent, and make the answer's tables.

    folder: the experiment's folder.
    experiment: the experiment's plan.
    request: the request of the user, whose budget the progress line shows.
    progress_line: shows the results after each round.
    Returns the signal that ended the measurement; None if there was none.
    Raises Interrupted if a signal comes while partial tables are made.
    If the command always fails in some environments, they are left out of config.yaml, and the
    others are measured.  If not all cells were measured, the tables hold only the measured ones;
    without a measured cell there are no tables.
    """
    is_complete = False
    received_signal = None
    try:
        is_complete = _measure_and_compute_tables(folder, request, progress_line)
        if not is_complete and _leave_out_failing_environments(folder, experiment):
            is_complete = _measure_and_compute_tables(folder, request, progress_line)
    except Interrupted as signal:
        received_signal = signal
    if not is_complete and glob.glob(f"{glob.escape(folder)}/results/raw/*/{WORKLOAD}/*.log"):
        progress_line.show("the tables of what was measured …")
        _measure_and_compute_tables(folder, request, progress_line, "--config", "partial=true")
    return received_signal


def _measure_and_compute_tables(
    folder: str, request: Request, progress_line: measuring.ProgressLine, *options: str
) -> bool:
    """Measure the missing cells, and make the answer's TABLES, with Snakemake.

    folder: the folder of the experiment.
    request: the request of the user, whose budget the progress line shows.
    progress_line: shows the results after each round.
    options: further arguments of Snakemake; with ``--config partial=true`` nothing is measured, and
    the tables are made from the cells measured so far.
    Returns whether all tables were made.
    Raises Interrupted after a signal.
    """
    return measuring.run_snakemake(
        folder,
        TABLES,
        *options,
        line=progress_line,
        describe_round=lambda number: _describe_round(folder, number, request),
    )


def _prepare_experiment(
    request: Request, name: str | None, fresh: bool, progress_line: measuring.ProgressLine
) -> tuple[str, Plan]:
    """Create the folder and the configuration of an experiment, with a trial run if it is new.

    request: the request, which was checked.
    name: the experiment's name; None for a name derived from the command.
    fresh: whether the experiment's earlier results are removed, after the trial run succeeded.
    progress_line: shows the progress.
    Returns the path of the folder, and the plan.
    Raises UserError if nothing can be compared here, or if the trial run fails.
    An experiment of the same command is continued: its budget is extended, and it keeps the
    parameters that followed from its trial run.  After an error or a signal, a new folder is
    removed, and an experiment that was to begin again is restored.
    Starts Docker's daemon if the request names an image of the user's own.
    """
    if request.image:
        layer = docker.Layer
        if not layer.explain_unavailability() and not layer.explain_missing_permission():
            # The configuration depends on the image, which only a running daemon can describe.
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
        if existing and _can_be_continued(existing, settings):
            requests.extend_budget(settings, existing, folder)
        else:
            # The trial run takes one block; its seconds decide the laps of the others.
            requests.write_settings(folder, {**settings, "repetitions": 1}, command_line)
            experiment = _build_plan(folder)
            _check_comparison_is_possible(experiment)
            seconds = _time_native_run(folder, request, experiment, progress_line)
            settings["workloads"][WORKLOAD] |= requests.choose_lap_parameters(seconds)
        requests.write_settings(folder, settings, command_line)
        experiment = _build_plan(folder)
        requests.remove_earlier_results(folder)
        # Every step succeeded, so the folder stays.
        undo.pop_all()
    return folder, experiment


def _leave_out_failing_environments(folder: str, experiment: Plan) -> bool:
    """Leave environments out of the configuration if the command always failed in them.

    folder: the experiment's folder, whose config.yaml is changed.
    experiment: the plan, which is not changed; Snakemake plans again from the changed config.yaml.
    Returns whether environments are left out.  If native and another environment would not remain,
    nothing is changed, and the result is False.
    """
    failed_pairs = measuring.list_pairs_of_cells(folder, "failed")
    measured_pairs = measuring.list_pairs_of_cells(folder, "raw")
    # Pairs (environment, workload) of which no cell was measured.
    always_failed_pairs = failed_pairs - measured_pairs
    failing_environments: list[str] = []
    other_environments: list[str] = []
    for name in list_available_environments(experiment):
        if (name, WORKLOAD) in always_failed_pairs:
            failing_environments.append(name)
        else:
            other_environments.append(name)
    can_compare = REFERENCE in other_environments and len(other_environments) >= 2
    if not failing_environments or not can_compare:
        return False
    settings = yaml_files.read_yaml_mapping(os.path.join(folder, config.FILE))
    settings["leave_out"] = {name: [WORKLOAD] for name in failing_environments}
    comment = f"the command failed in {', '.join(failing_environments)}"
    requests.write_settings(folder, settings, comment)
    return True


def _can_be_continued(existing: Fields, settings: Fields) -> bool:
    """Return whether an earlier experiment is the same one, and its trial run has ended.

    existing: the configuration of the earlier experiment.
    settings: the new configuration.
    The trial run adds `runs` to the configuration (:func:`requests.choose_lap_parameters`).
    """
    if not requests.is_same_experiment(existing, settings):
        return False
    return "runs" in existing["workloads"][WORKLOAD]


def _build_plan(folder: str) -> Plan:
    """Return the plan of the configuration in an experiment's folder.

    folder: the experiment's folder, which is the working directory while the plan is made.
    Raises UserError for mistakes in the configuration, and if this user may not measure one of the
    available environments.
    Empties the cache of :func:`strata.experiment.workload.read_declaration`.
    """
    with contextlib.chdir(folder):
        # The cache is by name alone, and the declarations of another folder may differ.
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
    folder: str, request: Request, experiment: Plan, progress_line: measuring.ProgressLine
) -> float:
    """Run the command once, natively, and return its wall time in seconds.

    folder: the experiment's folder.
    request: the request; the run may take an equal share of its budget for each environment.
    experiment: the experiment's plan.
    progress_line: shows that the run takes place.
    Raises UserError with the last lines of the command's output, and remedies, if the run fails.
    The run is the first native cell, with one run, one lap and no warm-ups.  Its results are
    removed, since no cell of the experiment has these parameters.
    """
    available = list_available_environments(experiment)
    # A longer command could not run once in every environment within the budget.
    limit_seconds = request.budget_seconds / len(available)
    parameters = f"{{runs: 1, warmups: 0, laps: 1, limit: {limit_seconds:.1f}}}"
    overrides = f"workloads={{{WORKLOAD}: {parameters}}}"
    progress_line.show("a first run, natively …")
    log = paths.get_cell_path("raw", REFERENCE, WORKLOAD, 1, "log")
    is_measured = measuring.run_snakemake(folder, [log], "--config", overrides, line=progress_line)
    progress_line.clear()
    if not is_measured:
        reasons = answer.explain_missing_values(folder, experiment, [])
        native_failure = {REFERENCE: reasons[REFERENCE]}
        raise UserError(*_explain_failures(folder, request, experiment, native_failure))
    path = os.path.join(folder, paths.get_cell_path("parsed", REFERENCE, WORKLOAD, 1, "json"))
    parsed_log = read_json(path) or {}
    for kind in ("raw", "parsed"):
        remove_tree(os.path.join(folder, "results", kind))
    # Each entry begins with a value, and each value with (metric, unit, number).
    for (metric, _, number, *_), *_ in parsed_log.get("outcome", {}).get("values", []):
        if metric == "time":
            return float(number)
    # The parser of the workload `command` refuses logs without a time, so this is a fault of ours.
    raise AssertionError(f"{path}: holds no wall time")


def _explain_failures(
    folder: str, request: Request, experiment: Plan, failures: dict[str, str]
) -> list[str]:
    """Return lines with reasons, remedies and manual commands for a command that failed.

    folder: the experiment's folder, which holds Snakemake's log.
    request: the request whose command failed.
    experiment: the experiment's plan.
    failures: ``{environment: reason}``, as :func:`strata.trial.answer.explain_missing_values`
    returns it, of available environments only; empty if nothing was measured for another reason.
    Returns lines such as "strata: docker: ./bench 100: exit code 2" and "  remedy: …".  Without a
    reason of a cell the last lines of Snakemake's log stand for it.
    """
    lines = []
    snakemake_lines = [f"  | {text}" for text in measuring.read_last_log_lines(folder)]
    for environment, reason in failures.items():
        if reason == NOT_MEASURED:
            # No cell gives a reason: a step before the first cell failed.
            lines.append(f"strata: {environment}: {request.command_line}: not measured:")
            lines += snakemake_lines
            continue
        lines.append(f"strata: {environment}: {request.command_line}: {reason}")
        lines += [f"  remedy: {hint}" for hint in requests.list_hints(request, reason)]
        if manual_command := answer.format_manual_command(request, experiment, environment):
            lines.append(f"  by hand: {manual_command}")
    if not lines:
        lines = ["strata: nothing was measured:", *snakemake_lines]
    return lines


def _describe_round(folder: str, number: int, request: Request) -> str:
    """Return a line with the ratios, their intervals and the time spent after a round.

    folder: the experiment's folder.
    number: the number of the round, after which strata/results/decide.py wrote its decision.
    request: the request, whose budget the line shows.
    Returns a line such as "docker 98.7 % [97.9, 99.5] (12 s of 3min)".  Ratios without an interval
    are left out.  If there is no decision, the line has no ratio and no time spent ("0 s").
    """
    decision = read_json(os.path.join(folder, get_result_path("precision", round=number))) or {}
    workload_decision = decision.get("workloads", {}).get(WORKLOAD, {})
    phrases = []
    for row in workload_decision.get("verdicts", []):
        if row["from"] is not None:
            ratio, low, high = (100 * row[key] for key in ("ratio", "from", "to"))
            phrases.append(f"{row['environment']} {ratio:.1f} % [{low:.1f}, {high:.1f}]")
    duration = progress.format_duration(decision.get("spent_seconds", 0))
    return f"{', '.join(phrases)} ({duration} of {request.budget})"


def _print_answer(
    folder: str,
    request: Request,
    experiment: Plan,
    rows: list[Fields],
    reasons: dict[str, str],
    is_interrupted: bool,
) -> None:
    """Print the answer, the scope of its intervals, and how to continue.

    folder: the experiment's folder.
    request: the request, whose command line is the first line.
    experiment: the experiment's plan.
    rows: the answer, as :func:`strata.trial.answer.collect_answer_rows` returns it.
    reasons: ``{environment: reason}`` of the environments without a value.
    is_interrupted: whether a signal ended the measurement.
    """
    margin = experiment["precision"]["margin"]
    block_seconds = answer.compute_block_seconds(folder, experiment)
    progress.print_line(request.command_line)
    for text in answer.format_answer_lines(rows, reasons, margin, block_seconds):
        progress.print_line(text)
    if note := answer.describe_disturbed_blocks(folder):
        progress.print_line(note)
    progress.print_line(
        "  intervals: 95 %, over fresh systems; n: blocks, within the sessions so far on this "
        f"machine; all is in {folder}"
    )
    # More blocks cannot help a ratio without an interval.
    is_undecided = any(row["verdict"] == "undecided" and row["low"] is not None for row in rows)
    if is_interrupted or is_undecided:
        state = "ended early" if is_interrupted else "undecided"
        progress.print_line(f"  {state}: the same command adds blocks; --budget sets how long")

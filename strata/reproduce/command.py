"""The command ``strata reproduce``: measure the experiment of an archive here, and compare."""

import contextlib
import glob
import json
import os
import shlex
import shutil
import time

from strata.archive import compare, light, output
from strata.archive.checksums import hash_file
from strata.environments.common import docker_daemon
from strata.experiment import blocks, config, measuring, plan, planning, workload
from strata.experiment.folder import (
    check_experiment_name,
    check_repetitions,
    format_folder_name,
    prepare_experiment_folder,
)
from strata.experiment.precision import SMALLEST_DIFFERENCE
from strata.host import capacity, observe
from strata.image import kvm_trial
from strata.reproduce import settings
from strata.reproduce.settings import Restored
from strata.results import forecast
from strata.util import paths, programs, progress, yaml_files
from strata.util.constants import get_result_path
from strata.util.data_types import Fields, Plan
from strata.util.errors import MachineError, UserError
from strata.util.files import prepare_outputs, read_json, remove_tree, write_json, write_output
from strata.util.signals import Interrupted

# The outcomes of analysis/replication.R and their exit statuses; users' scripts rely on them.
UNDECIDED = 3
_STATUS = {"agrees": 0, "differs": 1, "not testable here": 2, "undecided": UNDECIDED}
# The folder that holds a folder for each reproduction.
FOLDER = "reproduce"
# Files that analysis/reproduce.R writes.
PAGE, CARD = "index.html", "card.md"
# The smallest and the largest number of blocks of a workload.
MIN_BLOCKS, MAX_BLOCKS = 5, 300
# Half-widths are measured to this share of the change that must not be overlooked.  The rest is for
# the error of the original, the power of the test, and the variation between sessions.
SHARE_OF_EFFECT = 0.25


def reproduce_archive(
    archive: str,
    budget: str,
    effect: str,
    name: str | None,
    trust: bool,
    fresh: bool,
    dry: bool,
    json_file: str | None,
) -> int:
    """Measure the experiment of an archive here, print what agrees, and write a page and a card.

    archive: the path of an archive, a project or a folder of results.
    budget: the largest time of measurement, such as ``10min``.
    effect: the change of a ratio that must not be overlooked, such as ``5%``.
    name: the name of the folder below `FOLDER`; None for a name derived from the archive's.
    trust: whether commands and programs that the archive names may be run.
    fresh: whether earlier results here are removed, and everything is measured again.
    dry: whether only the differences and the expected time are printed, and nothing is measured.
    json_file: a file for the answer as JSON, or ``-`` for standard output; None for no file.
    Returns the exit status: 0 if all that can be tested agrees, 1 if something differs, 2 if
    nothing can be tested, 3 if something is undecided or after a dry run.
    Raises UserError for a bad archive or option, MachineError if nothing could be measured, and
    Interrupted if nothing was measured before a signal.
    The archive is not changed.  The same command continues an interrupted measurement.
    The parameters must have the names that ``add_reproduce_options`` of strata/options.py gives to
    the options.
    """
    if dry and json_file is not None:
        raise UserError("--json is for an answer, and --dry-run gives none; leave one out")
    with prepare_outputs({"--json": json_file}):
        answer = _measure_and_judge(archive, budget, effect, name, trust, fresh, dry)
    if answer is None:
        return UNDECIDED
    if json_file is not None:
        write_output(json_file, json.dumps(answer, indent=1, ensure_ascii=False) + "\n")
    return _STATUS[answer["outcome"]]


def _measure_and_judge(
    archive: str, budget: str, effect: str, name: str | None, trust: bool, fresh: bool, dry: bool
) -> Fields | None:
    """Measure the experiment of an archive here, print what agrees, and return the answer.

    The parameters and the errors are the same as in :func:`reproduce_archive`.
    Returns the answer, whose keys docs/files.md lists; None after a dry run.
    """
    effect_share = compare.parse_share(effect)
    if effect_share <= SMALLEST_DIFFERENCE:
        raise UserError(
            f"--effect: is {effect}; must be a share above {SMALLEST_DIFFERENCE:.0%}, such as 5%"
        )
    repetitions = _plan_repetitions(budget, effect_share)
    folder = _choose_reproduction_folder(archive, name)
    with compare.open_results(archive) as results:
        results = os.path.abspath(results)
        original = settings.read_checked_plan(results)
        if original["scale"] == blocks.SMALL_SCALE:
            raise UserError(
                f"{archive}: is at the scale {original['scale']}, whose sizes are for tests and "
                "answer nothing. Name results of the scale standard or paper."
            )
        _check_ratio_to_native(archive, results)
        _, base = config.read_nearest_config()
        with contextlib.chdir(paths.PROJECT):
            restored = settings.build_configuration(
                original, base, repetitions, capacity.read_host_facts()
            )
        is_trusted = trust or not restored.foreign
        if fresh and dry:
            raise UserError(
                "--fresh removes earlier results, and --dry-run measures none; leave one out"
            )
        # Without trust, earlier results must not be removed; the check below comes too late.
        if fresh:
            _check_trust(restored, is_trusted)
        plan_here = _prepare_experiment(folder, results, restored, fresh, dry or not is_trusted)
        differences = _print_and_list_differences(results, original, plan_here)
        # A dry run runs no command of the archive.
        _check_trust(restored, is_trusted or dry)
        if plan_here is not None:
            with contextlib.chdir(folder):
                forecast.print_forecast(plan_here, samples=os.path.relpath(paths.PROJECT))
        if dry:
            return None
        if plan_here is not None:
            _measure_experiment(folder, budget)
        request = {
            **_describe_archive(archive, results),
            **_compute_and_describe_tables(folder, restored),
            "effect": effect_share,
            "differences": differences,
        }
        answer = _judge_replication(folder, request)
    _print_answer(answer, folder)
    return answer


def _check_ratio_to_native(archive: str, results: str) -> None:
    """Raise UserError if no workload was measured natively and in another environment.

    archive: the path of the archive, for the message.
    results: the archive's folder of results.
    """
    # Workload → the names of the environments where it was measured.
    environments: dict[str, set[str]] = {}
    for record in measuring.read_records(results):
        environments.setdefault(record["workload"], set()).add(record["environment"])
    for names in environments.values():
        if blocks.REFERENCE in names and len(names) > 1:
            return
    raise UserError(
        f"{archive}: holds no ratio to {blocks.REFERENCE}: no workload was measured in "
        f"{blocks.REFERENCE} and in another environment"
    )


def _choose_reproduction_folder(archive: str, name: str | None) -> str:
    """Return the path of the folder of a reproduction, which may not exist yet.

    name: the name of the folder below FOLDER; None for a name derived from the archive's.
    Raises UserError for an invalid name.
    """
    if name is None:
        name = format_folder_name(compare.get_base_name(os.path.abspath(archive)), "archive")
    else:
        check_experiment_name(name)
    return os.path.join(FOLDER, name)


def _describe_archive(archive: str, results: str) -> Fields:
    """Return ``{name, sha256, command, original}`` of an archive, for analysis/reproduce.R.

    archive: the path of the archive or of a folder.
    results: the absolute path of its folder of results, which R reads as `original`.
    `name` is the base name of the path.  `sha256` is the SHA-256 of the archive in hexadecimal, or
    empty for a folder.  `command` is the command line that the card shows, such as ``strata
    reproduce archive.zip``.
    """
    return {
        "name": os.path.basename(os.path.abspath(archive)),
        "sha256": hash_file(archive) if os.path.isfile(archive) else "",
        "command": f"strata reproduce {shlex.quote(os.path.basename(archive))}",
        "original": results,
    }


def _plan_repetitions(budget: str, effect: float) -> Fields:
    """Return the value of `repetitions` in the config.yaml of a reproduction.

    budget: the largest time of measurement, such as ``10min``.
    effect: the change of a ratio that must not be overlooked, as a share.
    Raises UserError, which names the option, for a wrong budget or effect.
    """
    repetitions = {
        "min": MIN_BLOCKS,
        "max": MAX_BLOCKS,
        "target": f"{100 * SHARE_OF_EFFECT * effect:.2f}%",
        "budget": budget,
    }
    check_repetitions(repetitions, {"budget": "--budget", "target": "--effect"})
    return repetitions


def _prepare_experiment(
    folder: str, results: str, restored: Restored, fresh: bool, skips_trial: bool
) -> Plan | None:
    """Prepare the folder of a reproduction, and return its plan; None if nothing can be compared.

    folder: the path of the folder.  It gets config.yaml, links to the project, and the files that
    parameters name.
    results: the original's folder of results.
    restored: the experiment.  Its ``omitted`` gets the reasons why parts cannot be measured here,
    and its ``settings`` lose workloads whose files are missing.
    fresh: whether earlier results in the folder are removed.
    skips_trial: whether the trial of KVM, which starts a virtual machine, is left out.
    Raises UserError if the folder holds another experiment.
    Empties the cache of :func:`strata.experiment.workload.read_declaration`.
    """
    config_path = os.path.join(folder, config.FILE)
    existing_settings = None
    if os.path.exists(config_path):
        existing_settings = yaml_files.read_yaml_mapping(config_path)
    prepare_experiment_folder(folder)
    results_here = os.path.join(folder, "results")
    if fresh and os.path.isdir(results_here):
        remove_tree(results_here)
    files = settings.find_parameter_files(restored, results)
    new_settings = restored.settings
    if existing_settings is not None and not fresh:
        _check_same_experiment(folder, existing_settings, new_settings)
    only = new_settings["only"]
    # A ratio takes native and another environment.
    if not only["workloads"] or len(only["environments"]) < 2:
        return None
    prepare_experiment_folder(folder, new_settings)
    for name, source in files.items():
        target = os.path.join(folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)
    # The cache is by name alone, and the declarations of another folder may differ.
    workload.read_declaration.cache_clear()
    with contextlib.chdir(folder):
        if skips_trial:
            plan_here = planning.build_plan(config.read_config({}), capacity.read_host_facts())
        else:
            plan_here = kvm_trial.build_plan_after_trial({})
    _add_unavailable_to_omitted(plan_here, restored)
    return plan_here if _can_compare(plan_here) else None


def _check_same_experiment(folder: str, existing: Fields, settings_here: Fields) -> None:
    """Raise UserError unless a folder's configuration measures the same experiment as a new one.

    folder: the folder, for the message.
    existing: the content of the folder's config.yaml.
    settings_here: the content of the new config.yaml.
    The keys `repetitions`, which the budget and the effect change, and `leave_out`, to which
    workloads that always failed are added later, may differ.
    """
    ignored_keys = ("repetitions", "leave_out")
    compared_existing = {key: existing[key] for key in existing if key not in ignored_keys}
    compared_here = {key: settings_here[key] for key in settings_here if key not in ignored_keys}
    if compared_existing != compared_here:
        raise UserError(
            f"{folder}: holds another experiment. Choose another --name, or add --fresh to begin "
            "it again."
        )


def _add_unavailable_to_omitted(plan_here: Plan, restored: Restored) -> None:
    """Add a reason to ``omitted`` of `restored` for each environment that is not available here.

    If native is not available, or not in the plan, the entry ("", "") says that nothing can be
    compared.
    """
    for name, environment in plan_here["environments"].items():
        if not environment["available"]:
            restored.omitted[name, ""] = f"not available here: {environment['reason']}"
    native = plan_here["environments"].get(blocks.REFERENCE)
    if native is None or not native["available"]:
        reason = native["reason"] if native else "it was not measured there"
        restored.omitted["", ""] = f"there is no {blocks.REFERENCE} to compare with: {reason}"


def _can_compare(plan_here: Plan) -> bool:
    """Return whether native and another environment of a plan are available here."""
    available = blocks.list_available_environments(plan_here)
    return blocks.REFERENCE in available and len(available) > 1


def _check_trust(restored: Restored, is_trusted: bool) -> None:
    """Raise UserError if an archive names commands of its own that the user has not allowed.

    restored: the experiment; its ``foreign`` lists the commands, which the message shows.
    is_trusted: whether the user has allowed them, or none of them will run.
    The check must come before anything is measured, since they run with all rights of a cell.
    """
    if restored.foreign and not is_trusted:
        raise UserError(
            "the archive names commands, programs or options of its own, which would run here "
            "with all rights of a measurement. Look at them, and add --trust to run them:",
            *restored.foreign,
        )


def _print_and_list_differences(
    results: str, original: Plan, plan_here: Plan | None
) -> list[Fields]:
    """Print and return the differences between the original's machine and this one.

    results: the original's folder of results.
    original: the original's plan.
    plan_here: the plan on this machine; None if nothing is measured.
    Returns ``[{item, there, here}, …]``, which analysis/reproduce.R shows on the page.  Printed
    facts are cut to 100 characters, so that a line fits a terminal; returned ones are not.
    """
    original_facts = settings.describe_plan(original) | _read_recorded_facts(results)
    facts_here = _observe_facts_here(plan_here)
    differences = settings.list_differing_facts(original_facts, facts_here)
    if differences:
        progress.print_line("what differs, there → here:")
    else:
        progress.print_line("no difference is seen between the machines and settings")
    for row in differences:
        progress.print_line(f"  {row['item']}: {row['there'][:100]} → {row['here'][:100]}")
    return differences


def _read_recorded_facts(results: str) -> Fields:
    """Return ``{machine, Strata, Docker}`` by the records in the original's folder of results.

    The facts are those of the first record with facts of Docker.  If there is none, the last record
    counts, and the key `Docker` is missing.  Without records the result is empty.
    """
    facts: Fields = {}
    for record in measuring.read_records(results):
        facts["machine"] = record["observed"]["host"]["static"]
        facts["Strata"] = {"revision": record["source"]["revision"]}
        if docker_facts := record["system"].get("docker"):
            facts["Docker"] = docker_facts
            break
    return facts


def _observe_facts_here(plan_here: Plan | None) -> Fields:
    """Return the facts of this machine, with the keys of the original's facts.

    plan_here: the plan on this machine; None if nothing is measured, which leaves only the keys
    `machine` and `Strata`.
    The key `Docker` is missing unless an environment of the plan has Docker.
    """
    facts: Fields = {}
    if plan_here is not None:
        facts = settings.describe_plan(plan_here)
        if any("docker" in layers for layers in facts["environment"].values()):
            facts["Docker"] = docker_daemon.select_daemon_facts(docker_daemon.read_daemon_info())
    facts["machine"] = observe.observe_host(capacity.list_usable_cpus())
    # The control group is a fact of this process, and not of the machine.
    facts["machine"].pop("cgroup", None)
    facts["Strata"] = {"revision": plan.read_source_revision(paths.PROJECT)["revision"]}
    return facts


def _measure_experiment(folder: str, budget: str) -> None:
    """Measure the experiment in a folder until it is precise enough, or a signal comes.

    folder: the folder of the reproduction, with its config.yaml.
    budget: the time for measuring, such as ``10min``, which the progress line shows.
    Raises MachineError if nothing was measured, or Snakemake failed although no cell did, and
    Interrupted if a signal came before anything was measured.
    After a signal, the results so far are the answer.  If cells failed, a second call of Snakemake
    leaves out each workload in the environments where it always failed.
    """
    progress_line = measuring.ProgressLine()
    try:
        started = time.time()
        is_complete = _measure_missing_cells(folder, budget, progress_line)
        if not is_complete and _leave_out_failing_workloads(folder):
            started = time.time()
            is_complete = _measure_missing_cells(folder, budget, progress_line)
        # Cells that failed now are part of the answer; any other failure is not.
        if not is_complete and not measuring.list_pairs_of_cells(folder, "failed", started):
            progress_line.clear()
            log = os.path.join(folder, measuring.LOG)
            lines = measuring.read_last_log_lines(folder)
            raise MachineError(f"{log}: the measurement did not end well:", *lines)
    except Interrupted:
        progress_line.clear()
        if not measuring.list_pairs_of_cells(folder, "raw"):
            progress.print_message("strata: ended before an answer; the same command goes on")
            raise
        progress.print_message("strata: ended early; this is the answer so far:")
    progress_line.clear()
    if not measuring.list_pairs_of_cells(folder, "raw"):
        raise MachineError(f"nothing was measured: {os.path.join(folder, measuring.LOG)} says why")


def _measure_missing_cells(folder: str, budget: str, progress_line: measuring.ProgressLine) -> bool:
    """Measure the missing cells of a reproduction with Snakemake, and return whether none is left.

    folder: the folder of the reproduction.
    budget: the time for measuring, such as ``10min``.
    progress_line: shows each round with the time spent and the budget.
    Raises Interrupted after a signal.
    """
    return measuring.run_snakemake(
        folder,
        [get_result_path("comparisons")],
        # Other cells are measured although one failed.
        "--keep-going",
        line=progress_line,
        describe_round=lambda number: _describe_round(folder, number, budget),
    )


def _describe_round(folder: str, number: int, budget: str) -> str:
    """Return a phrase on a round and the time until then, such as ``round 2 (45 s of 10min)``.

    folder: the folder of the reproduction.
    number: the number of the round, after which strata/results/decide.py wrote its decision.
    budget: the time for measuring, such as ``10min``.
    Without the file of the decision the time is shown as 0 s.
    """
    decision = read_json(os.path.join(folder, get_result_path("precision", round=number))) or {}
    duration = progress.format_duration(decision.get("spent_seconds", 0))
    return f"round {number} ({duration} of {budget})"


def _list_failing_pairs(folder: str) -> list[tuple[str, str]]:
    """Return (environment, workload) of which cells failed and none was measured, sorted.

    folder: the folder of the reproduction.
    """
    failed_pairs = measuring.list_pairs_of_cells(folder, "failed")
    measured_pairs = measuring.list_pairs_of_cells(folder, "raw")
    return sorted(failed_pairs - measured_pairs)


def _leave_out_failing_workloads(folder: str) -> bool:
    """Leave out each workload, by config.yaml, in the environments where it always failed.

    folder: the folder of the reproduction, whose config.yaml is changed.
    Returns whether some are left out; otherwise the file stays as it is.
    """
    failing_pairs = _list_failing_pairs(folder)
    if not failing_pairs:
        return False
    settings_here = yaml_files.read_yaml_mapping(os.path.join(folder, config.FILE))
    leave_out = settings_here.setdefault("leave_out", {})
    for environment, workload_name in failing_pairs:
        leave_out.setdefault(environment, []).append(workload_name)
    prepare_experiment_folder(folder, settings_here)
    return True


def _add_failures_to_omitted(folder: str, restored: Restored) -> None:
    """Add a reason to ``omitted`` of `restored` for each workload and environment that failed.

    folder: the folder of the reproduction.  The reasons are the errors in the records below its
    folder results/failed/, cut to 300 characters so that they fit a table.
    A pair of which any cell was measured is left out.
    """
    for environment, workload_name in _list_failing_pairs(folder):
        pattern = os.path.join(
            glob.escape(folder), f"results/failed/{environment}/{workload_name}/*.json"
        )
        records = [read_json(path) or {} for path in sorted(glob.glob(pattern))]
        # The first failure; later ones may only follow from it.
        error = next((record["error"] for record in records if "error" in record), "no reason")
        reason = f"it failed here: {' '.join(error.split())[:300]}"
        restored.omitted[environment, workload_name] = reason


def _compute_and_describe_tables(folder: str, restored: Restored) -> Fields:
    """Write the tables of a reproduction, and return ``{replication, logs, omitted}`` for R.

    folder: the folder of the reproduction.
    restored: the experiment; the failures of this reproduction are added to its ``omitted``.
    `replication` is the absolute path of the folder of results, and `logs` the SHA-256 over all
    logs and records, in hexadecimal; both are "" if nothing was measured.  `omitted` is
    ``[{environment, workload, reason}, …]``; environment or workload is "" if the reason holds for
    all.
    analysis/reproduce.R reads these keys.
    """
    _add_failures_to_omitted(folder, restored)
    omitted = [
        {"environment": environment, "workload": workload_name, "reason": reason}
        for (environment, workload_name), reason in restored.omitted.items()
    ]
    if not measuring.list_pairs_of_cells(folder, "raw"):
        return {"replication": "", "logs": "", "omitted": omitted}
    programs.run_python(folder, "tidy", "--partial")
    digest = light.build_summary(folder, {})["raw"]["sha256"]
    results = os.path.abspath(os.path.join(folder, "results"))
    return {"replication": results, "logs": digest, "omitted": omitted}


def _judge_replication(folder: str, request: Fields) -> Fields:
    """Write page, card and tables of a reproduction by analysis/reproduce.R, and return the answer.

    folder: the folder of the reproduction, into which R writes; if R fails, the earlier files stay.
    request: the content of REQUEST.json, which the head of analysis/reproduce.R describes.
    Returns the content of outcome.json, which R writes, and the keys of the request on which it
    depends.  ``--json`` prints this object; docs/files.md lists its keys.
    """
    with (
        programs.create_temporary_folder("reproduce") as temporary_folder,
        output.write_whole_folder(folder) as output_folder,
    ):
        request_path = os.path.join(temporary_folder, "request.json")
        write_json(request_path, request)
        script = os.path.join(paths.PROJECT, "analysis/reproduce.R")
        programs.run_r(script, request_path, output_folder)
        answer: Fields = read_json(os.path.join(output_folder, "outcome.json"))
    request_keys = ("name", "sha256", "command", "logs", "effect", "omitted", "differences")
    return {**{key: request[key] for key in request_keys}, **answer}


def _print_answer(answer: Fields, folder: str) -> None:
    """Print the table of an answer, its claims, its outcome, and the paths of page and card.

    answer: the answer, as :func:`_judge_replication` returns it.  analysis/reproduce.R writes its
    keys `rows`, `claims` and `text`.
    folder: the folder of the reproduction.
    """
    table = [("ratio to native", "there", "here", "")]
    for row in answer["rows"]:
        series = f"{row['label']} · {row['series']}"
        table.append((series, row["shown_there"], row["shown_here"], row["text"]))
    # Without a row the heading is not printed either.
    if answer["rows"]:
        progress.print_table(table)
    for claim in answer["claims"]:
        reason = f" ({claim['why']})" if claim["why"] else ""
        progress.print_line(
            f"{claim['id']}: {claim['verdict_there']} there, {claim['verdict_here']} here: "
            f"{claim['outcome']}{reason}"
        )
    progress.print_line(answer["text"])
    page = os.path.join(folder, PAGE)
    card = os.path.join(folder, CARD)
    progress.print_line(f"page: {page}; a card for an issue or a README: {card}")

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
PAGE, CARD = "index.html", "card.md"
# Blocks of a workload: at least, and at most.
FEWEST_BLOCKS, MAX_BLOCKS = 5, 300
# Intervals are measured to this share of the change that must not be overlooked: the original's
# error, the power of the test and what sessions change take the rest.
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
    The archive is not changed.  The same command continues an interrupted measurement.
    Returns the exit status: 0 if all that can be tested agrees, 1 if something differs, 2 if
    nothing can be tested, 3 if something is undecided or after a dry run.
    Raises UserError for a bad archive or option, MachineError if nothing could be measured, and
    Interrupted if nothing was measured before a signal.
    """
    if dry and json_file is not None:
        raise UserError("--json is for an answer, and --dry-run gives none: leave one out")
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

    Arguments and errors are those of :func:`reproduce_archive`.  Returns None after a dry run.
    docs/files.md lists the keys of the answer.
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
                "answer nothing; name results of the scale standard or paper"
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
                "--fresh removes earlier results, and --dry-run measures none: leave one out"
            )
        if fresh:
            _check_trust(restored, is_trusted)
        own_plan = _prepare_experiment(folder, results, restored, fresh, dry or not is_trusted)
        differences = _print_and_list_differences(results, original, own_plan)
        _check_trust(restored, is_trusted or dry)
        if own_plan is not None:
            with contextlib.chdir(folder):
                forecast.print_forecast(own_plan, samples=os.path.relpath(paths.PROJECT))
        if dry:
            return None
        if own_plan is not None:
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
    environments: dict[str, set[str]] = {}
    for record in measuring.read_records(results):
        environments.setdefault(record["workload"], set()).add(record["environment"])
    if not any(blocks.REFERENCE in names and len(names) > 1 for names in environments.values()):
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
    `sha256` is that of the archive, or empty for a folder.  `command` is the command line that the
    card shows to readers who want to check it.
    """
    return {
        "name": os.path.basename(os.path.abspath(archive)),
        "sha256": hash_file(archive) if os.path.isfile(archive) else "",
        "command": f"strata reproduce {shlex.quote(os.path.basename(archive))}",
        "original": results,
    }


def _plan_repetitions(budget: str, effect: float) -> Fields:
    """Return the configuration's `repetitions` of a reproduction.

    effect: the change of a ratio that must not be overlooked, as a share.
    Raises UserError, which names the option, for a wrong budget or effect.
    """
    repetitions = {
        "min": FEWEST_BLOCKS,
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

    folder: its path; it gets config.yaml, links to the project, and the files of parameters.
    results: the original's folder of results.
    restored: the experiment; its ``omitted`` gets the reasons why parts cannot be measured here.
    fresh: whether earlier results in the folder are removed.
    skips_trial: whether the trial of KVM, which starts a virtual machine, is left out.
    Raises UserError if the folder holds another experiment.
    """
    path = os.path.join(folder, config.FILE)
    earlier_settings = yaml_files.read_yaml_mapping(path) if os.path.exists(path) else None
    prepare_experiment_folder(folder)
    results_here = os.path.join(folder, "results")
    if fresh and os.path.isdir(results_here):
        remove_tree(results_here)
    files = settings.find_parameter_files(restored, results)
    settings_here = restored.settings
    if earlier_settings is not None and not fresh:
        # The number of blocks may change; workloads that always failed are left out later.
        ignored = {"repetitions": None, "leave_out": None}
        if {**earlier_settings, **ignored} != {**settings_here, **ignored}:
            raise UserError(
                f"{folder}: holds another experiment: choose another --name, or add --fresh to "
                "begin it again"
            )
    only = settings_here["only"]
    # A ratio takes native and another environment.
    if not only["workloads"] or len(only["environments"]) < 2:
        return None
    prepare_experiment_folder(folder, settings_here)
    for name, source in files.items():
        target = os.path.join(folder, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)
    # The declarations of another folder may differ.
    workload.read_declaration.cache_clear()
    with contextlib.chdir(folder):
        if skips_trial:
            own_plan = planning.build_plan(config.read_config({}), capacity.read_host_facts())
        else:
            own_plan = kvm_trial.build_plan_after_trial({})
    return own_plan if _has_comparison(own_plan, restored) else None


def _has_comparison(own_plan: Plan, restored: Restored) -> bool:
    """Return whether native and another environment are available here.

    Also adds to ``omitted`` of `restored` the reason for each environment that is not available.
    """
    entries: Fields = dict(own_plan["environments"])
    unavailable = {key: entry for key, entry in entries.items() if not entry["available"]}
    for name, entry in unavailable.items():
        restored.omitted[name, ""] = f"not available here: {entry['reason']}"
    if blocks.REFERENCE in entries and blocks.REFERENCE not in unavailable:
        return len(entries) - len(unavailable) > 1
    reason = entries.get(blocks.REFERENCE, {}).get("reason") or "it was not measured there"
    restored.omitted["", ""] = f"there is no {blocks.REFERENCE} to compare with: {reason}"
    return False


def _check_trust(restored: Restored, is_trusted: bool) -> None:
    """Raise UserError if an archive names commands of its own that the user has not allowed.

    is_trusted: whether the user has allowed them.
    The message lists the commands.  The check must come before anything is measured.
    """
    if restored.foreign and not is_trusted:
        raise UserError(
            "the archive names commands, programs or options of its own, which would run here "
            "with all rights of a measurement; look at them, and add --trust to run them:",
            *restored.foreign,
        )


def _print_and_list_differences(
    results: str, original: Plan, own_plan: Plan | None
) -> list[Fields]:
    """Print and return the differences between the original's machine and this one.

    results: the original's folder of results.
    original: the original's plan.
    own_plan: the plan on this machine; None if nothing is measured.
    Returns ``[{item, there, here}, …]`` for the page (analysis/reproduce.R).  Printed texts are cut
    to 100 characters; returned ones are not.
    """
    there, here = settings.describe_plan(original), {}
    # The first record with facts of Docker has all facts; without one the last record counts.
    for record in measuring.read_records(results):
        there["machine"] = record["observed"]["host"]["static"]
        there["Strata"] = {"revision": record["source"]["revision"]}
        if facts := record["system"].get("docker"):
            there["Docker"] = facts
            break
    if own_plan is not None:
        here = settings.describe_plan(own_plan)
        if any("docker" in layers for layers in here["environment"].values()):
            here["Docker"] = docker_daemon.select_daemon_facts(docker_daemon.read_daemon_info())
    here["machine"] = observe.observe_host(capacity.list_usable_cpus())
    here["Strata"] = {"revision": plan.read_source_revision(paths.PROJECT)["revision"]}
    # The control group is a fact of the process that measured, and not of the machine.
    here["machine"].pop("cgroup", None)
    differences = settings.list_differing_facts(there, here)
    if differences:
        progress.print_line("what differs, there → here:")
    else:
        progress.print_line("no difference is seen between the machines and settings")
    for row in differences:
        progress.print_line(f"  {row['item']}: {row['there'][:100]} → {row['here'][:100]}")
    return differences


def _measure_experiment(folder: str, budget: str) -> None:
    """Measure the experiment in a folder until it is precise enough, or a signal comes.

    After a signal, the results so far are the answer.  If cells failed, a second try leaves out
    each workload in the environments where it always failed.
    budget: the time for measuring as a text, which the progress line shows.
    Raises MachineError if nothing was measured, or Snakemake failed although no cell did, and
    Interrupted if a signal came before anything was measured.
    """

    def describe_round(number: int) -> str:
        """Return a phrase with the number of a round, and the time that was spent until then."""
        decision = read_json(os.path.join(folder, get_result_path("precision", round=number))) or {}
        spent = progress.format_duration(decision.get("spent_seconds", 0))
        return f"round {number} ({spent} of {budget})"

    def measure_missing_cells() -> bool:
        """Measure the missing cells, and return whether all were measured."""
        targets = [get_result_path("comparisons")]
        return measuring.run_snakemake(
            folder, targets, "--keep-going", line=line, describe_round=describe_round
        )

    line = measuring.ProgressLine()
    try:
        started = time.time()
        is_measured = measure_missing_cells()
        if not is_measured and _leave_out_failing_workloads(folder):
            started = time.time()
            is_measured = measure_missing_cells()
        # Cells that failed now are part of the answer; any other failure is not.
        if not is_measured and not measuring.list_pairs_of_cells(folder, "failed", started):
            line.clear()
            log = os.path.join(folder, measuring.LOG)
            lines = measuring.read_last_log_lines(folder)
            raise MachineError(f"{log}: the measurement did not end well:", *lines)
    except Interrupted:
        line.clear()
        if not measuring.list_pairs_of_cells(folder, "raw"):
            progress.print_message("strata: ended before an answer; the same command goes on")
            raise
        progress.print_message("strata: ended early; this is the answer so far:")
    line.clear()
    if not measuring.list_pairs_of_cells(folder, "raw"):
        raise MachineError(f"nothing was measured: {os.path.join(folder, measuring.LOG)} says why")


def _leave_out_failing_workloads(folder: str) -> bool:
    """Leave out each workload, by config.yaml, in the environments where it always failed.

    Returns whether some are left out; otherwise the file stays as it is.
    """
    failing = measuring.list_pairs_of_cells(folder, "failed") - measuring.list_pairs_of_cells(
        folder, "raw"
    )
    path = os.path.join(folder, config.FILE)
    settings_here = yaml_files.read_yaml_mapping(path)
    leave_out = settings_here.setdefault("leave_out", {})
    for environment, workload_name in sorted(failing):
        leave_out.setdefault(environment, []).append(workload_name)
    if failing:
        prepare_experiment_folder(folder, settings_here)
    return bool(failing)


def _add_failures_to_omitted(folder: str, restored: Restored) -> None:
    """Add a reason to ``omitted`` of `restored` for each workload and environment that failed.

    Only pairs without any measured cell count.  The reasons are the errors of the records below
    results/failed/ in `folder`.
    """
    failing = measuring.list_pairs_of_cells(folder, "failed") - measuring.list_pairs_of_cells(
        folder, "raw"
    )
    for environment, workload_name in sorted(failing):
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

    analysis/reproduce.R reads these keys.
    replication: the absolute path of the folder of results; "" if nothing was measured.
    logs: the SHA-256 over all logs and records; "" if nothing was measured.
    omitted: ``[{environment, workload, reason}, …]``; environment or workload is "" if the reason
    holds for all.
    Adds the failures of this reproduction to `restored` first.
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
    """Return the answer of analysis/reproduce.R, with the keys of the request that it rests on.

    folder: the folder of the reproduction, into which R writes page, card and tables; if R fails,
    the earlier ones stay.
    request: the content of REQUEST.json, which the head of analysis/reproduce.R describes.
    ``--json`` prints the answer, whose keys docs/files.md lists.
    """
    with (
        programs.create_temporary_folder("reproduce") as work,
        output.write_whole_folder(folder) as target,
    ):
        question = os.path.join(work, "request.json")
        write_json(question, request)
        programs.run_r(os.path.join(paths.PROJECT, "analysis/reproduce.R"), question, target)
        answer: Fields = read_json(os.path.join(target, "outcome.json"))
    request_keys = ("name", "sha256", "command", "logs", "effect", "omitted", "differences")
    return {**{key: request[key] for key in request_keys}, **answer}


def _print_answer(answer: Fields, folder: str) -> None:
    """Print the table of an answer, its claims, its outcome, and the paths of page and card.

    answer: as :func:`_judge_replication` returns it, with the rows of analysis/reproduce.R.
    """
    table = [("ratio to native", "there", "here", "")]
    for row in answer["rows"]:
        series = f"{row['label']} · {row['series']}"
        table.append((series, row["shown_there"], row["shown_here"], row["text"]))
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

"""The command ``strata claim``: measure what decides a claim, and print the verdict."""

import contextlib
import json
import math
import os
import shlex

from strata.archive import compare
from strata.experiment import claims, config, measuring, planning
from strata.experiment import workload as declarations
from strata.experiment.folder import check_repetitions, prepare_experiment_folder
from strata.host import capacity, observe
from strata.image import kvm_trial
from strata.results import forecast
from strata.util import paths, programs, progress, yaml_files
from strata.util.data_types import Fields
from strata.util.errors import MachineError, UserError
from strata.util.files import remove_tree

# Exit statuses, on which users' scripts rely.  The status of a mistake is in strata/commands.py.
REPRODUCED, CONTRADICTED, UNDECIDED, NOT_TESTABLE = range(4)
# The verdicts of analysis/claims.R.
STATUS = {
    "reproduced": REPRODUCED,
    # The claim's tolerance holds, and the published value does not.
    "same direction": REPRODUCED,
    "other size": REPRODUCED,
    "contradicted": CONTRADICTED,
    "undecided": UNDECIDED,
    "tested in part": UNDECIDED,
    "not tested": NOT_TESTABLE,
}
# The smallest number of blocks that gives a verdict, and the largest that is measured.
MIN_BLOCKS = 5
MAX_BLOCKS = 300
# The folder that holds a folder for each claim.
FOLDER = "claim"
PAGE = "claim.html"
# The workload of `strata try`, whose command only the configuration names.
WORKLOAD = "command"
# The smallest half-width that a remedy names, in per cent: it is printed with one decimal.
MIN_WIDTH = 0.1


def test_claim(
    claim: str,
    budget: str,
    width: str | None,
    fresh: bool,
    dry: bool,
    overrides: config.Overrides,
) -> int:
    """Test a claim, measure the blocks that decide it, print the verdict, and write its page.

    claim: the ID of a published claim, or the path of the user's own file.
    budget: the largest time of measurement, such as ``10min``.
    width: the half-width to which the claim's ratio is measured, such as ``1.5%``; None for the
    half-width that decides the claim.
    fresh: whether earlier results of the experiment are removed, and all is measured again.
    dry: whether nothing is measured, and only the expected time is printed.
    overrides: values that replace values of config.yaml, and of the configuration file that a file
    of published claims names.  The key `repetitions` of their files is dropped, since a claim has
    its own.
    Returns the exit status of the verdict (STATUS); after a dry run UNDECIDED.
    Raises UserError for mistakes, and MachineError if the measurement fails.
    Nothing is measured if the results of this project decide a published claim.  The experiment,
    with its results and its page, is in a folder of the claim's name below FOLDER.
    The parameters must have the names that ``add_claim_options`` of strata/options.py gives to the
    options.
    """
    repetitions = _plan_repetitions(budget, width)
    if any(option.startswith("repetitions=") for option in overrides.options):
        raise UserError(
            "--config: repetitions: a claim gets as many blocks as decide it. Limit their time by "
            "--budget, or choose another half-width by --width."
        )
    # The repetitions of several files, merged with those of config.yaml, may contradict each other.
    config_overrides = {key: value for key, value in overrides.items() if key != "repetitions"}
    published, settings = _read_claim(claim, config_overrides)
    # The file holds only this claim.
    published_claim = published["claims"][0]
    _print_claim(published, published_claim)
    if "untestable" in published_claim:
        progress.print_line(f"not testable here: {published_claim['untestable']['because']}")
        return NOT_TESTABLE
    workloads = _list_claim_workloads(claim, published, settings)
    environments = _choose_environments(published, settings, workloads, dry)
    if not environments:
        return NOT_TESTABLE
    folder = os.path.join(FOLDER, published_claim["id"])
    results = os.path.join(folder, "results")
    if fresh and os.path.isdir(results):
        remove_tree(results)
    experiment_settings = _narrow_settings(settings, environments, workloads)
    experiment_settings["repetitions"] = repetitions
    experiment_settings["workloads"] = _adjust_file_paths(experiment_settings["workloads"], folder)
    prepare_experiment_folder(folder, experiment_settings, published)
    # A user's own claim may have been made because of the project's results, which therefore do
    # not judge it.
    if not fresh and published_claim["publication"] != "own":
        row = _judge_project_results(folder, workloads, width)
        if row is not None:
            _print_state_by_project_results(row, width)
            if STATUS[row["verdict"]] in (REPRODUCED, CONTRADICTED):
                return _print_verdict(row, claim, folder)
    with contextlib.chdir(folder):
        plan = planning.build_plan(config.read_config({}), capacity.read_host_facts())
        forecast.print_forecast(plan, samples=os.path.relpath(paths.PROJECT))
    if dry:
        return UNDECIDED
    measuring.make_targets(folder, ["results/claims.csv"])
    return _print_verdict(_judge_results(os.path.abspath(results), folder), claim, folder)


def _print_claim(published: Fields, published_claim: Fields) -> None:
    """Print a claim's ID, statement and source, as in "ibm-pxz-…: … (IBM 2014, figure 2)".

    published: the content of the claim's file, as :func:`_read_claim` returns it.
    published_claim: the claim in it.
    """
    publication = published["publications"][published_claim["publication"]]["label"]
    progress.print_line(
        f"{published_claim['id']}: {published_claim['statement']} "
        f"({publication}, {published_claim['place']})"
    )


def _list_claim_workloads(claim: str, published: Fields, settings: Fields) -> list[str]:
    """Return the names of the workloads that a claim is about.

    claim: the ID or path that the user typed, for the message.
    published: the content of the claim's file, whose `workload` may name a group of workloads.
    settings: the claim's configuration, whose workloads all count for the group "*".
    Raises UserError if the claim is about the workload `command`, and the configuration names no
    command.
    """
    name = published["claims"][0]["workload"]
    if name == WORKLOAD and not settings["workloads"].get(WORKLOAD):
        raise UserError(
            f"{claim}: workload: is {WORKLOAD}, but {config.FILE} here names no command. Type this "
            "in the folder of the try, try/NAME, or name its configuration by --configfile."
        )
    workloads: list[str] = published["workload_groups"].get(name, [name])
    return [*settings["workloads"]] if workloads == ["*"] else workloads


def _plan_repetitions(budget: str, width: str | None) -> Fields:
    """Return the value of `repetitions` in the config.yaml of a claim's experiment.

    budget: the largest time of measurement, such as ``10min``.
    width: the half-width to reach, such as ``1.5%``; None for the one that decides the claim.
    Raises UserError, which names the option, for a wrong budget or width.
    """
    if width is not None:
        compare.parse_share(width, "--width")
    repetitions = {
        "min": MIN_BLOCKS,
        "max": MAX_BLOCKS,
        # True asks for the width that decides the claim.
        "claims": True if width is None else width,
        "budget": budget,
    }
    check_repetitions(repetitions, {"claims": "--width", "budget": "--budget"})
    return repetitions


def _read_claim(claim: str, overrides: Fields) -> tuple[Fields, Fields]:
    """Return the content of a claim's file, with only this claim, and the claim's configuration.

    claim: the ID of a published claim, or the path of a file.
    overrides: values that replace values of the configuration.
    The content has the form that :func:`strata.experiment.claims.read_claim` returns.  The
    configuration has the keys of config.yaml without `repetitions` and without those that describe
    the project.  If the file of published claims names a configuration file, its values replace
    those of config.yaml; the overrides replace both.
    Raises UserError for mistakes in any of them.
    """
    settings = config.merge_mappings(yaml_files.read_yaml_mapping(config.FILE), overrides)
    # Only the check is needed here: mistakes must be reported before the sections are used.
    config.read_config(overrides)
    # The label of an environment is its name unless config.yaml has another.
    environments = {
        name: {"label": name, **entry} for name, entry in settings["environments"].items()
    }
    published = claims.read_claim(claim, environments)
    if "configuration" in published:
        claim_overrides = yaml_files.read_yaml_mapping(published["configuration"])
        settings = config.merge_mappings(settings, claim_overrides)
        # Again, since the user's values replace those of the claim's file, too.
        settings = config.merge_mappings(settings, overrides)
    dropped_keys = (*config.DESCRIPTIONS, "repetitions")
    claim_settings = {key: settings[key] for key in settings if key not in dropped_keys}
    return published, claim_settings


def _choose_environments(
    published: Fields, settings: Fields, workloads: list[str], dry: bool
) -> list[str]:
    """Return the environments that test a claim here, and print why others cannot.

    published: the content of the claim's file, as :func:`_read_claim` returns it.
    settings: the claim's configuration.
    workloads: the names of the claim's workloads.
    dry: whether the trial of KVM is left out.
    Returns an empty list if the claim cannot be tested here.
    Starts a virtual machine for the trial of KVM, unless the answer is stored already or `dry` is
    True.  KVM decides which environments are available.
    """
    overrides = _narrow_settings(settings, [*settings["environments"]], workloads)
    plan = planning.build_plan(config.read_config(overrides), capacity.read_host_facts())
    # Some kernels do not show the number of sockets, which then counts as 1.
    sockets = observe.observe_host(capacity.list_usable_cpus())["sockets"]
    sockets = sockets if isinstance(sockets, int) else 1
    environments, reasons = claims.choose_environments(published, plan, sockets)
    if kvm_trial.is_kvm_trial_needed(plan, environments):
        if dry:
            progress.print_line("KVM was not tried here yet; a run tries it first")
        else:
            plan = kvm_trial.build_plan_after_trial(overrides)
            environments, reasons = claims.choose_environments(published, plan, sockets)
    if environments:
        for reason in reasons:
            progress.print_line(f"testable in part: {reason}")
    else:
        progress.print_line(f"not testable here: {'; '.join(reasons)}")
    return environments


def _narrow_settings(settings: Fields, environments: list[str], workloads: list[str]) -> Fields:
    """Return a copy of a configuration that measures only some workloads in some environments.

    settings: the configuration, which is not changed.
    environments: the names of the environments.
    workloads: the names of the workloads.  Those that the configuration does not have are added
    with their default parameters.
    """
    # An empty mapping leaves the parameters of a configured workload as they are.
    no_parameters: Fields = {workload: {} for workload in workloads}
    copied_settings = config.merge_mappings(settings, {"workloads": no_parameters})
    return {**copied_settings, "only": {"environments": environments, "workloads": workloads}}


def _adjust_file_paths(workloads: Fields, folder: str) -> Fields:
    """Return the parameters of workloads, with relative paths of files adjusted to another folder.

    workloads: ``{workload: {parameter: value}}``, which is not changed.  Relative paths in it begin
    in the working directory.  None counts as no parameters.
    folder: the folder in which the returned paths begin.
    """
    adjusted_workloads: Fields = {}
    for name, parameters in workloads.items():
        declared_parameters = declarations.read_declaration(name)["parameters"]
        adjusted_workloads[name] = {}
        for key, value in (parameters or {}).items():
            is_path = "file" in declared_parameters[key] and value
            if is_path and not os.path.isabs(value):
                value = os.path.relpath(value, folder)
            adjusted_workloads[name][key] = value
    return adjusted_workloads


def _judge_project_results(folder: str, workloads: list[str], width: str | None) -> Fields | None:
    """Test a claim with the results of this project, and return its row; None if they cannot.

    folder: the folder of the claim's experiment, which holds the claim, and into which the page is
    written.
    workloads: the names of the claim's workloads.
    width: the half-width that `more` blocks give, such as ``1.5%``; None if they decide the claim.
    Returns None also if the tables of a workload are missing, or if R refuses the results.
    """
    tables = [f"results/tidy/{workload}.csv" for workload in workloads]
    if not all(map(os.path.exists, [paths.PLAN, *tables])):
        return None
    try:
        row = _judge_results(os.path.abspath("results"), folder, width)
    except MachineError:
        raise
    except UserError:
        # Results that R refuses count as none: the claim is measured then.
        return None
    return row if row["verdict"] != "not tested" else None


def _print_state_by_project_results(row: Fields, width: str | None) -> None:
    """Print whether the results of this project decide a claim, or how many blocks would.

    row: the claim's row, as :func:`_judge_results` returns it.
    width: the half-width that the blocks would give, such as ``1.5%``; None if they would decide
    the claim.
    Prints nothing if the claim is not decided, and the number of blocks is not known.
    """
    if STATUS[row["verdict"]] in (REPRODUCED, CONTRADICTED):
        progress.print_line("the results of this project decide it; --fresh measures it again")
    elif row["seconds"] is not None:
        duration = progress.format_duration(row["seconds"])
        aim = f"measure it to ± {width}" if width else "decide it"
        progress.print_line(
            f"the results of this project leave it {row['verdict']}; by these, "
            f"{row['more']:.0f} more blocks ({duration}) would {aim}"
        )


def _judge_results(results: str, folder: str, width: str | None = None) -> Fields:
    """Test the claim of an experiment's folder with results, and write the claim's page there.

    results: the absolute path of a folder of results.
    folder: the folder of the claim's experiment, which holds the claim.
    width: the half-width that `more` blocks give, such as ``1.5%``; None if they decide the claim.
    Returns the claim's row, as analysis/claim.R prints it, with the columns of claims.csv and two
    more: `more` is the number of further blocks that would decide the claim, and `seconds` their
    duration.  Each is None if the claim is decided or the number is not known.
    If another product stands in for the claim's own, R prints two rows, and the last one, which is
    about the other product, is returned.
    """
    script = os.path.join(paths.PROJECT, "analysis/claim.R")
    page = os.path.join(folder, PAGE)
    share = "NA" if width is None else repr(compare.parse_share(width))
    claim_file = os.path.join(folder, claims.FILE)
    rows = json.loads(programs.run_r(script, results, claim_file, page, share))
    row: Fields = rows[-1]
    return row


def _print_verdict(row: Fields, claim: str, folder: str) -> int:
    """Print the verdict on a claim, and return its exit status.

    row: the claim's row, as :func:`_judge_results` returns it.
    claim: the ID or path that the user typed.
    folder: the folder of the claim's page.
    The verdict is a line such as "reproduced: docker is at 98.7 % …".
    """
    verdict = row["verdict"]
    if row["transferred"]:
        progress.print_line(f"another product stands in for {row['transferred']}:")
    sentence = f"{verdict}: {row['because']}" if row["because"] else verdict
    if row["ratio"] is not None:
        sentence += f": {_describe_ratio(row)}"
    progress.print_line(sentence)
    if row["more"] is not None and STATUS[verdict] == UNDECIDED:
        _print_remedy(row, claim)
    progress.print_line(
        "it holds for this machine, these sizes and the sessions so far; page: "
        + os.path.join(folder, PAGE)
    )
    return STATUS[verdict]


def _print_remedy(row: Fields, claim: str) -> None:
    """Print how many blocks would decide an undecided claim, with the command that measures them.

    row: the claim's row, as :func:`_judge_results` returns it, with an interval and `more`.
    claim: the ID or path that the user typed.
    If more than MAX_BLOCKS blocks would be needed, no command is printed.
    """
    further_blocks = row["more"]
    all_blocks = row["n"] + further_blocks
    if all_blocks > MAX_BLOCKS:
        progress.print_line(
            "it will not be decided here: its ratio is too close to a limit, or varies too much, "
            f"for {MAX_BLOCKS} blocks"
        )
        return
    duration = ""
    budget_option = ""
    if row["seconds"] is not None:
        duration = f", {progress.format_duration(row['seconds'])}"
        # The budget counts all blocks, also those that are measured already.
        all_seconds = row["seconds"] / further_blocks * all_blocks
        # One minute more, so that the budget does not end before the last block.
        budget_option = f" --budget {math.ceil(all_seconds / 60) + 1}min"
    # Half of the interval, in per cent of the ratio.  It shrinks with the square root of the number
    # of blocks.
    half_width_now = 100 * (row["high"] - row["low"]) / 2 / row["ratio"]
    half_width = max(half_width_now * (row["n"] / all_blocks) ** 0.5, MIN_WIDTH)
    # POWER in analysis/statistics.R is the probability of 80 %.
    progress.print_line(
        f"about {further_blocks:.0f} more blocks{duration}, would decide it with a probability of "
        f"80 %: `python3 -m strata claim {shlex.quote(claim)} --width {half_width:.1f}%"
        f"{budget_option}` measures them"
    )


def _describe_ratio(row: Fields) -> str:
    """Return a claim's ratio with its interval, series and tolerance, as a clause.

    row: the claim's row, as :func:`_judge_results` returns it, with a ratio.
    Returns for example "docker is at 98.7 % [97.9, 99.5], the interval at 95 %, of native in pxz
    (n = 8); tolerated from 90 % to 105 %".
    A claim without a reference is about a quantity and not about a ratio.  Its values are shown in
    the unit of the published value.
    """
    if row["reference"]:
        factor, unit = 100, "%"
        reference = f", of {row['reference']}"
    else:
        factor, unit = 1, row["unit"]
        reference = ""
    interval = ""
    if row["low"] is not None:
        low, high = (_format_value(factor * row[key]) for key in ("low", "high"))
        interval = f" [{low}, {high}], the interval at {100 * row['level']:.4g} %"
    limits = []
    if row["tolerance_low"] is not None:
        limits.append(f"from {_format_value(factor * row['tolerance_low'])} {unit}")
    if row["tolerance_high"] is not None:
        limits.append(f"to {_format_value(factor * row['tolerance_high'])} {unit}")
    published = ""
    if row["against_published"]:
        published = (
            f"; against the value of {100 * row['published']:.4g} %: {row['against_published']}"
        )
    return (
        f"{row['environment']} is at {_format_value(factor * row['ratio'])} {unit}{interval}"
        f"{reference} in {row['series']} (n = {row['n']:.0f}); tolerated {' '.join(limits)}"
        f"{published}"
    )


def _format_value(value: float) -> str:
    """Return a value with one decimal from 10 on, and with three digits below: 98.7 or 1.25."""
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"

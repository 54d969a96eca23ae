"""The command ``strata claim``: bring a claim, get a verdict."""

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

# Exit statuses; users' scripts rely on them; the status of a mistake is in strata/commands.py.
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
FIRST_BLOCKS = 5
MAX_BLOCKS = 300
# The folder that holds a folder for each claim.
FOLDER = "claim"
PAGE = "claim.html"
# The workload of `strata try`, whose command only the configuration names.
WORKLOAD = "command"
# The smallest width that is advised, in per cent.
LEAST_WIDTH = 0.1


def test_claim(
    claim: str,
    budget: str,
    width: str | None,
    fresh: bool,
    dry: bool,
    overrides: config.Overrides,
) -> int:
    """Test a claim, measure the blocks that decide it, print the verdict, and write its page.

    Measures nothing if the results of this project decide a published claim.
    The experiment, with its results and its page, is in a folder of the claim's name below FOLDER.

    claim: the ID of a published claim, or the path of the user's own file.
    budget: the largest time of measurement, such as ``10min``.
    width: the half-width that its ratio is measured to, such as ``1.5%``; None: the half-width
    that decides it.
    fresh: whether earlier results of the experiment are removed, and all is measured again.
    dry: whether nothing is measured, and only the expected time is printed.
    overrides: values that replace values of config.yaml, and of the configuration file that a file
    of published claims names; the `repetitions` of their files are dropped, since a claim has its
    own.
    Returns the exit status of the verdict (STATUS); after a dry run UNDECIDED.
    Raises UserError for mistakes, and MachineError if the measurement fails.
    """
    repetitions = _plan_repetitions(budget, width)
    if any(word.startswith("repetitions=") for word in overrides.options):
        raise UserError(
            "--config: repetitions: a claim gets as many blocks as decide it: limit their time by "
            "--budget, or choose another half-width by --width"
        )
    # Merged with those of config.yaml those of files may contradict each other.
    values = {key: value for key, value in overrides.items() if key != "repetitions"}
    published, settings = _read_claim(claim, values)
    # The file holds only this claim.
    published_claim = published["claims"][0]
    publication = published["publications"][published_claim["publication"]]["label"]
    source = f"{publication}, {published_claim['place']}"
    progress.print_line(f"{published_claim['id']}: {published_claim['statement']} ({source})")
    if "untestable" in published_claim:
        progress.print_line(f"not testable here: {published_claim['untestable']['because']}")
        return NOT_TESTABLE
    workload = published_claim["workload"]
    workloads = published["workload_groups"].get(workload, [workload])
    if workloads == ["*"]:
        workloads = [*settings["workloads"]]
    if workload == WORKLOAD and not settings["workloads"].get(WORKLOAD):
        raise UserError(
            f"{claim}: workload: is {WORKLOAD}, but {config.FILE} here names no command: type this "
            "in the folder of the try, try/NAME, or name its configuration by --configfile"
        )
    environments = _choose_environments(published, settings, workloads, dry)
    if not environments:
        return NOT_TESTABLE
    folder = os.path.join(FOLDER, published_claim["id"])
    results = os.path.join(folder, "results")
    if fresh and os.path.isdir(results):
        remove_tree(results)
    narrowed = _narrow_settings(settings, environments, workloads)
    workloads_there = _adjust_file_paths(narrowed["workloads"], folder)
    narrowed |= {"repetitions": repetitions, "workloads": workloads_there}
    prepare_experiment_folder(folder, narrowed, published)
    # A user's own claim is not judged by the project's results, which were there before it.
    if not fresh and published_claim["publication"] != "own":
        earlier = _judge_earlier_results(folder, workloads, width)
        if earlier is not None:
            _print_earlier(earlier, width)
            if STATUS[earlier["verdict"]] in (REPRODUCED, CONTRADICTED):
                return _print_verdict(earlier, claim, folder)
    with contextlib.chdir(folder):
        plan = planning.build_plan(config.read_config({}), capacity.read_host_facts())
        forecast.print_forecast(plan, samples=os.path.relpath(paths.PROJECT))
    if dry:
        return UNDECIDED
    measuring.make_targets(folder, ["results/claims.csv"])
    return _print_verdict(_judge_results(os.path.abspath(results), folder), claim, folder)


def _plan_repetitions(budget: str, width: str | None) -> Fields:
    """Return the configuration's `repetitions` for a claim.

    budget: the largest time of measurement, such as ``10min``.
    width: the half-width to reach, such as ``1.5%``; None for the one that decides the claim.
    Raises UserError, which names the option, for a wrong budget or width.
    """
    if width is not None:
        compare.parse_share(width, "--width")
    repetitions = {
        "min": FIRST_BLOCKS,
        "max": MAX_BLOCKS,
        # True asks for the width that decides the claim.
        "claims": True if width is None else width,
        "budget": budget,
    }
    check_repetitions(repetitions, {"claims": "--width", "budget": "--budget"})
    return repetitions


def _read_claim(claim: str, overrides: Fields) -> tuple[Fields, Fields]:
    """Return a claim, as :func:`strata.experiment.claims.read_claim` does, and its configuration.

    claim: the ID of a published claim, or the path of a file.
    overrides: values that replace values of the configuration.
    The configuration has the keys of config.yaml without `repetitions` and without those that
    describe the project.  If the file of published claims names a configuration file, its values
    replace those of config.yaml; the overrides replace both.
    Raises UserError for mistakes in any of them.
    """
    settings = config.merge_mappings(yaml_files.read_yaml_mapping(config.FILE), overrides)
    # Only the check is needed here: mistakes must be reported before the sections are used.
    config.read_config(overrides)
    environments = {
        name: {"label": name, **entry} for name, entry in settings["environments"].items()
    }
    published = claims.read_claim(claim, environments)
    if "configuration" in published:
        base = yaml_files.read_yaml_mapping(published["configuration"])
        settings = config.merge_mappings(config.merge_mappings(settings, base), overrides)
    dropped = (*config.DESCRIPTIONS, "repetitions")
    claim_settings = {key: settings[key] for key in settings if key not in dropped}
    return published, claim_settings


def _choose_environments(
    published: Fields, settings: Fields, workloads: list[str], dry: bool
) -> list[str]:
    """Return the environments that test a claim here, and print why others cannot.

    published: the claim, as :func:`_read_claim` returns it.
    settings: the claim's configuration.
    workloads: the names of the claim's workloads.
    dry: whether the trial of KVM, which starts a virtual machine, is left out.  KVM decides which
    environments are available.
    Returns an empty list if the claim cannot be tested here.
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

    Workloads that are missing in the configuration are added, with the default parameters.
    """
    added: Fields = {workload: {} for workload in workloads}
    values = config.merge_mappings(settings, {"workloads": added})
    return {**values, "only": {"environments": environments, "workloads": workloads}}


def _adjust_file_paths(workloads: Fields, folder: str) -> Fields:
    """Return the parameters of workloads, with relative paths of files adjusted to another folder.

    workloads: name → parameters, whose relative paths begin in the working directory.
    folder: the folder in which the returned paths begin.
    """
    moved = {name: {**(parameters or {})} for name, parameters in workloads.items()}
    for name, parameters in moved.items():
        declared = declarations.read_declaration(name)["parameters"]
        for key, value in parameters.items():
            if "file" in declared[key] and value and not os.path.isabs(value):
                parameters[key] = os.path.relpath(value, folder)
    return moved


def _judge_earlier_results(folder: str, workloads: list[str], width: str | None) -> Fields | None:
    """Return the claim's row by the results of this project; None if these cannot test it.

    folder: the folder of the claim's experiment, which has the claim, and gets the page.
    workloads: the names of the claim's workloads.
    width: see :func:`_judge_results`.
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


def _print_earlier(row: Fields, width: str | None) -> None:
    """Print whether the results of this project decide a claim, or how many blocks would.

    row: the claim's row, as :func:`_judge_results` returns it.
    width: the half-width that the blocks give instead; None: they decide the claim.
    Prints nothing if neither is known.
    """
    if STATUS[row["verdict"]] in (REPRODUCED, CONTRADICTED):
        progress.print_line("the results of this project decide it; --fresh measures it again")
    elif row["seconds"] is not None:
        time = progress.format_duration(row["seconds"])
        effect = f"measure it to ± {width}" if width else "decide it"
        progress.print_line(
            f"the results of this project leave it {row['verdict']}; by these, "
            f"{row['more']:.0f} more blocks ({time}) would {effect}"
        )


def _judge_results(results: str, folder: str, width: str | None = None) -> Fields:
    """Test the claim of an experiment's folder with results, and write the claim's page there.

    results: the absolute path of a folder of results.
    width: the half-width that `more` blocks give, such as ``1.5%``; None: they decide the claim.
    Returns the claim's row, as analysis/claim.R prints it: the columns of claims.csv and two more:
    `more`, the number of further blocks that would decide it, and `seconds`, their time; each is
    None if the claim is decided or the number is not known.  If another product stands in for the
    claim's own, R prints two rows, and the one of the other product is returned.
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

    row: the claim's row, with an interval and `more`.
    claim: the ID or path that the user typed.
    """
    further_blocks = row["more"]
    all_blocks = row["n"] + further_blocks
    if all_blocks > MAX_BLOCKS:
        progress.print_line(
            "it will not be decided here: its ratio is too close to a limit, or varies too much, "
            f"for {MAX_BLOCKS} blocks"
        )
        return
    time, budget = "", ""
    if row["seconds"] is not None:
        time = f", {progress.format_duration(row['seconds'])}"
        # The budget counts all blocks, those that are measured already included.
        seconds = row["seconds"] / further_blocks * all_blocks
        # One minute more, so that the budget does not end before the last block.
        budget = f" --budget {math.ceil(seconds / 60) + 1}min"
    # Half of the interval, in per cent of the ratio; it shrinks with the square root of the number
    # of blocks.
    half_width = 50 * (row["high"] - row["low"]) / row["ratio"]
    width = max(half_width * (row["n"] / all_blocks) ** 0.5, LEAST_WIDTH)
    progress.print_line(
        f"about {further_blocks:.0f} more blocks{time}, would decide it with a probability of "
        f"80 %: `python3 -m strata claim {shlex.quote(claim)} --width {width:.1f}%{budget}` "
        "measures them"
    )


def _describe_ratio(row: Fields) -> str:
    """Return a claim's ratio with its interval, series and tolerance, as a clause.

    row: the claim's row, with a ratio, as :func:`_judge_results` returns it.
    A claim without a reference is about a level, which is shown in the unit of the published value.
    """
    scale, unit = (100, "%") if row["reference"] else (1, row["unit"])

    def format_value(value: float) -> str:
        """Return a value as a text in the shown unit: one decimal from 10 on, else three digits."""
        return f"{scale * value:.1f}" if scale * value >= 10 else f"{scale * value:.3g}"

    interval = ""
    if row["low"] is not None:
        interval = (
            f" [{format_value(row['low'])}, {format_value(row['high'])}], "
            f"the interval at {100 * row['level']:.4g} %"
        )
    low, high = row["tolerance_low"], row["tolerance_high"]
    limits = []
    if low is not None:
        limits.append(f"from {format_value(low)} {unit}")
    if high is not None:
        limits.append(f"to {format_value(high)} {unit}")
    published = ""
    if row["against_published"]:
        published = (
            f"; against the value of {100 * row['published']:.4g} %: {row['against_published']}"
        )
    reference = f", of {row['reference']}" if row["reference"] else ""
    return (
        f"{row['environment']} is at {format_value(row['ratio'])} {unit}{interval}{reference} in "
        f"{row['series']} (n = {row['n']:.0f}); tolerated {' '.join(limits)}{published}"
    )

"""Define the commands of ``strata``: the function that runs each one, its help and its options."""

import functools
import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from strata import options
from strata.archive import seal as sealing
from strata.environments.common import registry
from strata.experiment import claims, config, plan, planning, recipe, workload
from strata.host import capacity
from strata.image import build, cache, kvm_trial
from strata.measure import parsing
from strata.options import NAME, Parser
from strata.reanalysis import source as published
from strata.results import forecast
from strata.testbed import lifecycle
from strata.util import locks, paths, progress, validation
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.files import read_json, write_json
from strata.vm import acceleration


def print_plan(
    overrides: Fields, show: bool, seal: bool, side: str | None, width: str | None
) -> None:
    """Check the project, and print the due cells and the expected time.

    overrides: values that replace values of config.yaml.
    show: whether the order of the cells is printed, too.
    seal: whether the plan is sealed first: its SHA-256 is recorded and printed.
    side: the path of an archive, a project or a folder of results.  If it is given, the project is
    not checked, and only the numbers of blocks that would decide the ratios and claims of these
    results are printed.  None for the plan.
    width: the half-width to which these ratios are measured, such as ``1.5%``; None for the
    configuration's target.
    Raises UserError with all mistakes in the project, and for options that exclude each other.
    """
    if side is None and width is not None:
        raise UserError("--width: is for --decide only. Type `python3 -m strata plan --decide`.")
    if side is not None and (show or seal):
        raise UserError("--decide: prints what would decide results. Leave out --show and --seal.")
    if side is not None:
        # Imported only here, since it needs R, which the conda environments of other commands lack.
        outlook = importlib.import_module("strata.claim.outlook")
        outlook.print_outlook(side, width, overrides)
        return
    settings = config.read_config(overrides)
    experiment = planning.build_plan(settings, capacity.read_host_facts())
    checks = [
        functools.partial(parsing.check_parser, name, os.getcwd())
        for name in experiment["workloads"]
    ]
    validation.run_all_checks(*checks, lambda: published.check_published_folder(settings))
    if seal:
        digest = sealing.seal_plan(experiment, plan.read_source_revision(os.getcwd()))["sha256"]
        progress.print_line(f"sealed: {digest}")
    forecast.print_forecast(experiment, show)


def probe_machine() -> None:
    """Test whether KVM can run a guest, and write results/machine.json.

    Raises UserError if results/ holds no plan.
    The rule `machine` of Snakemake calls this.  Plans do not read the file: they use the answer
    that the test also stores outside of the project (strata/vm/acceleration.py).
    """
    accelerator_facts = kvm_trial.determine_accelerator(
        plan.read_checked_plan()["image"]["settings"]
    )
    trial_conditions = acceleration.read_trial_conditions()
    facts = {**capacity.read_host_facts(), **accelerator_facts, "circumstances": trial_conditions}
    write_json(paths.MACHINE, facts)


def print_packages(image: Fields) -> None:
    """Print the packages of the image with their versions, a line each.

    image: the value of `image` in the configuration.
    For an image that is not built yet, the packages that its build installs are printed, without
    versions and dependencies.  For the user's own Docker image that is not built yet, no package
    is printed.
    """
    description = recipe.describe_image(image)
    if cached_image := cache.find_image(description["recipe"]):
        manifest = read_json(os.path.join(cached_image["folder"], "manifest.json"))
        packages = [f"{name} {version}" for name, version in manifest["packages"].items()]
        # Twelve characters of the hash name the image, as in Docker's messages.
        remark = f"{len(packages)} packages are in the image {description['recipe'][:12]}"
    elif "docker" in image:
        packages = []
        remark = f"the files of {image['docker']} are not taken over yet: `{NAME} image` does it"
    else:
        packages = recipe.list_base_packages(image, description)
        remark = (
            f"the image is not built yet: {description['release']} comes with these packages and "
            "all that they need; docs/workloads.md lists what an image of Debian 13 holds"
        )
    for line in packages:
        progress.print_line(line)
    progress.print_topic_message("image", remark)


def build_image(overrides: Fields, planned: list[str] | None, packages: bool) -> None:
    """Build the image that some environments need, unless it is in the cache.

    overrides: values that replace values of config.yaml; used only if `planned` is None.
    planned: the names of environments in the plan; None for the environments of config.yaml.  If
    the list is empty, the image is built without a disk, and results/image.json is written.
    packages: whether only the image's packages are printed, and nothing is built.
    Raises UserError for mistakes in config.yaml or the plan.
    Unless environments of the plan are named, images that are no longer needed are removed.  An
    image with a disk makes the trial of KVM start a virtual machine.
    """
    if packages:
        print_packages(config.read_config(overrides)["image"])
        return
    if planned is None:
        settings = config.read_config(overrides)
        image = settings["image"]
        environments = settings["environments"]
        names = [*environments]
    else:
        experiment = plan.read_checked_plan()
        image = experiment["image"]["settings"]
        environments = experiment["environments"]
        names = planned
    layers = [layer for name in names for layer in environments[name]["layers"]]
    # A layer is {name: options}.
    layer_names = {layer_name for layer in layers for layer_name in layer}
    available_layer_names = [
        layer_name
        for layer_name in layer_names
        if not registry.load_layer_class(layer_name).explain_unavailability()
    ]
    image_forms = registry.collect_image_forms(available_layer_names)
    # A Docker image of the user's own has no kernel to boot.
    needs_disk = "disk" in image_forms and "docker" not in image
    if needs_disk:
        # Its result is not needed here: it stores the answer for later plans.
        kvm_trial.determine_accelerator(image)
    image_facts = build.ensure_image(image, needs_disk)
    if not names:
        build.copy_image_facts_to_results(image_facts)
    # If environments are named, a cell's systems are up, and their image is in use.
    if not planned:
        lifecycle.prune_unused_images()


def check_project(overrides: Fields) -> None:
    """Check config.yaml, all workloads with their parsers, and the published claims.

    overrides: values that replace values of config.yaml.
    Raises UserError with all mistakes.  Prints one line if there are none.
    """

    def check_config() -> None:
        """Raise UserError with all mistakes in config.yaml.

        A plan is built, too, since some mistakes appear only there.
        """
        settings = config.read_config(overrides)
        planning.build_plan(settings, capacity.read_host_facts())
        published.check_published_folder(settings)

    checks: list[Callable[[], object]] = [check_config]
    for name in workload.list_workloads():
        checks.append(functools.partial(workload.read_declaration, name))
        checks.append(functools.partial(parsing.check_parser, name, os.getcwd()))
    for path in claims.list_claim_files():
        checks.append(functools.partial(claims.check_claims_file, path))
    validation.run_all_checks(*checks)
    progress.print_line("config.yaml: good")


def clean_machine(images: bool) -> None:
    """Remove the systems and files that killed runs left on this machine, and print their names.

    images: whether the cache of images is removed, too.
    Results are kept.  While a measurement is running on this machine, the function waits.
    """
    with locks.hold_machine_lock():
        removed_names = lifecycle.clean_machine(images)
    for name in removed_names:
        progress.print_line(f"removed {name}")
    if removed_names:
        progress.print_line(f"{len(removed_names)} things removed")
    else:
        progress.print_line("nothing of Strata's was left on this machine")


@dataclass(frozen=True)
class Command:
    """A command of the command line.

    function: the function that runs the command.  It is called with the options as keyword
    arguments, by their names, and returns the exit status, where None counts as 0.  A string
    MODULE:NAME names a function whose module is imported only when the function is called.
    about: the help text, whose first line is in the list of commands.
    example: the words that follow the command's name in the example of the help text.
    add_options: a function that adds the command's options to a parser.
    rule: the rule of Snakemake that calls the command, which is then left out of the list; "" for
    a command of users.
    error_status: the exit status after a UserError or OSError; None for 1, or 2 after a
    MachineError (strata/__main__.py).
    """

    function: Callable[..., int | None] | str
    about: str
    example: str = ""
    add_options: Callable[[Parser], None] = lambda parser: None
    rule: str = ""
    error_status: int | None = None


COMMANDS = {
    "try": Command(
        "strata.trial.command:main",
        "Measure a command of yours in several environments.\n"
        "It ends with 0 if each environment has an answer, and 1 if the command failed in one.",
        "--in native,docker --file ./bench -- ./bench 100",
        options.add_try_options,
    ),
    "plan": Command(
        print_plan,
        "List the cells that are due, what has to be built, and the time.",
        "--show",
        options.add_plan_options,
    ),
    "again": Command(
        "strata.results.again:measure_block_again",
        "Measure a block again: a repetition of a workload, in all its environments.\n"
        "Logs stay until the new ones are whole; the next run for tables makes these again.",
        "stream 3",
        options.add_block_arguments,
    ),
    "doctor": Command(
        "strata.doctor:main",
        "Say what this machine can measure, and what would change that.",
        add_options=options.add_overrides,
    ),
    "claim": Command(
        "strata.claim.command:test_claim",
        "Test a claim: measure what decides it, and give the verdict.\n"
        "It ends with 0: reproduced, 1: contradicted, 2: undecided, 3: it cannot be tested here,\n"
        "4: there is no verdict, for a mistake or a failed measurement.",
        "ibm-pxz-docker-similar",
        options.add_claim_options,
        error_status=4,
    ),
    "check": Command(
        check_project,
        "Check config.yaml, the workloads and the published claims.",
        "--config scale=paper",
        options.add_overrides,
    ),
    "image": Command(
        build_image,
        "Build the image, unless it is in the cache.",
        add_options=options.add_image_options,
    ),
    "archive": Command(
        "strata.archive.make:write_requested_archive",
        "Pack results, paper and source into one file, or ratios alone into a light one.",
        "--out mine.zip",
        options.add_archive_options,
    ),
    "verify": Command(
        "strata.archive.check:verify_archive",
        "Check an archive: files, records, and its tables, made again from the logs.\n"
        "It ends with 0: good, 1: NOT good, no archive or no such file,\n"
        "2: it could not be checked.",
        "archive.zip",
        options.add_verify_options,
    ),
    "rebuild": Command(
        "strata.archive.rebuild:rebuild_paper",
        "Make the paper of an archive again from its logs, without measuring.",
        "archive.zip --to again",
        options.add_rebuild_options,
    ),
    "compare": Command(
        "strata.archive.compare:compare_testbeds",
        "Compare versions, machines or dates by their ratios to native.\n"
        "It ends with 0: equivalent, 1: a difference, 2: they cannot be compared, 3: undecided.",
        "before.zip results --names before after",
        options.add_compare_options,
        error_status=2,
    ),
    "pool": Command(
        "strata.archive.pool:pool_sessions",
        "Put sessions side by side, and pool them for a machine or for machines.\n"
        "It ends with 0: the tables are written, 2: the sessions cannot be pooled.",
        "docs/sessions/*.zip --to pool",
        options.add_pool_options,
        error_status=2,
    ),
    "gate": Command(
        "strata.gate.command:run_gate",
        "Measure until budgets of cost are decided, for CI.\n"
        "It ends with 0: within all budgets, 1: beyond one, 2: one cannot be compared,\n"
        "3: one is undecided.",
        "gate.yaml",
        options.add_gate_options,
        error_status=2,
    ),
    "reproduce": Command(
        "strata.reproduce.command:reproduce_archive",
        "Measure the experiment of an archive here, and say what agrees.\n"
        "It ends with 0: all that can be tested agrees, 1: something differs, 2: nothing can be\n"
        "tested, for a reason that it gives, 3: something is undecided.",
        "archive.zip --budget 20min",
        options.add_reproduce_options,
        error_status=2,
    ),
    "clean": Command(
        clean_machine,
        "Remove what killed runs left on this machine; results stay.",
        "--images",
        options.add_clean_options,
    ),
    "reanalyse": Command(
        "strata.reanalysis.tidy:write_reanalysis_tables",
        "Read the published raw results of the original again.",
        "DIR --to results/reanalysis",
        options.add_reanalysis_options,
    ),
    "machine": Command(probe_machine, "Test whether KVM runs a guest.", rule="machine"),
    # __main__ measures a cell itself, without the imports of this module.
    "cell": Command(
        "", "Measure one cell.", "docker stream 3", options.add_cell_arguments, rule="cell"
    ),
    "decide": Command(
        "strata.results.decide:decide_next_blocks",
        "Decide which workloads get more blocks.",
        "5",
        options.add_round_argument,
        rule="decide",
    ),
    "tidy": Command(
        "strata.results.tidy:write_tidy_tables",
        "Parse all logs into tidy tables.",
        add_options=options.add_table_options,
        rule="tables",
    ),
    "tables": Command(
        "strata.archive.remake:write_tables",
        "Make all tables from all logs.",
        add_options=options.add_table_options,
        rule="tables",
    ),
    "paper": Command(
        "strata.archive.remake:write_paper",
        "Make the paper from the tables.",
        "paper/report.html",
        options.add_paper_argument,
        rule="paper",
    ),
}

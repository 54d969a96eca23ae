"""The commands of ``strata`` and their options."""

import argparse
import functools
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from strata import __version__
from strata.archive import seal as sealing
from strata.environments.common import registry
from strata.experiment import claims, config, plan, recipe, workload
from strata.host import capacity
from strata.image import build, cache
from strata.measure import parsing
from strata.reanalysis import source as published
from strata.results import forecast
from strata.testbed import lifecycle
from strata.util import locks, paths, progress, validation
from strata.util.data_types import Fields
from strata.util.files import read_json, write_json
from strata.vm import acceleration

ABOUT = """Measure what containers and virtual machines cost against bare Linux.

`snakemake --cores 1 paper/report.pdf` measures and writes the paper.  These commands
plan, check, archive and compare; each ends with 0 if all is well, unless it says otherwise."""
# How these commands are typed in every checkout, and how a person typed this one.
NAME = "python3 -m strata"
PROGRAM = "strata" if os.path.basename(sys.argv[0]) == "strata" else NAME


def print_plan(
    overrides: Fields, show: bool, seal: bool, side: str | None, width: str | None
) -> None:
    """Check the project, and print what has to be measured and how long it takes.

    overrides: values that replace those of config.yaml.
    show: whether the order of the cells is printed, too.
    seal: whether the plan is sealed first: its SHA-256 is recorded and printed.
    side: None, or the results by which it is printed instead what would decide ratios and claims.
    width: the half-width that is wanted of these ratios.
    """
    if side is not None:
        # It runs R, which the conda environments of other commands lack.
        outlook = importlib.import_module("strata.claim.outlook")
        outlook.print_outlook(side, width, overrides)
        return
    settings = config.read_config(overrides)
    experiment = config.make_plan(settings, capacity.read_facts())
    checks = [
        functools.partial(parsing.require_parser, name, os.getcwd())
        for name in experiment["workloads"]
    ]
    validation.check_all(*checks, lambda: published.check_folder(settings))
    if seal:
        digest = sealing.seal_plan(experiment, plan.read_source(os.getcwd()))["sha256"]
        progress.print_line(f"sealed: {digest}")
    forecast.print_forecast(experiment, show)


def probe_machine() -> None:
    """Test whether KVM can run a guest, and write results/machine.json."""
    finding = build.probe_acceleration(plan.read_checked_plan()["image"]["settings"])
    circumstances = acceleration.current_circumstances()
    write_json(paths.MACHINE, {**capacity.read_facts(), **finding, "circumstances": circumstances})


def list_packages(image: Fields) -> None:
    """Print the packages of the image with their versions, a line each.

    image: the configuration's ``image``.
    Of an image that is not built yet, the packages are printed that it is made of, without those
    that they need.
    """
    described = recipe.describe_image(image)
    if cached := cache.find_image(described["recipe"]):
        manifest = read_json(os.path.join(cached["folder"], "manifest.json"))
        packages = [f"{name} {version}" for name, version in manifest["packages"].items()]
        remark = f"{len(packages)} packages are in the image {described['recipe'][:12]}"
    elif "docker" in image:
        packages = []
        remark = f"the files of {image['docker']} are not taken over yet: `{NAME} image` does it"
    else:
        packages = recipe.list_base_packages(image, described)
        remark = (
            f"the image is not built yet: {described['release']} comes with these packages and all "
            "that they need; docs/workloads.md lists what an image of Debian 13 holds"
        )
    for line in packages:
        progress.print_line(line)
    progress.print_topic("image", remark)


def build_image(overrides: Fields, planned: list[str] | None, packages: bool) -> None:
    """Build the image that some environments need, if the cache lacks it.

    overrides: values that replace those of config.yaml; used only if `planned` is None.
    planned: the names of environments in the plan.  None means the environments of config.yaml.  If
    empty, the image is built without a disk, and results/image.json is written.
    Unless environments of the plan are named, images that are no longer needed are removed.
    packages: whether only the image's packages are printed, and nothing is built.
    """
    if packages:
        list_packages(config.read_config(overrides)["image"])
        return
    if planned is None:
        settings = config.read_config(overrides)
        names, image = list(settings["environments"]), settings["image"]
        environments = settings["environments"]
    else:
        experiment = plan.read_checked_plan()
        names, image = planned, experiment["image"]["settings"]
        environments = experiment["environments"]
    layers = {name for entry in names for layer in environments[entry]["layers"] for name in layer}
    available = [name for name in layers if not registry.layer_class(name).unavailable_reason()]
    with_disk = "disk" in registry.image_forms(available) and "docker" not in image
    if with_disk:
        build.probe_acceleration(image)
    built = build.ensure_image(image, with_disk)
    if not names:
        build.publish_image(built)
    if not planned:
        # A cell that builds the image has systems of its own, which tidying would look for.
        lifecycle.prune_images()


def check_project(overrides: Fields) -> None:
    """Check config.yaml, all workloads with their parsers, and the published claims.

    overrides: values that replace those of config.yaml.
    Raises UserError with all mistakes.
    """

    def check_config() -> None:
        settings = config.read_config(overrides)
        config.make_plan(settings, capacity.read_facts())
        published.check_folder(settings)

    checks: list[Callable[[], object]] = [check_config]
    for name in workload.list_workloads():
        checks.append(functools.partial(workload.read_declaration, name))
        checks.append(functools.partial(parsing.require_parser, name, os.getcwd()))
    validation.check_all(
        *checks, *(functools.partial(claims.check_claims, path) for path in claims.list_files())
    )
    progress.print_line("config.yaml: good")


def clean_machine(images: bool) -> None:
    """Remove what killed runs left on this machine, and print each thing that was removed.

    images: whether the cache of images is removed, too.
    Holds the lock of the machine meanwhile.
    """
    with locks.hold_machine():
        removed = lifecycle.clean_machine(images)
    for item in removed:
        progress.print_line(f"removed {item}")
    if removed:
        progress.print_line(f"{len(removed)} things removed")
    else:
        progress.print_line("nothing of Strata's was left on this machine")


class Parser(argparse.ArgumentParser):
    """A parser that accepts no abbreviated options, and reports a mistake in one sentence."""

    def __init__(self, **settings: Any) -> None:
        layout = argparse.RawDescriptionHelpFormatter
        super().__init__(allow_abbrev=False, formatter_class=layout, **settings)

    def error(self, message: str) -> NoReturn:
        """Print a mistake that argparse found, and end the process with status 2."""
        refuse(f"{message}; `{self.prog} --help` describes what it takes")


def refuse(message: str) -> NoReturn:
    """Print what is wrong with the command line, and end the process with status 2."""
    progress.print_message(f"strata: {message}")
    sys.exit(2)


def _add_no_options(parser: Parser) -> None:
    pass


def _add_overrides(parser: Parser) -> None:
    text = "values that replace those of config.yaml (default: none)"
    files = f"YAML files with {text}"
    parser.add_argument("--configfile", nargs="+", default=[], metavar="FILE", help=files)
    parser.add_argument("--config", nargs="+", default=[], metavar="KEY=VALUE", help=text)


def _add_plan_options(parser: Parser) -> None:
    _add_overrides(parser)
    parser.add_argument("--show", action="store_true", help="also print the order of measurement")
    text = "record the plan's SHA-256 before the first run; the paper then says whether it was kept"
    parser.add_argument("--seal", action="store_true", help=text)
    text = (
        "say what would decide each ratio and claim, by a pilot: an archive, a project, or its "
        "folder of results (default: results)"
    )
    parser.add_argument(
        "--decide", dest="side", nargs="?", const="results", metavar="SIDE", help=text
    )
    text = "with --decide, the half-width that is wanted (default: the configuration's target)"
    parser.add_argument("--width", metavar="SHARE", help=text)


def _add_claim_options(parser: Parser) -> None:
    text = "the ID of a published claim, or a file with one of your own (docs/claims.md)"
    parser.add_argument("claim", metavar="FILE|ID", help=text)
    budget = "10min"
    text = f"largest time of measurement (default: {budget})"
    parser.add_argument("--budget", metavar="TIME", default=budget, help=text)
    text = "half-width to which the ratio is measured, as 1.5%% (default: what decides the claim)"
    parser.add_argument("--width", metavar="SHARE", help=text)
    text = "measure all anew (default: use what was measured for this claim, or in this project)"
    parser.add_argument("--fresh", action="store_true", help=text)
    text = "say what the test takes, and measure nothing"
    parser.add_argument("--dry-run", dest="dry", action="store_true", help=text)
    _add_overrides(parser)


def _add_image_options(parser: Parser) -> None:
    _add_overrides(parser)
    text = (
        "use the plan in results/ and build for these environments; without names, only write "
        "results/image.json, for the rule `image` of Snakemake (default: use config.yaml)"
    )
    parser.add_argument("--planned", nargs="*", metavar="ENVIRONMENT", help=text)
    text = "build nothing, and list the packages that the image holds"
    parser.add_argument("--packages", action="store_true", help=text)


def _add_archive_options(parser: Parser) -> None:
    image = "include the image (default: its hashes alone)"
    text = "the file to write (default: archive.zip, or light.zip)"
    parser.add_argument("--out", metavar="FILE", help=text)
    parser.add_argument("--image", dest="with_image", action="store_true", help=image)
    text = "accept this text, or this FILE:LINE, although it looks private (default: none)"
    parser.add_argument("--allow", dest="allowed", action="append", metavar="TEXT", help=text)
    text = "the version of Snakemake that made the results (default: the one installed here)"
    parser.add_argument("--snakemake", metavar="VERSION", help=text)
    text = "leave out the source, whose commit is named, and the list of the image's files"
    parser.add_argument("--without-source", action="store_true", help=text)
    text = "write a few kilobytes alone: ratios, sessions, plan and the digest of all logs"
    parser.add_argument("--light", dest="is_light", action="store_true", help=text)


def _add_archive_path(parser: Parser) -> None:
    text = "the file, or the folder of an unpacked archive"
    parser.add_argument("path", metavar="ARCHIVE", help=text)


def _add_verify_options(parser: Parser) -> None:
    text = "also make the papers again and compare them"
    parser.add_argument("--paper", dest="papers", action="store_true", help=text)
    _add_archive_path(parser)


def _add_rebuild_options(parser: Parser) -> None:
    text = "output folder (default: the archive's name with -rebuilt)"
    parser.add_argument("--to", dest="target", metavar="FOLDER", help=text)
    text = "run the archive's code in a sandbox (default: yes where bubblewrap is installed)"
    parser.add_argument("--sandbox", dest="boxed", choices=["yes", "no"], help=text)
    _add_archive_path(parser)


def _add_compare_options(parser: Parser) -> None:
    text = "an archive, a project, a folder of results, or a folder of three or more of these"
    parser.add_argument("sides", nargs="+", metavar="SIDE", help=text)
    text = "names of the sides, in their order (default: of the files)"
    parser.add_argument("--names", nargs="+", metavar="NAME", help=text)
    text = "smallest difference that matters, such as 5%% (default: the paper's)"
    parser.add_argument("--effect", metavar="SHARE", help=text)
    out = "comparison"
    text = f"output folder (default: {out})"
    parser.add_argument("--to", dest="out", metavar="FOLDER", default=out, help=text)


def _add_pool_options(parser: Parser) -> None:
    text = "a light archive, a whole one, a project, or a folder of results"
    parser.add_argument("archives", nargs="+", metavar="ARCHIVE", help=text)
    out = "pool"
    text = f"output folder (default: {out})"
    parser.add_argument("--to", dest="out", metavar="FOLDER", default=out, help=text)


def _add_gate_options(parser: Parser) -> None:
    _add_overrides(parser)
    parser.add_argument("file", metavar="FILE", help="the budgets, such as gate.yaml")
    out = "gate"
    text = f"folder for reports and sessions (default: {out})"
    parser.add_argument("--to", dest="out", metavar="FOLDER", default=out, help=text)


def _add_reproduce_options(parser: Parser) -> None:
    text = "an archive, a project, or a folder of results"
    parser.add_argument("archive", metavar="ARCHIVE", help=text)
    budget = "10min"
    text = f"largest time of measurement, earlier calls included (default: {budget})"
    parser.add_argument("--budget", metavar="TIME", default=budget, help=text)
    text = "the change of a ratio that must not be overlooked (default: 5%%)"
    parser.add_argument("--effect", metavar="SHARE", default="5%", help=text)
    text = "name of the folder, which is reproduce/NAME (default: the archive's)"
    parser.add_argument("--name", metavar="NAME", help=text)
    text = "run commands, programs and options that the archive names (default: refuse them)"
    parser.add_argument("--trust", action="store_true", help=text)
    text = "measure all anew (default: the same command goes on)"
    parser.add_argument("--fresh", action="store_true", help=text)
    text = "say what differs and what would be measured, and measure nothing"
    parser.add_argument("--dry-run", dest="dry", action="store_true", help=text)
    text = "also write the answer to a file, as JSON; - for the terminal"
    parser.add_argument("--json", dest="json_file", metavar="FILE", help=text)


def _add_clean_options(parser: Parser) -> None:
    text = "also empty the cache: every image, its base and its disks"
    parser.add_argument("--images", action="store_true", help=text)


def _add_try_options(parser: Parser) -> None:
    text = (
        "environments of the configuration, with commas between (default: native, docker, gVisor)"
    )
    parser.add_argument("--in", dest="names", metavar="NAME,NAME", help=text)
    many: dict[str, Any] = {"action": "append", "default": []}
    text = "a file or folder to put where the command runs (repeatable)"
    parser.add_argument("--file", dest="files", metavar="FILE", help=text, **many)
    text = "packages of the distribution that the image shall hold"
    parser.add_argument("--packages", nargs="+", metavar="PACKAGE", help=text, **many)
    text = "measure what the command prints, too: a regular expression with one group (repeatable)"
    form = "NAME[:UNIT[:lower]]=REGEX"
    parser.add_argument("--metric", dest="metrics", metavar=form, help=text, **many)
    text = "a Docker image of your own, in which the command runs (default: the project's)"
    parser.add_argument("--image", metavar="REF", help=text)
    text = "an option for Docker's containers (repeatable)"
    parser.add_argument("--docker-option", dest="docker_options", metavar="OPT", help=text, **many)
    text = "the smallest difference that matters (default: 2%%)"
    parser.add_argument("--margin", metavar="SHARE", default="2%", help=text)
    text = "the most time of measurement, such as 20min (default: 3min)"
    parser.add_argument("--budget", metavar="TIME", default="3min", help=text)
    text = "name of the experiment, which lies in try/NAME (default: the command's)"
    parser.add_argument("--name", metavar="NAME", help=text)
    text = "begin the experiment anew (default: the same command adds blocks)"
    parser.add_argument("--fresh", action="store_true", help=text)
    for kind, what in (("json", "JSON; - for the terminal"), ("csv", "CSV"), ("html", "a page")):
        text = f"also write the answer to a file, as {what}"
        parser.add_argument(f"--{kind}", dest=f"{kind}_file", metavar="FILE", help=text)
    text = "the command and its arguments, after two hyphens"
    parser.add_argument("argv", nargs="*", metavar="-- COMMAND", help=text)


def _add_reanalysis_options(parser: Parser) -> None:
    text = "a checkout or a git directory of them"
    parser.add_argument("folder", metavar="FOLDER", help=text)
    out = "results/reanalysis"
    text = f"output folder (default: {out})"
    parser.add_argument("--to", metavar="FOLDER", default=out, help=text)
    text = "also make the paper of it (default: tables alone)"
    parser.add_argument("--paper", metavar="FILE", help=text)


def _add_block(parser: Parser) -> None:
    parser.add_argument("workload", metavar="WORKLOAD")
    parser.add_argument("repetition", type=int, metavar="REPETITION", help="its number, from 1")
    _add_overrides(parser)


def _add_cell(parser: Parser) -> None:
    parser.add_argument("cell", nargs=3, metavar=("ENVIRONMENT", "WORKLOAD", "REPETITION"))


def _add_round(parser: Parser) -> None:
    parser.add_argument("round", type=int, metavar="ROUND", help="its number")


def _add_table_options(parser: Parser) -> None:
    text = "take the cells that exist (default: all must)"
    parser.add_argument("--partial", action="store_true", help=text)
    out = "results"
    text = f"output folder (default: {out})"
    parser.add_argument("--to", metavar="FOLDER", default=out, help=text)


def _add_paper_file(parser: Parser) -> None:
    parser.add_argument("out", metavar="FILE", help="a PDF or web page, by its ending")


@dataclass(frozen=True)
class Command:
    """A command of the command line.

    function: called with the options as keyword arguments; returns the exit status, where None
    counts as 0.  A text MODULE:NAME names a function whose module is imported only when it is
    called.
    about: the help text, whose first line is in the list of commands.
    example: words that follow the command in an example.
    add_options: a function that adds the command's options to a parser.
    rule: the rule of Snakemake that calls the command, which is then left out of the list.
    """

    function: Callable[..., int | None] | str
    about: str
    example: str = ""
    add_options: Callable[[Parser], None] = _add_no_options
    rule: str = ""


COMMANDS = {
    "try": Command(
        "strata.trial.command:main",
        "Measure a command of yours in several environments.\n"
        "It ends with 0 if each environment has an answer, and 1 if the command failed in one.",
        "--in native,docker --file ./bench -- ./bench 100",
        _add_try_options,
    ),
    "plan": Command(
        print_plan,
        "List the cells that are due, what has to be built, and the time.",
        "--show",
        _add_plan_options,
    ),
    "again": Command(
        "strata.results.again:measure_again",
        "Measure a block again: a repetition of a workload, in all its environments.\n"
        "Logs stay until the new ones are whole; the next run for tables makes these again.",
        "stream 3",
        _add_block,
    ),
    "doctor": Command(
        "strata.doctor:main",
        "Say what this machine can measure, and what would change that.",
        add_options=_add_overrides,
    ),
    "claim": Command(
        "strata.claim.command:main",
        "Test a claim: measure what decides it, and give the verdict.\n"
        "It ends with 0: reproduced, 1: contradicted, 2: undecided, 3: it cannot be tested here,\n"
        "4: there is no verdict, for a mistake or a failed measurement.",
        "ibm-pxz-docker-similar",
        _add_claim_options,
    ),
    "check": Command(
        check_project,
        "Check config.yaml, the workloads and the published claims.",
        "--config scale=paper",
        _add_overrides,
    ),
    "image": Command(
        build_image,
        "Build the image, unless it is in the cache.",
        add_options=_add_image_options,
    ),
    "archive": Command(
        "strata.archive.make:main",
        "Pack results, paper and source into one file, or ratios alone into a light one.",
        "--out mine.zip",
        _add_archive_options,
    ),
    "verify": Command(
        "strata.archive.check:verify",
        "Check an archive: files, records, and its tables, made again from the logs.\n"
        "It ends with 0: good, 1: NOT good, 2: the archive could not be checked.",
        "archive.zip",
        _add_verify_options,
    ),
    "rebuild": Command(
        "strata.archive.rebuild:rebuild",
        "Make the paper of an archive again from its logs, without measuring.",
        "archive.zip --to again",
        _add_rebuild_options,
    ),
    "compare": Command(
        "strata.archive.compare:main",
        "Compare versions, machines or dates by their ratios to native.\n"
        "It ends with 0: equivalent, 1: a difference, 2: they cannot be compared, 3: undecided.",
        "before.zip results --names before after",
        _add_compare_options,
    ),
    "pool": Command(
        "strata.archive.pool:pool",
        "Put sessions side by side, and pool them for a machine or for machines.",
        "docs/sessions/*.zip --to pool",
        _add_pool_options,
    ),
    "gate": Command(
        "strata.gate.command:main",
        "Measure until budgets of cost are decided, for CI.\n"
        "It ends with 0: within all budgets, 1: beyond one, 2: one cannot be compared,\n"
        "3: one is undecided.",
        "gate.yaml",
        _add_gate_options,
    ),
    "reproduce": Command(
        "strata.reproduce.command:main",
        "Measure the experiment of an archive here, and say what agrees.\n"
        "It ends with 0: all that can be tested agrees, 1: something differs, 2: nothing can be\n"
        "tested, for a reason that it gives, 3: something is undecided.",
        "archive.zip --budget 20min",
        _add_reproduce_options,
    ),
    "clean": Command(
        clean_machine,
        "Remove what killed runs left on this machine; results stay.",
        "--images",
        _add_clean_options,
    ),
    "reanalyse": Command(
        "strata.reanalysis.tidy:write_tables",
        "Read the published raw results of the original again.",
        "DIR --to results/reanalysis",
        _add_reanalysis_options,
    ),
    "machine": Command(probe_machine, "Test whether KVM runs a guest.", rule="machine"),
    # __main__ measures a cell itself, without what is imported here.
    "cell": Command("", "Measure one cell.", "docker stream 3", _add_cell, rule="cell"),
    "decide": Command(
        "strata.results.decide:decide",
        "Decide which workloads get more blocks.",
        "5",
        _add_round,
        rule="decide",
    ),
    "tidy": Command(
        "strata.results.tidy:make",
        "Parse all logs into tidy tables.",
        add_options=_add_table_options,
        rule="tables",
    ),
    "tables": Command(
        "strata.archive.remake:write_tables",
        "Make all tables from all logs.",
        add_options=_add_table_options,
        rule="tables",
    ),
    "paper": Command(
        "strata.archive.remake:write_paper",
        "Make the paper from the tables.",
        "paper/report.html",
        _add_paper_file,
        rule="paper",
    ),
}


def make_parser() -> tuple[Parser, dict[str, Parser]]:
    """Return the parser of all command lines, and each command's parser by its name."""
    parser = Parser(prog=PROGRAM, description=ABOUT)
    parser.add_argument("--version", action="version", version=f"Strata {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    by_name: dict[str, Parser] = {}
    for name, command in COMMANDS.items():
        about = command.about
        # A command without help is not in the list.
        listed: dict[str, Any] = {}
        if command.rule:
            about += f"\nThe rule `{command.rule}` of Snakemake calls it."
        else:
            listed["help"] = about.partition("\n")[0]
        example = f"example: {PROGRAM} {name} {command.example}".rstrip()
        by_name[name] = subparsers.add_parser(name, description=about, epilog=example, **listed)
        by_name[name].set_defaults(function=command.function)
        command.add_options(by_name[name])
    of_rules = ", ".join(name for name, command in COMMANDS.items() if command.rule)
    parser.epilog = (
        f"Rules of Snakemake call {of_rules}.\n"
        f"`{PROGRAM} COMMAND --help` describes a command.  Example: {PROGRAM} plan --show"
    )
    return parser, by_name


# How the names of files end that Snakemake makes.
MADE = (".pdf", ".html", ".csv", ".log")


def explain_word(word: str, command: str, actions: Sequence[argparse.Action]) -> str:
    """Return a sentence that says that a command does not take a word, and what to type instead.

    word: an argument that the command's parser did not accept.
    command: the name of the command.
    actions: the options and arguments that the command's parser accepts.
    """
    typed = f"{PROGRAM} {command}"
    if command == "try":
        example = f"`{typed} -- ls -l`"
        return f"`{typed}` has no option {word}; two hyphens precede the command, as in {example}"
    options = [option for action in actions for option in action.option_strings]
    if word.startswith("-"):
        name = word.partition("=")[0]
        key = name.lstrip("-")
        if "--config" in options and key in validation.load_schema("config").schema["properties"]:
            return f"{key} is a key of config.yaml: type `{typed} --config {key}=VALUE`"
        return f"`{typed}` has no option {name}; {validation.suggest_name(name, options)}"
    if "=" in word and "--config" in options:
        return f"{word} must follow --config: type `{typed} --config {word}`"
    if word.endswith(MADE):
        return f"`{typed}` makes no files; `snakemake --cores 1 {word}` makes this one"
    return f"`{typed}` does not take {word!r}; `{typed} --help` describes what it takes"


def refuse_wrong_start(words: Sequence[str]) -> None:
    """End the process with a hint and status 2 if the first word is no command.

    words: the command line after the program's name; not empty.
    """
    first = words[0]
    if first in COMMANDS or first in ("-h", "--help", "--version"):
        return
    if first.startswith("-"):
        rest = " ".join(words)
        refuse(f"the command comes first, as in `{PROGRAM} plan {rest}`")
    if first.endswith(MADE):
        refuse(f"{first} is no command; `snakemake --cores 1 {first}` makes this file")
    refuse(f"{first!r} is no command; {validation.suggest_name(first, [*COMMANDS])}")


def main(words: list[str]) -> int:
    """Run a command, and return its exit status.

    words: the command line after the program's name.  If it is empty, the help is printed and the
    status is 2.
    A mistake in the command line is printed, and raises SystemExit with status 2.
    """
    parser, by_name = make_parser()
    if not words:
        parser.print_help(sys.stderr)
        return 2
    refuse_wrong_start(words)
    known, misplaced = parser.parse_known_args(words)
    options = vars(known)
    function = options.pop("function")
    takes_overrides = "config" in options
    if takes_overrides:
        files, values = options.pop("configfile"), options.pop("config")
        misplaced += [word for word in files if "=" in word and not os.path.exists(word)]
        misplaced += [word for word in values if "=" not in word and word.endswith(MADE)]
    if misplaced:
        refuse(explain_word(misplaced[0], words[0], by_name[words[0]]._actions))
    if takes_overrides:
        options["overrides"] = config.read_overrides(files, values)
    if isinstance(function, str):
        module, _, attribute = function.partition(":")
        function = getattr(importlib.import_module(module), attribute)
    return function(**options) or 0

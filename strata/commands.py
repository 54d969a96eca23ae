"""The commands of ``strata`` and their options."""

import argparse
import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from strata import __version__
from strata.environments.common import registry
from strata.experiment import claims, config, plan, workload
from strata.experiment import seal as sealing
from strata.host import capacity
from strata.image import build
from strata.measure import parsing
from strata.reanalysis import source as published
from strata.results import forecast
from strata.testbed import lifecycle
from strata.util import paths, progress, validation
from strata.util.data_types import Fields
from strata.util.files import write_json
from strata.vm import acceleration


def _plan(over: Fields, show: bool, seal: bool) -> None:
    settings = config.read(over)
    found = config.experiment(settings, capacity.facts())
    checks = [
        functools.partial(parsing.check_loads, name, os.getcwd()) for name in found["workloads"]
    ]
    validation.together(*checks, lambda: published.check(settings))
    if seal:
        progress.printed(f"sealed: {sealing.seal(found, plan.source(os.getcwd()))['sha256']}")
    forecast.show(found, show)


def _machine() -> None:
    found = build.probe(plan.read_checked()["image"]["settings"])
    write_json(
        paths.MACHINE, {**capacity.facts(), **found, "circumstances": acceleration.circumstances()}
    )


def _image(over: Fields, planned: list[str] | None) -> None:
    if planned is None:
        settings = config.read(over)
        names, entries, image = (
            list(settings["environments"]),
            settings["environments"],
            settings["image"],
        )
    else:
        experiment = plan.read_checked()
        names, entries, image = planned, experiment["environments"], experiment["image"]["settings"]
    used = {kind for name in names for layer in entries[name]["layers"] for kind in layer}
    machines = "disk" in registry.forms(
        kind for kind in used if not registry.kind(kind).unavailable()
    )
    if machines:
        build.probe(image)
    built = build.ensure(image, machines)
    if not names:
        build.publish(built)
    if not planned:
        # Not beside a cell.
        lifecycle.tidy()


def _check(over: Fields) -> None:
    loads = [
        check
        for name in workload.known()
        for check in (
            lambda name=name: workload.load(name),
            lambda name=name: parsing.check_loads(name, os.getcwd()),
        )
    ]

    def check_experiment() -> None:
        settings = config.read(over)
        config.experiment(settings, capacity.facts())
        published.check(settings)

    validation.together(check_experiment, *loads, claims.check)
    progress.printed("config.yaml: good")


def _clean(images: bool) -> None:
    with lifecycle.exclusive():
        removed = lifecycle.clean(images)
    for item in removed:
        progress.printed(f"removed {item}")
    progress.printed(
        f"{len(removed)} things removed"
        if removed
        else "nothing of Strata's was left on this machine"
    )


_ABOUT = """Measure what containers and virtual machines cost against bare Linux.

`snakemake --cores 1 paper/report.pdf` measures and writes the paper.  These commands
plan, check, archive and compare; each ends with 0 if all is well, unless it says otherwise."""


def _parser() -> argparse.ArgumentParser:
    typed = "strata" if os.path.basename(sys.argv[0]) == "strata" else "python3 -m strata"
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog=typed, description=_ABOUT, formatter_class=layout)
    parser.add_argument("--version", action="version", version=f"Strata {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    of_rules: list[str] = []

    def add(
        name: str, function: Callable[..., Any] | str, about: str, example: str = "", rule: str = ""
    ) -> Callable[..., Any]:
        """Add a command.  Its options are arguments of the function, which may be named as MODULE:NAME.

        about: its first line is in the list of commands.  rule: the rule of Snakemake that calls it,
        where people seldom do.
        """
        listed: dict[str, Any] = {} if rule else {"help": about.partition("\n")[0]}
        if rule:
            of_rules.append(name)
            about += f"\nThe rule `{rule}` of Snakemake calls it."
        shown = f"example: {typed} {name} {example}".rstrip()
        command = commands.add_parser(
            name, description=about, epilog=shown, formatter_class=layout, **listed
        )
        command.set_defaults(function=function)
        return command.add_argument

    def add_overrides(command: Callable[..., Any]) -> None:
        text = "values that replace those of config.yaml (default: none)"
        command(
            "--configfile", nargs="+", default=[], metavar="FILE", help=f"YAML files with {text}"
        )
        command("--config", nargs="+", default=[], metavar="KEY=VALUE", help=text)

    plan = add(
        "plan", _plan, "List the cells that are due, what has to be built, and the time.", "--show"
    )
    add_overrides(plan)
    plan("--show", action="store_true", help="also print the order of measurement")
    text = "record the plan's SHA-256 before the first run; the paper then says whether it was kept"
    plan("--seal", action="store_true", help=text)
    add_overrides(
        add(
            "doctor",
            "strata.doctor:main",
            "Say what this machine can measure, and what would change that.",
        )
    )
    add_overrides(
        add(
            "check",
            _check,
            "Check config.yaml, the workloads and the published claims.",
            "--config scale=paper",
        )
    )
    image = add("image", _image, "Build the image, unless it is in the cache.")
    add_overrides(image)
    text = (
        "use the plan in results/ and build for these environments; without names, only write "
        "results/image.json, for the rule `image` of Snakemake (default: use config.yaml)"
    )
    image("--planned", nargs="*", metavar="ENVIRONMENT", help=text)
    text = "Pack results, paper and source into one file."
    archive = add("archive", "strata.archive.make:make", text, "--out mine.zip")
    archive(
        "--out",
        metavar="FILE",
        default="archive.zip",
        help="the file to write (default: archive.zip)",
    )
    archive(
        "--image",
        dest="with_image",
        action="store_true",
        help="include the image (default: its hashes alone)",
    )
    text = "accept this text, or this FILE:LINE, although it looks private (default: none)"
    archive("--allow", dest="allowed", action="append", metavar="TEXT", help=text)
    text = "the version of Snakemake that made the results (default: the one installed here)"
    archive("--snakemake", metavar="VERSION", help=text)
    text = "leave out the source, whose commit is named, and the list of the image's files"
    archive("--light", action="store_true", help=text)
    text = (
        "Check an archive: files, records, and its tables, made again from the logs.\n"
        "It ends with 0: good, 1: NOT good, 2: the archive could not be checked."
    )
    verify = add("verify", "strata.archive.check:verify", text, "archive.zip")
    verify(
        "--paper",
        dest="papers",
        action="store_true",
        help="also make the papers again and compare them",
    )
    text = "Make the paper of an archive again from its logs, without measuring."
    rebuild = add("rebuild", "strata.archive.rebuild:rebuild", text, "archive.zip --to again")
    text = "output folder (default: the archive's name with -rebuilt)"
    rebuild("--to", dest="target", metavar="FOLDER", help=text)
    text = (
        "whether the archive's code runs in a sandbox (default: yes where bubblewrap is installed)"
    )
    rebuild("--sandbox", dest="boxed", choices=["yes", "no"], help=text)
    for command in (verify, rebuild):
        command("path", metavar="ARCHIVE", help="the file, or the folder of an unpacked archive")
    text = (
        "Compare machines or dates.\n"
        "It ends with 0: no difference found, 1: a difference, 2: they cannot be compared,\n"
        "3: all is undecided."
    )
    compare = add(
        "compare", "strata.archive.compare:main", text, "before.zip results --names before after"
    )
    compare(
        "sides", nargs="+", metavar="SIDE", help="an archive, a project, or a folder of results"
    )
    compare(
        "--names",
        nargs="+",
        metavar="NAME",
        help="names of the sides, in their order (default: of the files)",
    )
    compare(
        "--effect",
        metavar="SHARE",
        help="smallest difference that matters, such as 5%% (default: the paper's)",
    )
    compare(
        "--to",
        dest="out",
        metavar="FOLDER",
        default="comparison",
        help="output folder (default: comparison)",
    )
    text = "Remove what killed runs left on this machine; results stay."
    clean = add("clean", _clean, text, "--images")
    clean(
        "--images",
        action="store_true",
        help="also empty the cache: every image, its base and its disks",
    )
    text = "Read the published raw results of the original again."
    reanalyse = add("reanalyse", "strata.reanalysis.tidy:make", text, "DIR --to results/reanalysis")
    reanalyse("folder", metavar="FOLDER", help="a checkout or a git directory of them")
    text = "output folder (default: results/reanalysis)"
    reanalyse("--to", metavar="FOLDER", default="results/reanalysis", help=text)
    reanalyse("--paper", metavar="FILE", help="also make the paper of it (default: tables alone)")

    add("machine", _machine, "Test whether KVM runs a guest.", rule="machine")
    cell = add("cell", "", "Measure one cell.", "docker stream 3", rule="cell")
    cell("cell", nargs=3, metavar=("ENVIRONMENT", "WORKLOAD", "REPETITION"))
    text = "Decide which workloads get more blocks."
    decide = add("decide", "strata.results.decide:decide", text, "5", rule="decide")
    decide("round", type=int, metavar="ROUND", help="its number")
    tidy = add(
        "tidy", "strata.results.tidy:make", "Parse all logs into tidy tables.", rule="tables"
    )
    tables = add(
        "tables", "strata.archive.remake:tables", "Make all tables from all logs.", rule="tables"
    )
    for command in (tidy, tables):
        command(
            "--partial", action="store_true", help="take the cells that exist (default: all must)"
        )
        command(
            "--to", metavar="FOLDER", default="results", help="output folder (default: results)"
        )
    text = "Make the paper from the tables."
    paper = add("paper", "strata.archive.remake:paper", text, "paper/report.html", rule="paper")
    paper("out", metavar="FILE", help="a PDF or web page, by its ending")
    parser.epilog = (
        f"Rules of Snakemake call {', '.join(of_rules)}.\n"
        f"`{typed} COMMAND --help` describes a command.  Example: {typed} plan --show"
    )
    return parser


def main(words: list[str]) -> int:
    """Run a command; returns the exit status."""
    given = vars(_parser().parse_args(words))
    function = given.pop("function")
    if "config" in given:
        given["over"] = config.laid_over(given.pop("configfile"), given.pop("config"))
    if isinstance(function, str):
        module, _, name = function.partition(":")
        function = getattr(importlib.import_module(module), name)
    return function(**given) or 0

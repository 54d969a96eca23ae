"""The commands of ``python3 -m strata`` that people use, and their options."""

import argparse
import importlib
import os
from collections.abc import Callable
from typing import Any

from strata import __version__, layers
from strata.base import checking, places, progress
from strata.base.files import write_json
from strata.base.shapes import Fields
from strata.cell import parsing
from strata.experiment import claims, config, plan, workload
from strata.experiment import seal as sealing
from strata.host import capacity
from strata.image import build
from strata.results import forecast
from strata.system import testbed
from strata.vm import acceleration


def _plan(over: Fields, show: bool, seal: bool) -> None:
    found = config.experiment(config.read(over), capacity.facts())
    if seal:
        progress.printed(f"sealed: {sealing.seal(found, plan.source(os.getcwd()))['sha256']}")
    forecast.show(found, show)


def _machine() -> None:
    found = build.probe(plan.read_checked()["image"]["settings"])
    write_json(places.MACHINE, {**capacity.facts(), **found, "circumstances": acceleration.circumstances()})


def _image(over: Fields, planned: list[str] | None) -> None:
    if planned is None:
        settings = config.read(over)
        names, entries, image = list(settings["environments"]), settings["environments"], settings["image"]
    else:
        experiment = plan.read_checked()
        names, entries, image = planned, experiment["environments"], experiment["image"]["settings"]
    used = {kind for name in names for layer in entries[name]["layers"] for kind in layer}
    machines = "disk" in layers.forms(kind for kind in used if not layers.kind(kind).unavailable())
    if machines:
        build.probe(image)
    built = build.ensure(image, machines)
    if not names:
        build.publish(built)
    if not planned:
        # Not beside a cell.
        testbed.tidy()


def _check(over: Fields) -> None:
    loads = [
        check
        for name in workload.known()
        for check in (lambda name=name: workload.load(name), lambda name=name: parsing.load_parser(name, os.getcwd()))
    ]
    checking.together(lambda: config.experiment(config.read(over), capacity.facts()), *loads, claims.check)
    progress.printed("config.yaml: good")


def _clean(images: bool) -> None:
    with testbed.exclusive():
        removed = testbed.clean(images)
    for item in removed:
        progress.printed(f"removed {item}")
    progress.printed(f"{len(removed)} things removed" if removed else "nothing of Strata's was left on this machine")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m strata", description=__doc__)
    parser.add_argument("--version", action="version", version=f"Strata {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, function: Callable[..., Any] | str, text: str, pages: bool = False) -> Callable[..., Any]:
        """Add a command: its function, or where that is imported from when called; options are arguments."""
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(function=function)
        if pages:
            text = "values laid over config.yaml"
            command.add_argument("--configfile", nargs="+", default=[], metavar="PAGE", help=f"pages of {text}")
            command.add_argument("--config", nargs="+", default=[], metavar="KEY=VALUE", help=text)
        return command.add_argument

    plan = add("plan", _plan, "list the cells that are due, what has to be built, and the time that takes", True)
    plan("--show", action="store_true", help="print the order of measurement")
    text = "write the plan's digest before the first run, so that the paper can say whether it was kept"
    plan("--seal", action="store_true", help=text)
    image = add("image", _image, "build the image or find it in the cache", True)
    text = "build the image of the plan in results/ for these environments; without names, only write its facts"
    image("--planned", nargs="*", metavar="ENVIRONMENT", help=text)
    add("check", _check, "show all mistakes in config.yaml, the workloads and the published claims", True)
    add("doctor", "strata.doctor:main", "say what this machine can measure, and what would change that", True)
    add("machine", _machine, "test whether KVM runs a guest (for the rule `machine`)")
    tidy = add("tidy", "strata.results.tidy:make", "parse all logs into tidy tables: the first step of `tables`")
    tables = add("tables", "strata.archive.derive:tables", "make all tables of all logs (for the rule `tables`)")
    for command in (tidy, tables):
        command("--partial", action="store_true", help="take the cells that exist")
        command("--to", metavar="FOLDER", default="results", help="output folder (results)")
    paper = add("paper", "strata.archive.derive:paper", "make a paper of the tables (for the rule `paper`)")
    paper("out", metavar="FILE", help="a PDF or web page, by its ending")
    decide = add("decide", "strata.results.decide:decide", "decide which workloads get more blocks")
    decide("round", type=int, metavar="ROUND", help="its number")
    reanalyse = add("reanalyse", "strata.reanalysis.tidy:make", "read the original's published raw results")
    reanalyse("folder", metavar="FOLDER", help="a checkout or a git directory of them")
    reanalyse("--to", metavar="FOLDER", default="results/reanalysis", help="output folder (results/reanalysis)")
    reanalyse("--paper", metavar="FILE", help="make the paper of it too (for the rule `reanalysis`)")
    cell = add("cell", "", "measure one cell: cell ENVIRONMENT WORKLOAD REPETITION")
    cell("cell", nargs=3, metavar=("ENVIRONMENT", "WORKLOAD", "REPETITION"))
    clean = add("clean", _clean, "remove what killed runs left on this machine")
    clean("--images", action="store_true", help="empty the cache too: every image, its base and its disks")
    text = "pack all that the paper rests on into one file (for the rule `archive`)"
    archive = add("archive", "strata.archive.make:make", text)
    archive("--out", metavar="FILE", default="archive.zip", help="the file (archive.zip)")
    archive("--image", dest="with_image", action="store_true", help="include the image")
    text = "what may be published: a text that looks private, or its place as FILE:LINE"
    archive("--allow", dest="allowed", action="append", metavar="TEXT", help=text)
    text = "leave out the source, whose commit is named, and the list of the image's files"
    archive("--light", action="store_true", help=text)
    text = (
        "check an archive: every file, records against plan and logs, and tables made again from the logs; "
        "ends with 0: good, 1: NOT good, 2: it could not be checked"
    )
    verify = add("verify", "strata.archive.check:verify", text)
    verify("--paper", dest="papers", action="store_true", help="also make the papers again and compare them")
    text = "make the paper again from an archive's raw logs, and compare its tables; measures nothing"
    rebuild = add("rebuild", "strata.archive.rebuild:rebuild", text)
    rebuild("--to", dest="target", metavar="FOLDER", help="output folder (named after the archive unless given)")
    text = "whether the archive's code runs in a sandbox (yes where bubblewrap is installed)"
    rebuild("--sandbox", dest="boxed", choices=["yes", "no"], help=text)
    for command in (verify, rebuild):
        command("path", metavar="ARCHIVE", help="the file, or the folder of an unpacked archive")
    text = (
        "compare testbeds or dates; exit status 0: no difference found, 1: a difference, "
        "2: they can't be compared, 3: all is undecided"
    )
    compare = add("compare", "strata.archive.compare:main", text)
    compare("paths", nargs="+", metavar="SIDE", help="an archive, a project, or a folder of results")
    compare("--names", nargs="+", metavar="NAME", help="names of the sides, in their order")
    compare("--effect", metavar="SHARE", help="minimum effect, such as 5%% (the paper's unless given)")
    compare("--to", dest="out", metavar="FOLDER", default="comparison", help="output folder (comparison)")
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

"""The commands of ``python -m strata`` that people use, and their options."""

import argparse
import functools
import os
import sys

from strata import __version__
from strata.base import places
from strata.base.errors import UserError


def _over(options: argparse.Namespace) -> dict:
    """What lies over config.yaml: pages, and over these the words of the command line."""
    from strata.base import pages
    from strata.experiment import config

    words: dict = {}
    for word in options.config:
        key, given, text = word.partition("=")
        if not word.startswith("{") and not given:
            raise UserError(f"--config: '{word}' is neither KEY=VALUE nor a mapping in braces")
        said = pages.mapping("--config", word) if word.startswith("{") else {key: pages.parse(f"--config {key}", text)}
        words = config.merge(words, said)
    return config.read_pages(options.configfile, words)


def _settings(options: argparse.Namespace) -> dict:
    from strata.experiment import config

    return config.read(_over(options))


def _plan(options: argparse.Namespace) -> int:
    from strata import workflow
    from strata.results import forecast

    forecast.show(workflow.make_plan(_settings(options)), options.show)
    return 0


def _machine(options: argparse.Namespace) -> int:
    from strata.base.files import write_json
    from strata.experiment import plan
    from strata.host import capacity
    from strata.image import build
    from strata.vm import acceleration

    found = build.probe(plan.read()["image"]["settings"])
    write_json(options.out, {**capacity.facts(), **found, "circumstances": acceleration.circumstances()})
    return 0


def _image(options: argparse.Namespace) -> int:
    from strata import layers
    from strata.experiment import plan
    from strata.image import build
    from strata.system import testbed

    if options.planned is None:
        settings = _settings(options)
        names, entries = list(settings["environments"]), settings["environments"]
        image = settings["image"]
    else:
        planned = plan.read_checked()
        names, entries = options.planned, planned["environments"]
        image = planned["image"]["settings"]
    stacks = [entries[name]["layers"] for name in names]
    can = {name for stack in stacks for layer in stack for name in layer if not layers.kind(name).unavailable()}
    machines = "disk" in layers.forms(can)
    if machines:
        build.probe(image)
    built = build.ensure(image, options.rebuild, machines)
    if not names:
        build.publish(built)
    if not options.planned:
        # Not beside a cell.
        testbed.tidy()
    return 0


def _tidy(options: argparse.Namespace) -> int:
    from strata.results import tidy

    tidy.make(options.partial)
    return 0


def _decide(options: argparse.Namespace) -> int:
    from strata.results import decide

    decide.decide(options.block)
    return 0


def _reanalyse(options: argparse.Namespace) -> int:
    from strata.reanalysis import tidy

    tidy.make(options.folder, options.to)
    return 0


def _check(options: argparse.Namespace) -> int:
    from strata.base import checking
    from strata.experiment import claims, config, workload
    from strata.host import capacity

    checking.together(
        lambda: config.experiment(_settings(options), capacity.facts()),
        *(functools.partial(workload.check, name) for name in workload.known()),
        functools.partial(claims.check, names=True),
    )
    print("config.yaml: good")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from strata import doctor

    return doctor.main(_over(options))


def _clean(options: argparse.Namespace) -> int:
    from strata.system import testbed

    with testbed.exclusive():
        removed = testbed.clean(options.images)
    for item in removed:
        print(f"removed {item}")
    print(f"{len(removed)} things removed" if removed else "nothing of ours was left on this machine")
    return 0


def _archive(options: argparse.Namespace) -> int:
    from strata.archive import make

    if options.missing:
        raise UserError(options.missing)
    make.make(options.out, options.image, options.allow, options.others)
    return 0


def _verify(options: argparse.Namespace) -> int:
    from strata.archive import check

    found = check.verify(options.archive)
    for sentence in found:
        print(sentence)
    print(f"{options.archive}: {_count(found)}", file=sys.stderr)
    return 1 if found else 0


def _count(found: list[str]) -> str:
    if not found:
        return "good: every byte, checksum, record and log is what the archive says"
    return f"NOT good: {len(found)} {'finding' if len(found) == 1 else 'findings'}"


def _rebuild(options: argparse.Namespace) -> int:
    from strata.archive import rebuild

    return rebuild.rebuild(options.archive, options.to)


def _compare(options: argparse.Namespace) -> int:
    from strata.archive import compare

    try:
        return compare.compare(options.sides, options.names, options.effect, options.to)
    except UserError as error:
        print(f"strata: {error}", file=sys.stderr)
        return compare.NOT_COMPARABLE


def main(words: list[str]) -> int:
    """Run a command; returns the exit status.  Where this Python lacks a package, that of .venv takes over."""
    try:
        return _main(words)
    except ModuleNotFoundError as missing:
        own = os.path.join(places.PROJECT, ".venv/bin/python")
        if (missing.name or "").startswith("strata"):
            raise
        if not os.path.exists(own) or os.path.samefile(sys.prefix, os.path.join(places.PROJECT, ".venv")):
            raise UserError(f"the Python package {missing.name} is not installed: `make setup` installs it") from None
        sys.stdout.flush()
        os.execv(own, [own, "-m", "strata", *words])


def _main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m strata", description=__doc__)
    parser.add_argument("--version", action="version", version=f"Strata {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, function: object, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(function=function)
        return command

    takes_config = argparse.ArgumentParser(add_help=False)
    text = "values laid over config.yaml"
    takes_config.add_argument("--configfile", nargs="+", default=[], metavar="PAGE", help=f"pages of {text}")
    takes_config.add_argument("--config", nargs="+", default=[], metavar="KEY=VALUE", help=text)
    for name, function, text in (
        ("plan", _plan, "say which cells are due, what would be built, and about how long it takes; writes nothing"),
        ("image", _image, "build the image or find it in the cache"),
        ("check", _check, "check config.yaml, the workloads and the published claims: all that is wrong at once"),
        ("doctor", _doctor, "say what this machine can measure, and what would change that"),
    ):
        command = commands.add_parser(name, help=text, description=text, parents=[takes_config])
        command.set_defaults(function=function)
        if name == "plan":
            command.add_argument("--show", action="store_true", help="print the order of measurement")
        if name == "image":
            command.add_argument("--rebuild", action="store_true", help="build it even if it is in the cache")
            text = "that of the plan in results/, with the machines of these environments; without any it is published"
            command.add_argument("--planned", nargs="*", metavar="ENVIRONMENT", help=text)
    machine = add("machine", _machine, "try whether KVM runs a guest here (the rule `machine` does it)")
    machine.add_argument("--out", metavar="FILE", default=places.MACHINE, help=f"the file ({places.MACHINE})")
    tidy = add("tidy", _tidy, "parse all logs into results/tidy (the rule `tables` does it)")
    tidy.add_argument("--partial", action="store_true", help="of the cells that are there")
    decide = add("decide", _decide, "decide which workloads get further sets after a block (the rule `decide` does it)")
    decide.add_argument("block", type=int, metavar="BLOCK", help="the last block of a round")
    reanalyse = add(
        "reanalyse", _reanalyse, "read the original's published raw results (the rule `reanalysis` does it)"
    )
    reanalyse.add_argument("folder", metavar="FOLDER", help="a checkout or a git directory of them")
    reanalyse.add_argument("--to", metavar="FOLDER", default="results/reanalysis", help="where to (results/reanalysis)")
    cell = add("cell", None, "measure one cell: cell ENVIRONMENT WORKLOAD REPETITION")
    cell.add_argument("cell", nargs=3, metavar=("ENVIRONMENT", "WORKLOAD", "REPETITION"))
    clean = add("clean", _clean, "remove whatever of ours was left on this machine")
    clean.add_argument("--images", action="store_true", help="empty the cache too: every image, its base and its disks")
    archive = add("archive", _archive, "write one file with all that the paper rests on (snakemake archive does it)")
    archive.add_argument("--out", metavar="FILE", default="archive.zip", help="the file (archive.zip)")
    archive.add_argument("--missing", metavar="WORDS", help="why there is nothing to archive (the rule says so)")
    archive.add_argument("--image", action="store_true", help="put the image in too")
    text = "what may be published: a text that looks private, or its place as FILE:LINE"
    archive.add_argument("--allow", nargs="*", metavar="TEXT", help=text)
    archive.add_argument("--others", nargs="*", metavar="USER@HOST", help="machines besides this one, not to be named")
    text = "check an archive: every byte, its crate, plan against records, records against logs"
    verify = add("verify", _verify, text)
    text = "make the paper again from an archive's raw logs, and compare its tables; measures nothing"
    rebuild = add("rebuild", _rebuild, text)
    rebuild.add_argument("--to", metavar="FOLDER", help="where to (beside you, called after the archive)")
    for command in (verify, rebuild):
        command.add_argument("archive", metavar="ARCHIVE", help="the file, or the folder of an unpacked archive")
    text = "compare testbeds or dates; ends with 0: no difference, 1: a difference, 2: they can't be compared"
    compare = add("compare", _compare, text)
    compare.add_argument("sides", nargs="+", metavar="SIDE", help="an archive, a project, or a folder of results")
    compare.add_argument("--names", nargs="+", metavar="NAME", help="what the sides are called, in their order")
    compare.add_argument("--effect", metavar="SHARE", help="the minimum effect, such as 5%% (that of the paper)")
    compare.add_argument("--to", metavar="FOLDER", default="comparison", help="where to (comparison)")
    options = parser.parse_args(words)
    return options.function(options)

"""The commands of ``python -m strata`` that people use, and their options."""

import argparse
import functools
import os
import sys

from strata import __version__
from strata.base.errors import UserError


def _over(options: argparse.Namespace) -> dict:
    from strata.base import checking

    return checking.read_json_words("--config", options.config) if options.config else {}


def _plan(options: argparse.Namespace) -> int:
    from strata.experiment import config, plan, sets, workload
    from strata.host import capacity

    experiment = config.experiment(config.read(_over(options)), capacity.facts())
    for name, entry in experiment["workloads"].items():
        workload.check_files(name, entry["parameters"])
    experiment |= {"spread": True} if plan.spread() else {}
    plan.write({**experiment, "source": plan.source(os.getcwd())})
    order = sets.Order(experiment)
    if options.show:
        for place, block, environment, load, repetition in order.rows():
            print(f"{place:6d}  block {block:<5d} {environment} · {load} · repetition {repetition}")
    absent = {name: entry for name, entry in experiment["environments"].items() if not entry["available"]}
    for name, entry in absent.items():
        print(f"plan: {name} is not available here: {entry['reason']}", file=sys.stderr)
    more = "" if order.decided else "; how many more is decided when they were measured"
    print(f"plan: {len(order.cells())} cells at {experiment['scale']} scale{more}", file=sys.stderr)
    return 0


def _image(options: argparse.Namespace) -> int:
    from strata import layers
    from strata.experiment import config, recipe
    from strata.image import build, cache
    from strata.system import testbed

    settings = config.read(_over(options))
    there = cache.find(recipe.describe(settings["image"])["recipe"])
    build.publish(build.ensure(settings["image"], options.rebuild))
    named = {name for entry in settings["environments"].values() for layer in entry["layers"] for name in layer}
    can = {name for name in named if layers.layer_class(name).unavailable() is None}
    build.ensure_machines(settings["image"], layers.forms(can))
    if there is None:
        testbed.tidy()
    return 0


def _vm_tune(options: argparse.Namespace) -> int:
    from strata.base import checking
    from strata.vm import libvirt

    libvirt.tune(options.domain, checking.read_json_words("vm-tune", options.extra))
    return 0


def _check(options: argparse.Namespace) -> int:
    from strata.base import checking
    from strata.experiment import claims, config, workload
    from strata.host import capacity

    over = _over(options)
    checking.together(
        lambda: config.experiment(config.read(over), capacity.facts()),
        *(functools.partial(workload.check, name) for name in workload.known()),
        claims.check,
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


def _admit(options: argparse.Namespace) -> int:
    import os
    import pwd

    from strata.system import turn

    if os.geteuid() != 0:
        raise UserError("root alone lets others measure: run `sudo python -m strata admit USER`")
    try:
        turn.admit(pwd.getpwnam(options.user).pw_uid)
    except KeyError:
        raise UserError(f"there is no user '{options.user}' on this machine") from None
    except OSError as error:
        raise UserError(f"{turn.path()}: {error.strerror}") from None
    print(f"{options.user} may measure on this machine until it starts again")
    return 0


def _summary(options: argparse.Namespace) -> int:
    from strata.snakemake import summary

    print(summary.told(sys.stdin))
    return 0


def _archive(options: argparse.Namespace) -> int:
    from strata.archive import make

    make.make(options.out, options.image)
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
        return compare.compare(options.sides[0], options.sides[1], options.names, options.effect, options.to)
    except UserError as error:
        print(f"strata: {error}", file=sys.stderr)
        return compare.NOT_COMPARABLE


def _history(options: argparse.Namespace) -> int:
    from strata.archive import compare, history

    try:
        return history.history(options.sides, options.names, options.effect, options.to)
    except UserError as error:
        print(f"strata: {error}", file=sys.stderr)
        return compare.NOT_COMPARABLE


def main(words: list[str]) -> int:
    """Parse the command line and run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m strata", description=__doc__)
    parser.add_argument("--version", action="version", version=f"Strata {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, function: object, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(function=function)
        return command

    takes_config = argparse.ArgumentParser(add_help=False)
    takes_config.add_argument("--config", metavar="JSON", help="values laid over config.yaml")
    for name, function, text in (
        ("plan", _plan, "write results/plan.json and plan.csv"),
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
    cell = add("cell", None, "measure one cell: cell ENVIRONMENT WORKLOAD REPETITION")
    cell.add_argument("cell", nargs=3, metavar=("ENVIRONMENT", "WORKLOAD", "REPETITION"))
    admit = add("admit", _admit, "as root: let a user without root measure on this machine")
    admit.add_argument("user", metavar="USER", help="the user's name")
    clean = add("clean", _clean, "remove whatever of ours was left on this machine")
    clean.add_argument("--images", action="store_true", help="empty the cache too: every image, its base and its disks")
    tune = add("vm-tune", _vm_tune, "write what Vagrant cannot say into a libvirt domain (called by the Vagrantfile)")
    tune.add_argument("domain", metavar="DOMAIN")
    tune.add_argument("extra", metavar="JSON")
    add("summary", _summary, "make a short table of that of `snakemake --summary`, which it reads (make summary)")
    archive = add("archive", _archive, "write one file with all that the paper rests on (snakemake archive does it)")
    archive.add_argument("--out", metavar="FILE", default="archive.zip", help="the file (archive.zip)")
    archive.add_argument("--image", action="store_true", help="put the image in too")
    text = "check an archive: every byte, its crate, plan against records, records against logs"
    verify = add("verify", _verify, text)
    text = "make the paper again from an archive's raw logs, and compare its tables; measures nothing"
    rebuild = add("rebuild", _rebuild, text)
    rebuild.add_argument("--to", metavar="FOLDER", help="where to (beside you, called after the archive)")
    for command in (verify, rebuild):
        command.add_argument("archive", metavar="ARCHIVE", help="the file, or the folder of an unpacked archive")
    text = "compare two testbeds; ends with 0: no difference, 1: a difference, 2: they can't be compared"
    compare = add("compare", _compare, text)
    compare.add_argument("sides", nargs=2, metavar="SIDE", help="an archive, a project, or a folder of results")
    compare.add_argument("--names", nargs=2, metavar="NAME", help="what the sides are called")
    compare.add_argument("--effect", metavar="SHARE", help="the minimum effect, such as 5%% (that of the paper)")
    compare.add_argument("--to", metavar="FOLDER", default="comparison", help="where to (comparison)")
    text = "set several dates or machines side by side, as one page; ends as compare does"
    history = add("history", _history, text)
    history.add_argument("sides", nargs="+", metavar="SIDE", help="an archive, a project, or a folder of results")
    history.add_argument("--names", nargs="+", metavar="NAME", help="what the sides are called, in their order")
    history.add_argument("--effect", metavar="SHARE", help="the minimum effect, such as 5%% (that of the paper)")
    history.add_argument("--to", metavar="FOLDER", default="history", help="where to (history)")
    options = parser.parse_args(words)
    return options.function(options)

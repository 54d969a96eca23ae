"""The commands of ``python -m strata`` that people use, and their options."""

import argparse
import json
import os
import sys

from strata import __version__
from strata.errors import UserError


def _over(options: argparse.Namespace) -> dict:
    if not options.config:
        return {}
    try:
        over = json.loads(options.config)
    except json.JSONDecodeError as error:
        raise UserError(f"--config: is not JSON: {error}") from None
    if not isinstance(over, dict):
        raise UserError("--config: must be a JSON object")
    return over


def _plan(options: argparse.Namespace) -> int:
    from strata import config, machine, plan, workload

    experiment = config.experiment(config.read(_over(options)), machine.facts())
    for name, entry in experiment["workloads"].items():
        workload.check_files(name, entry["parameters"])
    plan.write({**experiment, "source": plan.source(os.getcwd())})
    if options.show:
        for row in plan.rows(experiment):
            print(f"{row[0]:6d}  block {row[1]:<5d} {row[2]} · {row[3]}")
    absent = {name: entry for name, entry in experiment["environments"].items() if not entry["available"]}
    for name, entry in absent.items():
        print(f"plan: {name} is not available here: {entry['reason']}", file=sys.stderr)
    print(f"plan: {experiment['cells']} cells at {experiment['scale']} scale", file=sys.stderr)
    return 0


def _image(options: argparse.Namespace) -> int:
    from strata import config, image

    settings = config.read(_over(options))
    image.publish(image.ensure(settings["image"], options.rebuild))
    return 0


def _check(options: argparse.Namespace) -> int:
    from strata import config, machine

    config.experiment(config.read(_over(options)), machine.facts())
    print("config.yaml: good")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from strata import doctor

    return doctor.main()


def _clean(options: argparse.Namespace) -> int:
    from strata import testbed

    with testbed.exclusive():
        removed = testbed.clean()
    for item in removed:
        print(f"removed {item}")
    print(f"{len(removed)} things removed" if removed else "nothing of ours was left on this machine")
    return 0


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
        ("check", _check, "check config.yaml and the workloads"),
    ):
        command = commands.add_parser(name, help=text, description=text, parents=[takes_config])
        command.set_defaults(function=function)
        if name == "plan":
            command.add_argument("--show", action="store_true", help="print the order of measurement")
        if name == "image":
            command.add_argument("--rebuild", action="store_true", help="build it even if it is in the cache")
    cell = add("cell", None, "measure one cell: cell ENVIRONMENT WORKLOAD REPETITION")
    cell.add_argument("cell", nargs=3, metavar=("ENVIRONMENT", "WORKLOAD", "REPETITION"))
    add("doctor", _doctor, "say what this machine can measure, and what would change that")
    add("clean", _clean, "remove whatever of ours was left on this machine")
    options = parser.parse_args(words)
    return options.function(options)

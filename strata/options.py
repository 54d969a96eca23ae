"""Define the options of the commands of ``strata``, and the parser that reads them.

In help texts ``%%`` stands for a percent sign: argparse formats them.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from strata.util import progress

# How these commands are typed in every checkout, and how a person typed this one.
NAME = "python3 -m strata"
PROGRAM = "strata" if os.path.basename(sys.argv[0]) == "strata" else NAME


class Parser(argparse.ArgumentParser):
    """A parser that accepts no abbreviated options, and reports a mistake in one sentence."""

    def __init__(self, **settings: Any) -> None:
        """Create the parser; the settings are arguments of :class:`argparse.ArgumentParser`."""
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(allow_abbrev=False, formatter_class=formatter, **settings)

    def error(self, message: str) -> NoReturn:
        """Print a mistake that argparse found, and end the process with status 2."""
        exit_with_mistake(f"{message}; `{self.prog} --help` describes what it takes")


def join_values(arguments: Sequence[str], parser: Parser) -> list[str]:
    """Return a command line in which ``=`` joins options to values that begin with a hyphen.

    arguments: the command line after the program's name.  The words after ``--`` are not changed.
    parser: the parser of the command, whose options are never values.
    Returns for example ``["--docker-option=--cpus=1"]`` for ``["--docker-option", "--cpus=1"]``, in
    which argparse would mistake ``--cpus=1`` for an option of the parser.
    Only options that take exactly one value are joined.
    """
    # argparse has no public mapping of names to options.
    options = parser._option_string_actions
    arguments_before_hyphens = [*arguments]
    other_arguments: list[str] = []
    if "--" in arguments:
        end = arguments.index("--")
        arguments_before_hyphens = [*arguments[:end]]
        other_arguments = [*arguments[end:]]
    joined_arguments: list[str] = []
    for argument in arguments_before_hyphens:
        preceding_option = options.get(joined_arguments[-1]) if joined_arguments else None
        # The `nargs` of an option that takes exactly one value is None.
        takes_value = preceding_option is not None and preceding_option.nargs is None
        if takes_value and argument.startswith("-") and argument not in options:
            joined_arguments[-1] += f"={argument}"
        else:
            joined_arguments.append(argument)
    return joined_arguments + other_arguments


def exit_with_mistake(message: str) -> NoReturn:
    """Print a mistake in the command line, and end the process with status 2."""
    progress.print_message(f"strata: {message}")
    sys.exit(2)


def _parse_path_argument(text: str) -> str:
    """Return a path as it was typed.

    Raises ArgumentTypeError for an empty string, which an unset variable of the shell gives.
    argparse calls this function as the `type` of an argument, and reports the error.
    """
    if not text:
        raise argparse.ArgumentTypeError("is empty; name a folder")
    return text


def add_output_folder(
    parser: Parser, default: str, name: str = "out", content: str = "output"
) -> None:
    """Add the option for the folder that a command writes into.

    parser: the parser of the command.
    default: the folder if the option is not given.
    name: the name of the parameter of the function that runs the command.
    content: a noun for the files that the command writes, for the help text.
    """
    text = f"folder for {content} (default: {default})"
    parser.add_argument(
        "--to", dest=name, type=_parse_path_argument, metavar="FOLDER", default=default, help=text
    )


def add_overrides(parser: Parser) -> None:
    """Add --configfile and --config, which replace values of config.yaml.

    They have the names and form of Snakemake's options.  strata/command_line.py combines both into
    the parameter `overrides` of the function that runs the command.
    """
    text = "values to use instead of those in config.yaml (default: none)"
    # Without "extend" argparse would drop the values of the first of two equal options.
    settings: dict[str, Any] = {"nargs": "+", "action": "extend", "default": []}
    parser.add_argument("--configfile", metavar="FILE", help=f"YAML files with {text}", **settings)
    parser.add_argument("--config", metavar="KEY=VALUE", help=text, **settings)


def add_plan_options(parser: Parser) -> None:
    """Add the options of the command `plan`.

    Each option's `dest` must be a parameter of the function that runs the command.
    """
    add_overrides(parser)
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
    parser.add_argument("--width", metavar="PERCENTAGE", help=text)


def add_claim_options(parser: Parser) -> None:
    """Add the options of the command `claim`.

    Each option's `dest` must be a parameter of the function that runs the command.
    """
    text = "the ID of a published claim, or a file with one of your own (docs/claims.md)"
    parser.add_argument("claim", metavar="FILE|ID", help=text)
    budget = "10min"
    text = f"largest time of measurement (default: {budget})"
    parser.add_argument("--budget", metavar="TIME", default=budget, help=text)
    text = "measure the ratio to this half-width, as 1.5%% (default: what decides the claim)"
    parser.add_argument("--width", metavar="PERCENTAGE", help=text)
    text = "measure all again (default: use what was measured for this claim, or in this project)"
    parser.add_argument("--fresh", action="store_true", help=text)
    text = "say what the test takes, and measure nothing"
    parser.add_argument("--dry-run", dest="dry", action="store_true", help=text)
    add_overrides(parser)


def add_image_options(parser: Parser) -> None:
    """Add the options of the command `image`.

    Each option's `dest` must be a parameter of the function that runs the command.
    """
    add_overrides(parser)
    text = (
        "use the plan in results/ and build for these environments; without names, only write "
        "results/image.json, for the rule `image` of Snakemake (default: use config.yaml)"
    )
    parser.add_argument("--planned", nargs="*", metavar="ENVIRONMENT", help=text)
    text = "build nothing, and list the packages that the image holds"
    parser.add_argument("--packages", action="store_true", help=text)


def add_archive_options(parser: Parser) -> None:
    """Add the options of the command `archive`.

    Each option's `dest` must be a parameter of the function that runs the command.
    """
    image = "include the image (default: only its hashes)"
    text = "the file to write (default: archive.zip, or light.zip)"
    parser.add_argument("--out", metavar="FILE", help=text)
    parser.add_argument("--image", dest="with_image", action="store_true", help=image)
    text = "accept this text, or this FILE:LINE, although it looks private (default: none)"
    parser.add_argument("--allow", dest="allowed", action="append", metavar="TEXT", help=text)
    text = "the version of Snakemake that made the results (default: the one installed here)"
    parser.add_argument("--snakemake", metavar="VERSION", help=text)
    text = "leave out the source, whose commit is named, and the list of the image's files"
    parser.add_argument("--without-source", action="store_true", help=text)
    text = "write only a few kilobytes: ratios, sessions, scale, layers and the digest of all logs"
    parser.add_argument("--light", dest="is_light", action="store_true", help=text)


def add_archive_argument(parser: Parser) -> None:
    """Add the argument that names an archive."""
    text = "the file, or the folder of an unpacked archive"
    parser.add_argument("path", metavar="ARCHIVE", help=text)


def add_verify_options(parser: Parser) -> None:
    """Add the options of the command `verify`.

    Each option's `dest` must be a parameter of the function that runs the command.
    """
    text = "also make the papers again and compare them"
    parser.add_argument("--paper", dest="papers", action="store_true", help=text)
    add_archive_argument(parser)


def add_rebuild_options(parser: Parser) -> None:
    """Add the options of the command `rebuild`.

    Each option's `dest` must be a parameter of the function that runs the command.
    """
    text = "folder for output (default: the archive's name with -rebuilt)"
    parser.add_argument(
        "--to", dest="target", type=_parse_path_argument, metavar="FOLDER", help=text
    )
    text = "run the archive's code in a sandbox (default: yes where bubblewrap is installed)"
    parser.add_argument("--sandbox", dest="boxed", choices=["yes", "no"], help=text)
    add_archive_argument(parser)


def add_compare_options(parser: Parser) -> None:
    """Add the options of the command `compare`.

    Each option's `dest` must be a parameter of the function that runs the command.
    """
    text = "an archive, a project, a folder of results, or a folder of three or more of these"
    parser.add_argument("sides", nargs="+", metavar="SIDE", help=text)
    text = "names of the sides, in their order (default: of the files)"
    parser.add_argument("--names", nargs="+", metavar="NAME", help=text)
    text = "smallest difference that matters, such as 5%% (default: the paper's)"
    parser.add_argument("--effect", metavar="PERCENTAGE", help=text)
    add_output_folder(parser, "comparison")


def add_pool_options(parser: Parser) -> None:
    """Add the options of the command `pool`.

    Each option's `dest` must be a parameter of the function that runs the command.
    """
    text = "a light archive, a whole one, a project, or a folder of results"
    parser.add_argument("archives", nargs="+", metavar="ARCHIVE", help=text)
    add_output_folder(parser, "pool")


def add_gate_options(parser: Parser) -> None:
    """Add the options of the command `gate`.

    Each option's `dest` must be a parameter of the function that runs the command.
    """
    add_overrides(parser)
    parser.add_argument("file", metavar="FILE", help="the budgets, such as gate.yaml")
    add_output_folder(parser, "gate", content="reports and sessions")


def add_reproduce_options(parser: Parser) -> None:
    """Add the options of the command `reproduce`.

    Each option's `dest` must be a parameter of the function that runs the command.
    """
    text = "an archive, a project, or a folder of results"
    parser.add_argument("archive", metavar="ARCHIVE", help=text)
    budget = "10min"
    text = (
        f"largest time of measurement after five blocks, earlier calls included (default: {budget})"
    )
    parser.add_argument("--budget", metavar="TIME", default=budget, help=text)
    text = "the change of a ratio that must not be overlooked (default: 5%%)"
    parser.add_argument("--effect", metavar="PERCENTAGE", default="5%", help=text)
    text = "name of the folder, which is reproduce/NAME (default: the archive's)"
    parser.add_argument("--name", metavar="NAME", help=text)
    text = "run commands, programs and options that the archive names (default: refuse them)"
    parser.add_argument("--trust", action="store_true", help=text)
    text = "measure all again (default: the same command goes on)"
    parser.add_argument("--fresh", action="store_true", help=text)
    text = "say what differs and what would be measured, and measure nothing"
    parser.add_argument("--dry-run", dest="dry", action="store_true", help=text)
    text = "also write the answer to a file, as JSON; - is standard output"
    parser.add_argument("--json", dest="json_file", metavar="FILE", help=text)


def add_clean_options(parser: Parser) -> None:
    """Add the options of the command `clean`.

    Each option's `dest` must be a parameter of the function that runs the command.
    """
    text = "also empty the cache: every image, its base and its disks"
    parser.add_argument("--images", action="store_true", help=text)


def add_try_options(parser: Parser) -> None:
    """Add the options of the command `try`.

    Each option's `dest` must be a parameter of the function that runs the command.
    """
    text = (
        "environments of the configuration, with commas between (default: native, docker, gVisor)"
    )
    parser.add_argument("--in", dest="names", metavar="NAME,NAME", help=text)
    repeatable: dict[str, Any] = {"action": "append", "default": []}
    text = "a file or folder to put where the command runs (repeatable)"
    parser.add_argument("--file", dest="files", metavar="FILE", help=text, **repeatable)
    text = "packages of the distribution that the image shall hold"
    parser.add_argument("--packages", nargs="+", metavar="PACKAGE", help=text, **repeatable)
    text = "measure what the command prints, too: a regular expression with one group (repeatable)"
    syntax = "NAME[:UNIT[:lower]]=REGEX"
    parser.add_argument("--metric", dest="metrics", metavar=syntax, help=text, **repeatable)
    text = "a Docker image of your own, in which the command runs (default: the project's)"
    parser.add_argument("--image", metavar="REF", help=text)
    text = "an option for Docker's containers, such as --cpus=0.5 (repeatable)"
    parser.add_argument(
        "--docker-option", dest="docker_options", metavar="OPT", help=text, **repeatable
    )
    text = "the smallest difference that matters (default: 2%%)"
    parser.add_argument("--margin", metavar="PERCENTAGE", default="2%", help=text)
    text = "the most time of measurement, such as 20min (default: 3min)"
    parser.add_argument("--budget", metavar="TIME", default="3min", help=text)
    text = "name of the experiment, which lies in try/NAME (default: the command's)"
    parser.add_argument("--name", metavar="NAME", help=text)
    text = "start the experiment again (default: the same command adds blocks)"
    parser.add_argument("--fresh", action="store_true", help=text)
    formats = {"json": "JSON", "csv": "CSV", "html": "a page"}
    for name, description in formats.items():
        text = f"also write the answer to a file, as {description}; - is standard output"
        parser.add_argument(f"--{name}", dest=f"{name}_file", metavar="FILE", help=text)
    text = "the command and its arguments, after two hyphens"
    parser.add_argument("argv", nargs="*", metavar="-- COMMAND", help=text)


def add_reanalysis_options(parser: Parser) -> None:
    """Add the options of the command `reanalyse`.

    Each option's `dest` must be a parameter of the function that runs the command.
    """
    text = "a checkout or a git directory of the published raw results"
    parser.add_argument("folder", metavar="FOLDER", help=text)
    add_output_folder(parser, "results/reanalysis", "to")
    text = "also make the paper of it (default: only tables)"
    parser.add_argument("--paper", metavar="FILE", help=text)


def add_block_arguments(parser: Parser) -> None:
    """Add the arguments that name a block: workload and repetition."""
    parser.add_argument("workload", metavar="WORKLOAD")
    parser.add_argument("repetition", type=int, metavar="REPETITION", help="its number, from 1")
    add_overrides(parser)


def add_cell_arguments(parser: Parser) -> None:
    """Add the arguments that name a cell, for the help text only.

    strata/__main__.py reads these arguments itself.
    """
    parser.add_argument("cell", nargs=3, metavar=("ENVIRONMENT", "WORKLOAD", "REPETITION"))


def add_round_argument(parser: Parser) -> None:
    """Add the argument that names the round after which `decide` decides."""
    parser.add_argument("round_number", type=int, metavar="ROUND", help="its number")


def add_table_options(parser: Parser) -> None:
    """Add the options of the commands `tidy` and `tables`.

    Each option's `dest` must be a parameter of both functions that run the commands.
    """
    text = "take the cells that exist (default: all must)"
    parser.add_argument("--partial", action="store_true", help=text)
    add_output_folder(parser, "results", "to")


def add_paper_argument(parser: Parser) -> None:
    """Add the argument that names the paper to write."""
    parser.add_argument("out", metavar="FILE", help="a PDF or web page, by its ending")

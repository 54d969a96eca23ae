"""The command line of ``strata``: find the command, read its options, and run it."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from strata import __version__
from strata.commands import COMMANDS
from strata.experiment import config
from strata.options import PROGRAM, Parser, exit_with_mistake, join_values
from strata.util import progress, validation
from strata.util.errors import UserError

ABOUT = """Measure what containers and virtual machines cost against bare Linux.

`snakemake --cores 1 paper/report.pdf` measures and writes the paper.  These commands
plan, check, archive and compare; each ends with 0 if all is well, unless it says otherwise."""


def build_parser() -> tuple[Parser, dict[str, Parser]]:
    """Return the parser of all command lines, and the parser of each command by its name.

    The options of a command must have the names of its function's parameters.
    """
    parser = Parser(prog=PROGRAM, description=ABOUT)
    parser.add_argument("--version", action="version", version=f"Strata {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    by_name: dict[str, Parser] = {}
    for name, command in COMMANDS.items():
        about = command.about
        # argparse lists only commands with a help text.
        settings: dict[str, Any] = {}
        if command.rule:
            about += f"\nThe rule `{command.rule}` of Snakemake calls it."
        else:
            settings["help"] = about.partition("\n")[0]
        example = f"example: {PROGRAM} {name} {command.example}".rstrip()
        by_name[name] = subparsers.add_parser(name, description=about, epilog=example, **settings)
        command.add_options(by_name[name])
    unlisted = ", ".join(name for name, command in COMMANDS.items() if command.rule)
    parser.epilog = (
        f"Rules of Snakemake call {unlisted}.\n"
        f"`{PROGRAM} COMMAND --help` describes a command.  Example: {PROGRAM} plan --show"
    )
    return parser, by_name


# The endings of files that Snakemake makes, and that people type after `strata` by mistake.
MADE_ENDINGS = (".pdf", ".html", ".csv", ".log")


def explain_misplaced_word(word: str, command: str, actions: Sequence[argparse.Action]) -> str:
    """Return a message that a command does not accept a word, with what to type instead.

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
    if word.endswith(MADE_ENDINGS):
        return f"`{typed}` makes no files; `snakemake --cores 1 {word}` makes this one"
    return f"`{typed}` does not take {word!r}; `{typed} --help` describes what it takes"


def check_first_word(arguments: Sequence[str]) -> None:
    """End the process with a hint and status 2 if the first word is not a command.

    Help and version options are accepted, too.
    arguments: the command line after the program's name; not empty.
    """
    first = arguments[0]
    if first in COMMANDS or first in ("-h", "--help", "--version"):
        return
    if first.startswith("-"):
        typed = " ".join(arguments)
        exit_with_mistake(f"the command comes first, as in `{PROGRAM} plan {typed}`")
    if first.endswith(MADE_ENDINGS):
        hint = f"`snakemake --cores 1 {first}` makes this file"
        exit_with_mistake(f"{first} is not a command; {hint}")
    exit_with_mistake(f"{first!r} is not a command; {validation.suggest_name(first, [*COMMANDS])}")


def read_options(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the values of a command's options, by the names of its function's parameters.

    arguments: the command line after the program's name; it begins with a command.
    The values of --configfile and --config are `configfile` and `config`, lists of texts.
    Prints a mistake in the command line, and raises SystemExit with status 2 for it.
    """
    for word in arguments:
        try:
            word.encode()
        except UnicodeEncodeError:
            # Records, tables and pages are UTF-8.
            exit_with_mistake(f"{word!a} is not UTF-8: use names and words of UTF-8 alone")
    parser, by_name = build_parser()
    own_parser = by_name[arguments[0]]
    known, misplaced = parser.parse_known_args(join_values(list(arguments), own_parser))
    options = vars(known)
    if "config" in options:
        # Each of these options takes all words up to the next option, even wrong ones.
        files, values = options["configfile"], options["config"]
        misplaced += [word for word in files if "=" in word and not os.path.exists(word)]
        misplaced += [word for word in values if "=" not in word and word.endswith(MADE_ENDINGS)]
    if misplaced:
        # argparse has no public list of a parser's options.
        actions = own_parser._actions
        exit_with_mistake(explain_misplaced_word(misplaced[0], arguments[0], actions))
    return options


def main(arguments: list[str]) -> int:
    """Run a command, and return its exit status.

    arguments: the command line after the program's name.  If it is empty, the help is printed and
    the status is 2.
    If the command has its own `error_status`, this is returned after a mistake in the command line
    and after a UserError or OSError of the command.  Otherwise a mistake is printed and raises
    SystemExit with status 2, and the command's errors are raised.
    """
    if not arguments:
        build_parser()[0].print_help(sys.stderr)
        return 2
    check_first_word(arguments)
    if arguments[0] not in COMMANDS:
        # This prints the help or the version, and ends.
        build_parser()[0].parse_args(arguments)
    command = COMMANDS[arguments[0]]
    try:
        options = read_options(arguments)
    except SystemExit as end:
        if end.code == 2 and command.error_status is not None:
            return command.error_status
        raise
    takes_overrides = "config" in options
    if takes_overrides:
        files, values = options.pop("configfile"), options.pop("config")
    function = command.function
    if isinstance(function, str):
        module, _, attribute = function.partition(":")
        function = getattr(importlib.import_module(module), attribute)
    try:
        if takes_overrides:
            options["overrides"] = config.read_overrides(files, values)
        return function(**options) or 0
    except (UserError, OSError) as error:
        if command.error_status is None:
            raise
        progress.print_error(error)
        return command.error_status

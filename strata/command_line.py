"""Read the command line of ``strata``: find the command, read its options, and run it."""

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
    """Return the parser of all command lines, and ``{command: parser}`` of the commands.

    The options of a command have the names of the parameters of the function that runs it
    (strata/options.py).
    """
    parser = Parser(prog=PROGRAM, description=ABOUT)
    parser.add_argument("--version", action="version", version=f"Strata {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    command_parsers: dict[str, Parser] = {}
    for name, command in COMMANDS.items():
        about = command.about
        # argparse lists only commands with the argument `help`.
        settings: dict[str, Any] = {}
        if command.rule:
            about += f"\nThe rule `{command.rule}` of Snakemake calls it."
        else:
            settings["help"] = about.partition("\n")[0]
        example = f"example: {PROGRAM} {name} {command.example}".rstrip()
        command_parsers[name] = subparsers.add_parser(
            name, description=about, epilog=example, **settings
        )
        command.add_options(command_parsers[name])
    rule_commands = ", ".join(name for name, command in COMMANDS.items() if command.rule)
    parser.epilog = (
        f"Rules of Snakemake call {rule_commands}.\n"
        f"`{PROGRAM} COMMAND --help` describes a command.  Example: {PROGRAM} plan --show"
    )
    return parser, command_parsers


# The endings of files that Snakemake makes, and that people type after `strata` by mistake.
OUTPUT_SUFFIXES = (".pdf", ".html", ".csv", ".log")


def explain_misplaced_word(word: str, command: str, actions: Sequence[argparse.Action]) -> str:
    """Return a message that a command does not accept a word, with the words to type instead.

    word: an argument that the command's parser did not accept.
    command: the name of the command.
    actions: the options and arguments that the command's parser accepts.
    Returns for example "`strata plan` has no option --shwo; did you mean --show?".
    """
    command_line = f"{PROGRAM} {command}"
    if command == "try":
        return (
            f"`{command_line}` has no option {word}; two hyphens precede the command, as in "
            f"`{command_line} -- ls -l`"
        )
    options = [option for action in actions for option in action.option_strings]
    if word.startswith("-"):
        name = word.partition("=")[0]
        key = name.lstrip("-")
        if "--config" in options and key in validation.load_schema("config").schema["properties"]:
            return f"{key} is a key of config.yaml: type `{command_line} --config {key}=VALUE`"
        return f"`{command_line}` has no option {name}; {validation.suggest_name(name, options)}"
    if "=" in word and "--config" in options:
        return f"{word} must follow --config: type `{command_line} --config {word}`"
    if word.endswith(OUTPUT_SUFFIXES):
        return f"`{command_line}` makes no files; `snakemake --cores 1 {word}` makes this one"
    return (
        f"`{command_line}` does not take {word!r}; `{command_line} --help` describes what it takes"
    )


def check_first_word(arguments: Sequence[str]) -> None:
    """End the process with a hint and status 2 if the first word is not a command.

    arguments: the command line after the program's name; not empty.
    The options for help and version are accepted, too.
    """
    first = arguments[0]
    if first in COMMANDS or first in ("-h", "--help", "--version"):
        return
    if first.startswith("-"):
        typed = " ".join(arguments)
        exit_with_mistake(f"the command comes first, as in `{PROGRAM} plan {typed}`")
    if first.endswith(OUTPUT_SUFFIXES):
        hint = f"`snakemake --cores 1 {first}` makes this file"
        exit_with_mistake(f"{first} is not a command; {hint}")
    exit_with_mistake(f"{first!r} is not a command; {validation.suggest_name(first, [*COMMANDS])}")


def read_options(arguments: Sequence[str]) -> dict[str, Any]:
    """Return ``{parameter: value}`` of a command's options, or end the process after a mistake.

    arguments: the command line after the program's name; it begins with a command.
    The parameters are those of the function that runs the command.  Instead of `overrides` the
    result has `configfile` and `config`, the lists of words after --configfile and --config.
    For a mistake in the command line a message is printed, and SystemExit has the status 2.
    """
    for word in arguments:
        try:
            word.encode()
        except UnicodeEncodeError:
            # Records, tables and pages are UTF-8.
            exit_with_mistake(f"{word!a} is not UTF-8: use names and words of UTF-8 alone")
    parser, command_parsers = build_parser()
    command_parser = command_parsers[arguments[0]]
    namespace, misplaced_words = parser.parse_known_args(join_values(arguments, command_parser))
    options = vars(namespace)
    if "config" in options:
        # Each of these options takes all words up to the next option, even wrong ones.
        for word in options["configfile"]:
            if "=" in word and not os.path.exists(word):
                misplaced_words.append(word)
        for word in options["config"]:
            if "=" not in word and word.endswith(OUTPUT_SUFFIXES):
                misplaced_words.append(word)
    if misplaced_words:
        # argparse has no public list of a parser's options.
        actions = command_parser._actions
        exit_with_mistake(explain_misplaced_word(misplaced_words[0], arguments[0], actions))
    return options


def main(arguments: list[str]) -> int:
    """Run a command, and return its exit status.

    arguments: the command line after the program's name.  If it is empty, the help is printed and
    the status is 2.
    Raises SystemExit with status 2 after a mistake in the command line, which is printed, and the
    UserError or OSError of the command.  If the command has an `error_status`, this is returned in
    both cases instead.
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

"""Refuse a target that no rule makes, with the likely right one, which Snakemake does not name."""

import difflib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from strata.results import outputs
from strata.util.errors import UserError

ALL_TARGETS = "`snakemake --list-target-rules` lists what can be made"
CELL = "a cell is results/raw/ENVIRONMENT/WORKLOAD/REPETITION.log, with a repetition from 1"


def check_targets(
    arguments: Sequence[str], rules: Iterable[Any], check_cell: Callable[[str, str, str], object]
) -> None:
    """Raise UserError with a line for each target that no rule makes.

    arguments: the command line of Snakemake after the program's name.
    rules: all rules of the workflow, as objects of Snakemake.
    check_cell: a function that raises UserError unless the given environment, workload and
    repetition (digits) are a planned cell.
    The Snakefile calls it before Snakemake looks for the targets.
    """
    for argument in arguments:
        if cell := re.fullmatch(r"results/raw/([^/]+)/([^/]+)/([1-9][0-9]*)\.log", argument):
            check_cell(*cell.groups())
    rules = [*rules]
    target_names = _list_target_names(rules)

    def is_made(name: str) -> bool:
        """Return whether a rule has this name, or makes this file; captures names and rules."""
        return name in target_names or any(rule.is_producer(name) for rule in rules)

    has_config = any(
        argument == "--config" or argument.startswith(("--config=", "-C")) for argument in arguments
    )
    # The parser of Snakemake is not needed if each argument is a target or can be part of an
    # option.
    if all(_may_belong_to_option(name, has_config) or is_made(name) for name in arguments):
        return
    # Only Snakemake's own parser can distinguish targets from values of options.  It is imported
    # and created only now, since that takes a third of a second.
    from snakemake.cli import get_argument_parser

    targets = get_argument_parser().parse_args(arguments).targets
    wrong_targets = [target for target in targets if not is_made(target)]
    if wrong_targets:
        raise UserError(
            *(
                f"no rule makes {target}; {suggest_target(target, target_names, rules)}"
                for target in wrong_targets
            )
        )


def _list_target_names(rules: Sequence[Any]) -> list[str]:
    """Return the names of rules and files that can be targets.

    rules: all rules of the workflow.
    Rules with wildcards are no targets, and files with wildcards ("{") have no fixed name.
    """
    rule_names = [rule.name for rule in rules if not rule.has_wildcards()]
    files = [str(path) for rule in rules for path in rule.output]
    fixed_files = [path for path in files if "{" not in path]
    return [*rule_names, *outputs.PAPERS, *fixed_files]


def _may_belong_to_option(argument: str, has_config: bool) -> bool:
    """Return whether an argument of Snakemake is an option, or may be the value of one.

    argument: a word of the command line.
    has_config: whether the command line has the option --config, whose values are KEY=VALUE.
    An existing file may be the value of an option such as --configfile.
    """
    is_config_value = has_config and "=" in argument
    return argument.startswith("-") or os.path.isfile(argument) or is_config_value


def suggest_target(target: str, names: Sequence[str], rules: Iterable[Any]) -> str:
    """Suggest a target, option or command instead of a target that no rule makes.

    target: the target as the user typed it.
    names: the names of rules and files that can be targets.
    rules: all rules of the workflow.
    Returns the end of a message, such as "did you mean paper/report.pdf?".
    """
    # Imported only here, since most command lines are right and do not need the commands.
    from strata.commands import COMMANDS
    from strata.options import NAME

    if target == "cell" or target.startswith("results/raw/"):
        return CELL
    if "=" in target:
        return f"values follow --config: `snakemake --cores 1 --config {target} -- TARGET`"
    rule_files = [str(path) for rule in rules if rule.name == target for path in rule.output]
    files_in_folder = [name for name in names if name.startswith(f"{target.rstrip('/')}/")]
    # Papers and tables first, and files in few folders before files in many.
    files_in_folder.sort(key=lambda name: (not name.endswith((".pdf", ".csv")), name.count("/")))
    if files_in_folder and (rule_files or os.path.isdir(target)):
        return f"name a file, such as {files_in_folder[0]}"
    if rule_files:
        return f"name a file that this rule makes: {rule_files[0]}"
    if target in COMMANDS:
        return f"it is a command: type `{NAME} {target}`"
    # A target that lacks only its folder or suffix comes before one with a similar spelling.
    similar_names = []
    for name in names:
        base_name = os.path.basename(name)
        stem, _ = os.path.splitext(base_name)
        if target in (base_name, stem):
            similar_names.append(name)
    similar_names += difflib.get_close_matches(target, names, n=1)
    return f"did you mean {similar_names[0]}?" if similar_names else ALL_TARGETS

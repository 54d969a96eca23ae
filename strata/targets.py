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

    The Snakefile calls it before Snakemake looks for the targets.
    arguments: the command line of Snakemake after the program's name.
    rules: all rules of the workflow.
    check_cell: a function that raises UserError unless the given environment, workload and
    repetition are a planned cell.
    """
    for word in arguments:
        if cell := re.fullmatch(r"results/raw/([^/]+)/([^/]+)/([1-9][0-9]*)\.log", word):
            check_cell(*cell.groups())
    rules = [*rules]
    files = [str(name) for rule in rules for name in rule.output]
    names = [rule.name for rule in rules if not rule.has_wildcards()]
    names += [*outputs.PAPERS, *(name for name in files if "{" not in name)]

    def is_made(word: str) -> bool:
        """Return whether a rule has this name, or makes this file."""
        return word in names or any(rule.is_producer(word) for rule in rules)

    has_values = any(
        word == "--config" or word.startswith(("--config=", "-C")) for word in arguments
    )

    def is_known(word: str) -> bool:
        """Return whether a word is an option, perhaps the value of one, or a target of a rule.

        An existing file may be the value of an option such as --configfile.
        """
        is_value = word.startswith("-") or os.path.isfile(word) or ("=" in word and has_values)
        return is_value or is_made(word)

    if all(map(is_known, arguments)):
        return
    # Only Snakemake's own parser can distinguish targets from values of options.  It is created
    # only now, since that takes a third of a second.
    from snakemake.cli import get_argument_parser

    targets = get_argument_parser().parse_args(arguments).targets
    unknown = [target for target in targets if not is_made(target)]
    if unknown:
        raise UserError(
            *(
                f"no rule makes {target}; {suggest_target(target, names, rules)}"
                for target in unknown
            )
        )


def suggest_target(target: str, names: Sequence[str], rules: Iterable[Any]) -> str:
    """Return what to type instead of a target that no rule makes, as the end of a message.

    target: the unknown target.
    names: the rules and files that can be targets.
    rules: all rules of the workflow.
    """
    from strata.commands import COMMANDS
    from strata.options import NAME

    if target == "cell" or target.startswith("results/raw/"):
        return CELL
    if "=" in target:
        return f"values follow --config: `snakemake --cores 1 --config {target} -- TARGET`"
    rule_files = [str(name) for rule in rules if rule.name == target for name in rule.output]
    inside = [name for name in names if name.startswith(f"{target.rstrip('/')}/")]
    # Papers and tables first, and files in few folders before files in many.
    inside.sort(key=lambda name: (not name.endswith((".pdf", ".csv")), name.count("/")))
    if inside and (rule_files or os.path.isdir(target)):
        return f"name a file, such as {inside[0]}"
    if rule_files:
        return f"name a file that this rule makes: {rule_files[0]}"
    if target in COMMANDS:
        return f"it is a command: type `{NAME} {target}`"
    similar = []
    for name in names:
        base = os.path.basename(name)
        if target in (base, os.path.splitext(base)[0]):
            similar.append(name)
    similar += difflib.get_close_matches(target, names, n=1)
    return f"did you mean {similar[0]}?" if similar else ALL_TARGETS

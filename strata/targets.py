"""Refuse a target that no rule makes, and say which was probably meant: Snakemake does not."""

import difflib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from strata.results import outputs
from strata.util.errors import UserError

ALL_TARGETS = "`snakemake --list-target-rules` lists what can be made"
CELL = "a cell is results/raw/ENVIRONMENT/WORKLOAD/REPETITION.log, with a repetition from 1"


def require_known(
    arguments: Sequence[str], rules: Iterable[Any], require_cell: Callable[[str, str, str], object]
) -> None:
    """Raise UserError with a line for each target that no rule makes.

    arguments: the command line of Snakemake after the program's name.
    rules: all rules of the workflow.
    require_cell: a function that raises UserError unless the given environment, workload and
    repetition are a planned cell.
    """
    for word in arguments:
        if cell := re.fullmatch(r"results/raw/([^/]+)/([^/]+)/([1-9][0-9]*)\.log", word):
            require_cell(*cell.groups())
    rules = [*rules]
    files = [str(name) for rule in rules for name in rule.output]
    names = [rule.name for rule in rules if not rule.has_wildcards()]
    names += [*outputs.PAPERS, *(name for name in files if "{" not in name)]

    def is_made(word: str) -> bool:
        return word in names or any(rule.is_producer(word) for rule in rules)

    has_values = any(
        word.startswith(("--config=", "-C")) or word == "--config" for word in arguments
    )

    def may_be_unknown(word: str) -> bool:
        is_value = word.startswith("-") or os.path.isfile(word) or ("=" in word and has_values)
        return not (is_value or is_made(word))

    if not any(map(may_be_unknown, arguments)):
        return
    # Which words are targets, and which are values of options, only Snakemake's own parser knows;
    # to make it takes a third of a second.
    from snakemake.cli import get_argument_parser

    targets = get_argument_parser().parse_args(arguments).targets
    unknown = [target for target in targets if not is_made(target)]
    if unknown:
        raise UserError(
            *(f"no rule makes {target}; {find_hint(target, names, rules)}" for target in unknown)
        )


def find_hint(target: str, names: Sequence[str], rules: Iterable[Any]) -> str:
    """Return what to type instead of a target that no rule makes.

    names: the rules and files that can be targets.
    rules: all rules of the workflow.
    """
    from strata.commands import COMMANDS
    from strata.options import NAME

    if target == "cell" or target.startswith("results/raw/"):
        return CELL
    if "=" in target:
        return f"values follow --config: `snakemake --cores 1 --config {target} -- TARGET`"
    patterns = [str(name) for rule in rules if rule.name == target for name in rule.output]
    inside = [name for name in names if name.startswith(f"{target.rstrip('/')}/")]
    inside.sort(key=lambda name: (not name.endswith((".pdf", ".csv")), name.count("/")))
    if inside and (patterns or os.path.isdir(target)):
        return f"name a file, such as {inside[0]}"
    if patterns:
        return f"name a file that this rule makes: {patterns[0]}"
    if target in COMMANDS:
        return f"it is a command: type `{NAME} {target}`"
    alike = [name for name in names if target in (os.path.basename(name), _stem(name))]
    alike += difflib.get_close_matches(target, names, n=1)
    return f"did you mean {alike[0]}?" if alike else ALL_TARGETS


def _stem(name: str) -> str:
    """Return the name of a file without its folder and ending."""
    return os.path.splitext(os.path.basename(name))[0]

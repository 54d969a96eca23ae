"""Placeholders in the commands of a workload's declaration, and their values.

Cells import only this module for declarations: importing the code that checks them would double the
cost of a cell.
"""

from strata.util.data_types import Any

# Placeholders whose values only a cell knows: its seed; the lap (0 before the first); the address
# at which the client reaches the system, and the system's own address where its servers listen;
# the number of the system (from 0) where several equal ones run at once; the ENTRYPOINT of an image
# of the user's own, which may be several words.
BUILT_IN = ("seed", "lap", "address", "listen", "part", "entrypoint")


def parse_placeholder(argument: str) -> str | None:
    """Return the name in a placeholder, ``threads`` for ``{threads}``; None for any other text.

    argument: one argument of a command.
    """
    return argument[1:-1] if argument.startswith("{") and argument.endswith("}") else None


def convert_to_list(value: Any) -> list[Any]:
    """Return the values of a parameter as a list; a single value, even None, becomes a list of one.

    A list is returned itself, not a copy.
    """
    return value if isinstance(value, list) else [value]

"""The words of declared commands, and the values that stand for them.

A cell needs no more of a declaration than this: it starts without what checks declarations, whose import
alone would double its cost.
"""

from strata.util.data_types import Any

# Words of commands that stand for what only a cell knows: its seed, its lap (0 before the first), where the client
# reaches the system, at which address of its own the system is reached there, and which of several equal systems it is
# (from 0).
BUILT_IN = ("seed", "lap", "address", "listen", "part")


def placeholder(word: str) -> str | None:
    """The parameter that stands for a word of a command: ``{threads}`` gives ``threads``."""
    return word[1:-1] if word.startswith("{") and word.endswith("}") else None


def several(value: Any) -> list[Any]:
    """The values of a parameter, which may be one or a list."""
    return value if isinstance(value, list) else [value]

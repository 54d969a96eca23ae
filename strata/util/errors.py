"""Errors that a user can cause or mend; they are shown as a message, never as a traceback."""

import re

# Spaces that do not break, which tables and messages of ours have.
_SPACES = "\t\u00a0\u202f"


def legible(text: str) -> str:
    """A message as a terminal may get it, whatever names of others are in it.

    What controls a terminal or turns the direction of writing is escaped; each further line begins
    with a bar, so that none passes for a message of its own.
    """
    if text.isprintable():
        return text
    shown = (
        one if one.isprintable() or one in _SPACES or one == "\n" else repr(one)[1:-1]
        for one in text
    )
    return re.sub(r"\n(?!  \| |\Z)", "\n  | ", "".join(shown))


class UserError(Exception):
    """Something a user can mend.

    Each text says, in a line, what is wrong, where, and what would be right.
    """

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)

    def __str__(self) -> str:
        """All of them, a line each."""
        return "\n".join(map(legible, self.args))


class MachineError(UserError):
    """The machine, or one of our own tools, failed, and nothing follows of what it was given: a full disk, a missing
    program.
    """


class CellFailed(UserError):
    """A cell that did not give a complete, checked log."""


class Unable(CellFailed):
    """What ran in a system ended by itself and said that it failed: a system that has not all calls may be the reason.

    No machine that went away and no log that is too long is one.
    """


class Endless(Unable):
    """What ran in a system came to no end in its time: alone this may as well be a fault of the machine."""

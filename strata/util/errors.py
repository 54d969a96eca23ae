"""Errors that a user can cause or mend: they end a command with a message, not with a traceback."""

import re

# Spaces that str.isprintable() refuses and our own tables and messages contain.
_SPACES = "\t\u00a0\u202f"


def escape_controls(text: str) -> str:
    """Escape what a terminal would obey in a message, which may quote other people's names.

    Control characters and changes of the writing direction become escape sequences.  Each line
    after the first begins with a bar, so that a quoted text cannot pass for a message of ours.
    """
    if text.isprintable():
        return text
    characters = []
    for character in text:
        is_plain = character.isprintable() or character in _SPACES or character == "\n"
        characters.append(character if is_plain else repr(character)[1:-1])
    return re.sub(r"\n(?!  \| |\Z)", "\n  | ", "".join(characters))


class UserError(Exception):
    """A mistake that a user can mend.

    Each argument is a line that says what is wrong, in which file and key, and what to do.
    """

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)

    def __str__(self) -> str:
        """Return all lines, safe to print."""
        return "\n".join(map(escape_controls, self.args))


class MachineError(UserError):
    """The machine or a tool of ours failed: a full disk, a missing program.

    It says nothing about the input: an archive or a log is not refused for it.
    """


class CellFailed(UserError):
    """A cell gave no complete log that its parser accepts."""


class CommandFailed(CellFailed):
    """A command in a system under test ended by itself and reported a failure.

    In an environment that lacks some system calls, such as gVisor, this is a result.  It is not
    raised where the virtual machine died, a time limit was hit, or the log grew too long.
    """


class CommandTimedOut(CommandFailed):
    """A command in a system under test hit its time limit.

    One timeout does not prove that the environment cannot run the workload: machines may be slow.
    """

"""Errors that a user can cause or mend: they end a command with a message, not with a traceback."""

import re

# Spaces that str.isprintable() refuses and our own tables and messages contain.
_SPACES = "\t\u00a0\u202f"


def escape_control_characters(text: str) -> str:
    """Escape the characters of a message by which quoted foreign text could control a terminal.

    Control characters and changes of the writing direction become escape sequences.  Each line
    after the first begins with a bar, so that quoted text cannot pass for a message of Strata.
    A text that was escaped before is returned unchanged: errors and messages both call this.
    """
    if text.isprintable():
        return text
    characters = []
    for character in text:
        is_plain = character.isprintable() or character in _SPACES or character == "\n"
        characters.append(character if is_plain else repr(character)[1:-1])
    return re.sub(r"\n(?!  \| |\Z)", "\n  | ", "".join(characters))


class UserError(Exception):
    """An error that the user can correct.

    Each argument is a line that says what is wrong, in which file and key, and what to do.
    """

    def __init__(self, *lines: str) -> None:
        """Keep the lines of the message, not yet escaped, as the attribute `args`."""
        super().__init__(*lines)

    def __str__(self) -> str:
        """Return all lines, with the control characters escaped."""
        return "\n".join(map(escape_control_characters, self.args))


class MachineError(UserError):
    """A failure of the machine or of a tool that Strata runs: a full disk, a missing program.

    This error says nothing about the input: callers must not refuse an archive or a log for it.
    """


class CellFailed(UserError):
    """A cell did not produce a complete log that its parser accepts."""


class CommandFailed(CellFailed):
    """A command in a system under test ended by itself with a failure.

    In an environment that lacks some system calls, such as gVisor, this is a result.  This error is
    not raised if the virtual machine died, a time limit was exceeded, or the log grew too long.
    """


class CommandTimedOut(CommandFailed):
    """A command in a system under test exceeded its time limit.

    One timeout does not prove that the environment cannot run the workload: machines may be slow.
    """

"""Errors that a user can cause or mend; they are shown as a message, never as a traceback."""


class UserError(Exception):
    """Something a user can mend.  The text says what is wrong, where, and what would be right."""


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

"""Errors that a user can cause or mend; they are shown as a message, never as a traceback."""


class UserError(Exception):
    """Something a user can mend.  The text says what is wrong, where, and what would be right."""


class CellFailed(UserError):
    """A cell that did not give a complete, checked log."""

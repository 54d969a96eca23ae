"""The run that this process belongs to."""

import os

from strata.base.process import identity

OWNER = "STRATA_OWNER"


def owner() -> dict:
    """The process to whose end a system lives: the workflow that STRATA_OWNER names, else this one."""
    named = os.environ.get(OWNER, "")
    process = identity(int(named)) if named.isdigit() else None
    return process if process and process["start"] else identity(os.getpid())

"""Where Strata keeps things, inside a project and on the machine."""

import os
from hashlib import sha256

from strata.util.errors import UserError

PLAN = "results/plan.json"
# Every cell of the plan so far, in the order of measurement.
CELLS = "results/plan.csv"
IMAGE = "results/image.json"
MANIFEST = "results/image-manifest.json"
# What was found of the machine before the order was known.
MACHINE = "results/machine.json"
# The way to the client's machine, which the plan does not name.
CLIENT = "results/tmp/client.json"
RUN_LOCK = "results/tmp/run.lock"
# The folder of the project that this code is part of.
PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def cell_path(kind: str, environment: str, workload: str, repetition: int, suffix: str) -> str:
    """Path of a cell's file below the project; `kind` is raw, pending, failed, tmp or logs/cells."""
    return f"results/{kind}/{environment}/{workload}/{repetition}.{suffix}"


def home() -> str:
    """The machine's folder for images and systems: outside of any checkout, shared by all of them.

    ``STRATA_HOME`` names another one.  Root's lies where every service user may traverse.
    Raises UserError where the name is no absolute path, or leads to or through a file.
    """
    named = os.environ.get("STRATA_HOME")
    if named and not os.path.isabs(named):
        raise UserError(
            f"STRATA_HOME: {named} is no absolute path, which the folder of images must have: "
            f"write {os.path.abspath(named)}, or a folder outside of the project"
        )
    own = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    usual = os.path.join("/var/cache" if os.geteuid() == 0 else own, "strata")
    folder = existing = os.path.realpath(named or usual)
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        raise UserError(
            f"{'STRATA_HOME' if named else folder}: {existing} is a file, and must be a folder: "
            "set STRATA_HOME to a folder that you may write to, with 15 GB of free disk"
        )
    return folder


def systems() -> str:
    """Where each system under test that is up has its folder."""
    return os.path.join(home(), "systems")


def unfinished(name: str) -> str:
    """Where something for the cache is made, or taken apart: a folder there is removed by whoever comes next."""
    return os.path.join(home(), "images", f"building-{name}")


def home_mark() -> str:
    """A mark for what belongs to this home, which no other on the machine has: nothing else is ever removed."""
    return sha256(os.fsencode(home())).hexdigest()[:16]


def prefix() -> str:
    """With it begin the names of this home on the machine, or in Docker: other homes have others."""
    return f"strata-{home_mark()[:8]}"

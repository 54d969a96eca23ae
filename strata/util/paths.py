"""Paths of files and folders, in a project and on the machine."""

import os
from hashlib import sha256

from strata.util.errors import UserError

PLAN = "results/plan.json"
# Every cell that is planned so far, in the order of measurement.
CELLS = "results/plan.csv"
IMAGE = "results/image.json"
MANIFEST = "results/image-manifest.json"
# Whether KVM runs a guest here; the order of measurement depends on it.
MACHINE = "results/machine.json"
# How to reach the client's machine, which the plan does not name.
CLIENT = "results/tmp/client.json"
RUN_LOCK = "results/tmp/run.lock"
# The remedy, for messages, if Strata's home folder cannot be used.
OTHER_HOME = "set STRATA_HOME to a folder that you may write to, with 15 GB of free disk"
# The folder of this code's project.
PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def get_cell_path(kind: str, environment: str, workload: str, repetition: int, suffix: str) -> str:
    """Return the path of a cell's file, relative to the project.

    kind: the folder below results/: raw, pending, parsed, failed, tmp or logs/cells.
    suffix: the file's extension, without the dot.
    The rules in rules/measure.smk and the scripts in analysis/ spell the same paths.
    """
    return f"results/{kind}/{environment}/{workload}/{repetition}.{suffix}"


def get_home_folder() -> str:
    """Return the path of Strata's home folder, in which all checkouts keep images and systems.

    STRATA_HOME names the folder; without that variable, it is /var/cache/strata for root (which
    every service user may enter) and ``strata`` in the user's cache folder for others.
    The path is absolute and without symbolic links; the folder need not exist.
    Raises UserError if STRATA_HOME is not an absolute path, or the path leads to or through a file.
    """
    configured = os.environ.get("STRATA_HOME")
    if configured and not os.path.isabs(configured):
        raise UserError(
            f"STRATA_HOME: {configured} is not an absolute path, as the folder of images needs: "
            f"write {os.path.abspath(configured)}, or a folder outside of the project"
        )
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.geteuid() == 0:
        cache = "/var/cache"
    folder = os.path.realpath(configured or os.path.join(cache, "strata"))
    existing = find_nearest_existing_path(folder)
    if not os.path.isdir(existing):
        subject = "STRATA_HOME" if configured else folder
        raise UserError(f"{subject}: {existing} is a file, and must be a folder: {OTHER_HOME}")
    return folder


def find_nearest_existing_path(path: str) -> str:
    """Return an absolute path if it exists, and otherwise its nearest parent folder that does."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path


def get_systems_folder() -> str:
    """Return the path of the folder that holds one folder for each system under test.

    Each has the system's ID as its name.
    """
    return os.path.join(get_home_folder(), "systems")


def get_unfinished_folder(name: str) -> str:
    """Return the path of the temporary folder in which an entry of the image cache is built.

    An entry that is removed is moved to such a folder first.
    name: the entry's name, made of its recipe hash; "" gives the prefix of all such paths.
    :mod:`strata.image.build` removes every path with this prefix that a killed process left.
    """
    return os.path.join(get_home_folder(), "images", f"building-{name}")


def compute_home_mark() -> str:
    """Return 16 hexadecimal digits of the hash of the home folder's path.

    This mark is in the labels and names of all containers, images, namespaces and processes that
    belong to the home folder.  The derivation must stay: clean-up removes only what has this mark,
    so two home folders on one machine do not interfere.
    """
    return sha256(os.fsencode(get_home_folder())).hexdigest()[:16]


def get_name_prefix() -> str:
    """Return the prefix of the names of all networks, machines and images of this home folder.

    The prefix must stay: clean-up finds leftovers by it.
    """
    return f"strata-{compute_home_mark()[:8]}"

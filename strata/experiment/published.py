"""The published raw results of the original paper: whether a folder holds them, and when they change."""

import hashlib
import os
import subprocess

from strata.base.errors import UserError

# A folder that holds some of these with results below them is taken for the published results.
FOLDERS = ("RandomAccess", "Stream", "linpack", "fio", "mysql", "netperf", "nuttcp", "redis")


def complaint(path: str) -> str | None:
    """Why a path does not name the published raw results; None where it does."""
    try:
        names = set(os.listdir(path))
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}; name a checkout or a git directory of the published results"
    if names & set(FOLDERS) or set(_git(path, "ls-tree", "--name-only", "--full-tree", "HEAD").split("\n")) & set(
        FOLDERS
    ):
        return None
    return f"{path} holds none of the published results (expected are folders such as Stream, linpack, redis)"


def state(path: str) -> str:
    """A hash of the commit, and of names, sizes and times of the files, none of which is opened."""
    found = hashlib.sha256(_git(path, "rev-parse", "HEAD").encode())
    for folder in FOLDERS:
        for where, folders, files in os.walk(os.path.join(path, folder)):
            folders.sort()
            for name in sorted(files):
                about = os.lstat(os.path.join(where, name))
                found.update(f"{where}/{name} {about.st_size} {about.st_mtime_ns}\n".encode(errors="surrogateescape"))
    return found.hexdigest()


def named(settings: dict) -> str:
    """The folder that the settings name.  Raises UserError where they name none."""
    if settings["published_raw"] is None:
        raise UserError(
            "paper/reanalysis.pdf needs the published raw results of the original paper: add"
            " --config published_raw=DIR, a checkout or git directory of them (docs/reanalysis.md)"
        )
    return settings["published_raw"]


def _git(path: str, *arguments: str) -> str:
    """What git says of the repository at a path itself; nothing where it is none, or there is no git."""
    inner = os.path.join(path, ".git")
    place = inner if os.path.exists(inner) else path
    safe = ("-c", f"safe.directory={os.path.realpath(path)}", "-c", "core.fsmonitor=false")
    try:
        done = subprocess.run(
            ["git", f"--git-dir={place}", *safe, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""

"""The published raw results of the original paper: whether a folder holds them, what it holds, and when it changes."""

import hashlib
import os
import re
import subprocess

from strata.util import programs
from strata.util.data_types import Fields
from strata.util.errors import UserError

# A folder that holds some of these with results below them is taken for the published results.
FOLDERS = ("RandomAccess", "Stream", "linpack", "fio", "mysql", "netperf", "nuttcp", "redis")


def complaint(path: str) -> str | None:
    """Why a path does not name the published raw results; None where it does."""
    try:
        names = set(os.listdir(path))
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}; name a checkout or a git directory of the published results"
    if (
        names | set(_told(path, "ls-tree", "--name-only", "--full-tree", "HEAD").split("\n"))
    ) & set(FOLDERS):
        return None
    return f"{path} holds none of the published results (expected are folders such as Stream, linpack, redis)"


def state(path: str) -> str:
    """A hash of the commit and of the files' names, sizes and times; opens no file."""
    found = hashlib.sha256(revision(path).encode())
    for folder in FOLDERS:
        for where, folders, files in os.walk(os.path.join(path, folder)):
            folders.sort()
            for name in sorted(files):
                about = os.lstat(os.path.join(where, name))
                found.update(
                    f"{where}/{name} {about.st_size} {about.st_mtime_ns}\n".encode(
                        errors="surrogateescape"
                    )
                )
    return found.hexdigest()


def named(settings: Fields) -> str:
    """The folder that the settings name.  Raises UserError where they name none, or one without published results."""
    if settings["published_raw"] is None:
        raise UserError(
            "paper/reanalysis.pdf needs the published raw results of the original paper: add"
            " --config published_raw=DIR, a checkout or git directory of them (docs/reanalysis.md)"
        )
    check(settings)
    return str(settings["published_raw"])


def check(settings: Fields) -> None:
    """Raise UserError if the settings name a folder that does not hold the published results."""
    path = settings["published_raw"]
    if path is not None and (wrong := complaint(path)):
        raise UserError(f"{settings['source']('published_raw')}: published_raw: {wrong}")


def revision(path: str) -> str:
    """The commit that HEAD points to; empty if the folder is not a repository."""
    return _told(path, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").strip()


class Files:
    """The files of a checkout, of a git directory's HEAD, or of a folder; links are not followed."""

    def __init__(self, path: str) -> None:
        """List them.  names: paths below the results' own folders, in order."""
        self._path = os.path.realpath(path)
        self._lying = any(os.path.isdir(os.path.join(path, folder)) for folder in FOLDERS)
        if self._lying:
            walked = (
                one for folder in FOLDERS for one in os.walk(os.path.join(self._path, folder))
            )
            found = [
                os.path.relpath(os.path.join(where, file), self._path)
                for where, _, files in walked
                for file in files
            ]
        else:
            found = _told(
                path,
                "-c",
                "core.quotePath=false",
                "ls-tree",
                "-r",
                "--name-only",
                "--full-tree",
                "HEAD",
            ).split("\n")
        self.names = sorted(found)

    def read(self, file: str) -> bytes | None:
        """The content of a file (of an older revision for ``at-REVISION/FILE``); None if it does not exist."""
        whole = os.path.join(self._path, file)
        if os.path.isfile(whole) and os.path.realpath(whole) == whole:
            with open(whole, "rb") as content:
                return content.read()
        earlier, _, name = (
            file.removeprefix("at-").partition("/")
            if file.startswith("at-")
            else ("HEAD", "", file)
        )
        if self._lying if earlier == "HEAD" else not re.fullmatch("[0-9a-f]{7,64}", earlier):
            return None
        return _git(self._path, "cat-file", "blob", f"{earlier}:{name}")


def _told(path: str, *arguments: str) -> str:
    return (_git(path, *arguments) or b"").decode(errors="replace")


def _git(path: str, *arguments: str) -> bytes | None:
    """Output of git for the repository at exactly this path; None if there is none, git fails or is not installed."""
    inner = os.path.join(path, ".git")
    place = inner if os.path.exists(inner) else path
    try:
        with programs.for_git(path) as start:
            done = subprocess.run(
                ["git", f"--git-dir={place}", *arguments], capture_output=True, check=False, **start
            )
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None

"""Find and read the published raw results in a checkout or git directory, and hash their state."""

import hashlib
import os
import re
import subprocess

from strata.util import programs
from strata.util.data_types import Fields
from strata.util.errors import UserError

# Folders of the published results, each with results below it.
FOLDERS = ("RandomAccess", "Stream", "linpack", "fio", "mysql", "netperf", "nuttcp", "redis")


def explain_unusable_folder(path: str) -> str | None:
    """Return why a path does not hold the published raw results, for a message; None if it does.

    path: a checkout or a git directory, or a folder of their files.
    """
    try:
        names = set(os.listdir(path))
    except OSError as error:
        return (
            f"{path} cannot be read: {error.strerror}; name a checkout or a git directory of the "
            "published results"
        )
    names.update(_read_git_text(path, "ls-tree", "--name-only", "--full-tree", "HEAD").split("\n"))
    if names & set(FOLDERS):
        return None
    return (
        f"{path} holds none of the published results (expected are folders such as Stream, "
        "linpack, redis)"
    )


def hash_published_files(path: str) -> str:
    """Return a SHA-256 of the commit and of the files' names, sizes and modification times.

    path: the folder of the published results.
    Snakemake makes the reanalysis again if the hash changes.  For a git directory, the hash covers
    only the commit.  No file is opened, since some hold private keys.
    """
    digest = hashlib.sha256(read_commit_id(path).encode())
    for file_path in sorted(_list_published_files(path)):
        status = os.lstat(file_path)
        line = f"{file_path} {status.st_size} {status.st_mtime_ns}\n"
        digest.update(line.encode(errors="surrogateescape"))
    return digest.hexdigest()


def _list_published_files(path: str) -> list[str]:
    """Return the paths of all files in the folders `FOLDERS` below a path.

    The paths begin with the given path.
    """
    file_paths = []
    for folder in FOLDERS:
        for parent, _, names in os.walk(os.path.join(path, folder)):
            file_paths += [os.path.join(parent, name) for name in names]
    return file_paths


def get_required_folder(settings: Fields) -> str:
    """Return the folder of the published results, which the key `published_raw` names.

    settings: the configuration, with `published_raw` (a path or None) and `source`, which returns
    the file or option that set a key.
    Raises UserError if the settings name no folder, or a folder without published results.
    """
    if settings["published_raw"] is None:
        raise UserError(
            "paper/reanalysis.pdf needs the published raw results of the original paper: add"
            " --config published_raw=DIR, a checkout or git directory of them (docs/reanalysis.md)"
        )
    check_published_folder(settings)
    return str(settings["published_raw"])


def check_published_folder(settings: Fields) -> None:
    """Raise UserError if the settings name a folder that does not hold the published results.

    settings: as :func:`get_required_folder` takes them.  Settings that name no folder pass.
    """
    path = settings["published_raw"]
    if path is not None and (refusal := explain_unusable_folder(path)):
        raise UserError(f"{settings['source']('published_raw')}: published_raw: {refusal}")


def read_commit_id(path: str) -> str:
    """Return the ID of the commit that HEAD names; empty if the folder is not a repository."""
    return _read_git_text(path, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").strip()


class PublishedFiles:
    """The published files in a folder, or in the commit HEAD of a git directory.

    names: relative paths of the files below `FOLDERS`, or of all in the commit, sorted: the order
    of redis' and MySQL's runs, and so the numbers of repetitions, follow from it.
    Symbolic links are not followed.
    """

    def __init__(self, path: str) -> None:
        """List the files in a folder or, if none of `FOLDERS` is in it, those that git lists.

        path: a folder with a checkout or the files, or a git directory.
        """
        self._path = os.path.realpath(path)
        self._is_checkout = any(os.path.isdir(os.path.join(path, folder)) for folder in FOLDERS)
        if self._is_checkout:
            names = [
                os.path.relpath(file, self._path) for file in _list_published_files(self._path)
            ]
        else:
            command = ("ls-tree", "-r", "--name-only", "--full-tree", "HEAD")
            names = _read_git_text(path, "-c", "core.quotePath=false", *command).split("\n")
        self.names = sorted(names)

    def read_file(self, name: str) -> bytes | None:
        """Return the bytes of a file; None if there is no such file.

        name: a path as in `names`, or ``at-REVISION/PATH`` for the file of another commit.  A
        folder without a repository may hold that file at this path.
        """
        path = os.path.join(self._path, name)
        # A link, or a file behind one, has another real path.
        if os.path.isfile(path) and os.path.realpath(path) == path:
            with open(path, "rb") as file:
                return file.read()
        if match := re.fullmatch("at-([0-9a-f]{7,64})/(.+)", name):
            return _run_git(self._path, "cat-file", "blob", f"{match[1]}:{match[2]}")
        if self._is_checkout or name.startswith("at-"):
            return None
        return _run_git(self._path, "cat-file", "blob", f"HEAD:{name}")


def _read_git_text(path: str, *arguments: str) -> str:
    """Run git on the repository at a path, and return the text that it prints; empty if it fails.

    Bytes that are not UTF-8 are replaced.
    """
    return (_run_git(path, *arguments) or b"").decode(errors="replace")


def _run_git(path: str, *arguments: str) -> bytes | None:
    """Run git on the repository at exactly this path, and return what it prints.

    path: a checkout or a git directory; repositories of folders above it do not count.
    Returns None if there is no repository, or if git fails or is not installed.
    """
    inner = os.path.join(path, ".git")
    repository = inner if os.path.exists(inner) else path
    command = ["git", f"--git-dir={repository}", *arguments]
    try:
        with programs.create_git_environment(path) as options:
            result = subprocess.run(command, capture_output=True, check=False, **options)
    except FileNotFoundError:
        return None
    return result.stdout if result.returncode == 0 else None

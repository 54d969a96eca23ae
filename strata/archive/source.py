"""The project's own files, as they go into an archive: those that git knows, or those of the folder."""

import hashlib
import os
import re
import subprocess
from dataclasses import dataclass, field

from strata.base.digest import of_file

# What is made, or belongs to tools, where no git says so.
_MADE = {
    ".git",
    ".snakemake",
    ".venv",
    "__pycache__",
    ".pytest_cache",
    ".ruff_cache",
    ".mypy_cache",
    ".hypothesis",
}
_MADE_HERE = re.compile(
    r"(?:results|comparison|history|[^/]*-rebuilt)/|paper/(?:report|reanalysis)\.(?:pdf|html)$|[^/]*\.zip$"
)
# Names of files that hold keys or passwords wherever they lie.
KEY_FILES = re.compile(
    r"(?:^|/)(?:\.env(?:\.[^/]*)?|\.netrc|\.pypirc|\.npmrc|\.git-credentials|credentials(?:\.[^/]*)?"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)[^/]*|insecure_private_key|private_key|[^/]*\.(?:pem|key|p12|pfx|ppk|kdbx))$"
    r"|(?:^|/)\.(?:ssh|gnupg|aws|docker|kube)/"
)
_LARGE = 10_000_000
# An archive of another run, which an archive does not hold: else each one of the gallery would hold all before it.
GALLERY = "docs/figures/gallery/archive.zip.xz"


@dataclass
class Source:
    """Names of the files, relative to the project; its commit; what differs from it; what was left out and why.

    `revision` is None where there is no git; `changed` lists files that differ from it or are new.  `apart` are those
    of the source's files of which an archive has the name and the hash alone.
    """

    files: list[str] = field(default_factory=list)
    revision: str | None = None
    changed: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    apart: list[str] = field(default_factory=list)


def _git(project: str, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", project, *words], capture_output=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.decode(errors="surrogateescape") if done.returncode == 0 else None


def _names(text: str | None) -> list[str]:
    return [name for name in (text or "").split("\0") if name]


def _walked(project: str) -> list[str]:
    found = []
    for where, folders, names in os.walk(project):
        folders[:] = [name for name in folders if name not in _MADE]
        below = os.path.relpath(where, project)
        found += [name if below == "." else f"{below}/{name}" for name in names + _links(where, folders)]
    return [name for name in found if not _MADE_HERE.match(name)]


def _links(where: str, folders: list[str]) -> list[str]:
    """Names of links to folders, which are not entered."""
    return [name for name in folders if os.path.islink(os.path.join(where, name))]


def listing(project: str) -> Source:
    """The files of a project's source.

    With git: those that it tracks and those that it does not ignore, as they are now.  Left out are files that
    hold keys by their name, links that lead out of the project, and large files that git does not track.
    """
    tracked = _names(_git(project, "ls-files", "-z"))
    found = Source()
    if "Snakefile" in tracked:
        found.revision = (_git(project, "rev-parse", "HEAD") or "").strip() or None
        new = _names(_git(project, "ls-files", "-z", "--others", "--exclude-standard"))
        differ = _names(_git(project, "diff", "-z", "--name-only", "--relative", "HEAD", "--", "."))
        names = set(tracked) | set(new)
        found.changed = sorted({*differ, *new})
    else:
        tracked, names = [], set(_walked(project))
    for name in sorted(names):
        reason = _unfit(project, name, name in tracked)
        if reason is None:
            (found.apart if name == GALLERY else found.files).append(name)
        elif reason:
            found.left_out[name] = reason
    found.changed = [name for name in found.changed if name not in found.left_out]
    return found


def state(project: str) -> str:
    """What changes when a file of the source does."""
    found = hashlib.sha256()
    listed = listing(project)
    for name in [*listed.files, *listed.apart]:
        found.update(f"{name} {of_file(os.path.join(project, name))}\n".encode(errors="replace"))
    return found.hexdigest()


def _unfit(project: str, name: str, tracked: bool) -> str | None:
    """Why a file is left out; None where it is not, "" where it is gone."""
    path = os.path.join(project, name)
    if KEY_FILES.search(name):
        return "by its name it holds a key or a password"
    if os.path.islink(path):
        target, root = os.path.realpath(path), os.path.realpath(project)
        if not target.startswith(root + os.sep) or not os.path.isfile(target):
            return "it is a link to something that is no file of the project"
    elif not os.path.lexists(path):
        return ""
    elif not os.path.isfile(path):
        return "it is no regular file"
    if not tracked and os.path.getsize(path) > _LARGE:
        return f"it is larger than {_LARGE // 1_000_000} MB, and git does not track it"
    return None

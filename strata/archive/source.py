"""The project's own files, as they go into an archive: those that git tracks, or those of the archive it came from."""

import hashlib
import os
import re
import subprocess
from dataclasses import dataclass, field

from strata.archive import sums
from strata.base.digest import of_file
from strata.base.errors import UserError

# Names of files that hold keys or passwords wherever they lie.
KEY_FILES = re.compile(
    r"(?:^|/)(?:\.env(?:\.[^/]*)?|\.netrc|\.pypirc|\.npmrc|\.git-credentials|credentials(?:\.[^/]*)?"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)[^/]*|insecure_private_key|private_key|[^/]*\.(?:pem|key|p12|pfx|ppk|kdbx))$"
    r"|(?:^|/)\.(?:ssh|gnupg|aws|docker|kube)/"
)


@dataclass
class Source:
    """Names of the files, relative to the project; its commit; what differs from it; what was left out and why.

    `revision` is None where git has no commit; `changed` lists files that differ from it; `untracked` those that git
    neither tracks nor ignores.
    """

    files: list[str] = field(default_factory=list)
    revision: str | None = None
    changed: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    untracked: list[str] = field(default_factory=list)


def _git(project: str, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", project, *words], capture_output=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.decode(errors="surrogateescape") if done.returncode == 0 else None


def _names(text: str | None) -> list[str]:
    return [name for name in (text or "").split("\0") if name]


def _archived(project: str) -> list[str]:
    """The source's files by the list of the archive that was unpacked, or rebuilt here."""
    for place in (project, os.path.dirname(os.path.abspath(project))):
        names = [name.removeprefix("source/") for name in sums.read(place)[0] if name.startswith("source/")]
        if names:
            return names
    return []


def listing(project: str) -> Source:
    """The files of a project's source, as they are now: those that git tracks, or those that its archive listed.

    Left out are files that hold keys by their name, and links that lead out of the project.  Raises UserError where
    neither git nor an archive tells which files are the project's.
    """
    names = _names(_git(project, "ls-files", "-z"))
    found = Source()
    if "Snakefile" in names:
        found.revision = (_git(project, "rev-parse", "--verify", "--quiet", "HEAD") or "").strip() or None
        found.untracked = sorted(_names(_git(project, "ls-files", "-z", "--others", "--exclude-standard")))
        found.changed = sorted(_names(_git(project, "diff", "-z", "--name-only", "--relative", "HEAD", "--", ".")))
    else:
        names = _archived(project)
    if "Snakefile" not in names:
        raise UserError(
            "neither git nor an archive says which files are the project's: in a clone git does; "
            "elsewhere `git init && git add .` tells it"
        )
    for name in sorted(set(names)):
        reason = _unfit(project, name)
        if reason is None:
            found.files.append(name)
        elif reason:
            found.left_out[name] = reason
    found.changed = [name for name in found.changed if name not in found.left_out]
    return found


def state(project: str) -> str:
    """What changes when a file of the source does."""
    found = hashlib.sha256()
    for name in listing(project).files:
        found.update(f"{name} {of_file(os.path.join(project, name))}\n".encode(errors="replace"))
    return found.hexdigest()


def _unfit(project: str, name: str) -> str | None:
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
    return None

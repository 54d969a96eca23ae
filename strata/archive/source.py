"""The project's own files, as they go into an archive: those that git tracks, under the names that git gives them.

The id that git gives the tree of a folder is its SWHID too, by which Software Heritage knows it; where nothing differs
from a commit it is that commit's.
"""

import hashlib
import os
import re
import tempfile
from dataclasses import dataclass, field
from typing import NamedTuple

from strata.archive.sums import of_file
from strata.base.errors import UserError
from strata.base.process import capture

# What a user or a machine sets for git changes nothing.
_ALONE = ["-u", "GIT_INDEX_FILE", "-u", "GIT_OBJECT_DIRECTORY", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"]


@dataclass
class Source:
    """Names of the files, relative to the project; its commit; what differs from it.

    `revision` is None where git has no commit; `changed` lists files that differ from it; `untracked` those that git
    neither tracks nor ignores.
    """

    files: list[str] = field(default_factory=list)
    revision: str | None = None
    changed: list[str] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)


class Tree(NamedTuple):
    """The id that git gives a tree, and of each file in it, by its path, mode and id."""

    id: str
    files: dict[str, tuple[str, str]]

    @property
    def swhid(self) -> str:
        """The name by which Software Heritage knows the tree."""
        return f"swh:1:dir:{self.id}"


def _git(project: str, *words: str) -> str | None:
    try:
        done = capture(["git", "-C", project, *words], check=False)
    except UserError:
        return None
    return done.stdout if done.returncode == 0 else None


def _names(text: str | None) -> list[str]:
    return [name for name in (text or "").split("\0") if name]


def listing(project: str) -> Source:
    """The files of a project's source that git tracks, as they are now.

    Raises UserError where git does not say which files are the project's, or one of them is no regular file.
    """
    names = _names(_git(project, "ls-files", "-z"))
    if "Snakefile" not in names:
        raise UserError("git does not say which files are the project's: `git init && git add .` tells it")
    found = Source(revision=(_git(project, "rev-parse", "--verify", "--quiet", "HEAD") or "").strip() or None)
    for name in sorted(set(names)):
        path = os.path.join(project, name)
        if os.path.islink(path) or os.path.isdir(path):
            raise UserError(f"{name}: git tracks it, but it is a link or a folder; the source of an archive is files")
        if os.path.exists(path):
            found.files.append(name)
    found.untracked = sorted(_names(_git(project, "ls-files", "-z", "--others", "--exclude-standard")))
    found.changed = sorted(_names(_git(project, "diff", "-z", "--name-only", "--relative", "HEAD", "--", ".")))
    return found


def state(project: str) -> str:
    """What changes when a file of the source does."""
    found = hashlib.sha256()
    for name in listing(project).files:
        found.update(f"{name} {of_file(os.path.join(project, name))}\n".encode(errors="replace"))
    return found.hexdigest()


def tree(folder: str) -> Tree:
    """The tree of all files in a folder, as bytes.  Raises UserError where there is no git."""
    with tempfile.TemporaryDirectory(prefix="strata-tree-") as room:
        git = ["env", "-C", folder, *_ALONE, "git", f"--git-dir={room}", f"--work-tree={os.path.abspath(folder)}"]
        capture([*git, "init", "--quiet", "--object-format=sha1"])
        os.makedirs(os.path.join(room, "info"), exist_ok=True)
        with open(os.path.join(room, "info/attributes"), "w") as file:
            # Over any .gitattributes of the folder: bytes count as they are.
            file.write("* -text -filter -ident -working-tree-encoding\n")
        capture([*git, "-c", "core.looseCompression=0", "add", "--all", "--force", "."])
        files = capture([*git, "ls-files", "--stage", "-z"]).stdout
        return _tree(capture([*git, "write-tree"]).stdout, files, 1)


def committed(project: str, revision: str | None) -> Tree | None:
    """The tree of a commit of a project's repository; None where it has no such commit."""
    if revision is None or not re.fullmatch(r"[0-9a-f]{40,64}", revision):
        return None
    found = _git(project, "rev-parse", "--verify", "--quiet", f"{revision}^{{tree}}")
    if found is None:
        return None
    return _tree(found, _git(project, "ls-tree", "-r", "-z", "--full-tree", found.strip()) or "", 2)


def _tree(name: str, entries: str, place: int) -> Tree:
    """What git lists as MODE … ID … TAB PATH, the id being the word at a place."""
    rows = [entry.partition("\t") for entry in _names(entries)]
    return Tree(name.strip(), {path: (words.split()[0], words.split()[place]) for words, _, path in rows})


def blob(path: str) -> str:
    """The id that git gives a file's bytes."""
    with open(path, "rb") as file:
        content = file.read()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

"""The project's own files, as they go into an archive: those that git tracks, under the names that git gives them.

The id that git gives the tree of a folder is its SWHID too, by which Software Heritage knows it; where nothing differs
from a commit it is that commit's.
"""

import hashlib
import os
import pathlib
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from strata.archive.checksums import of_file
from strata.util import programs
from strata.util.errors import UserError

# A comparison by bytes and names, whatever the repository's own settings.
_PLAIN = ("--relative", "--no-renames", "--no-ext-diff", "--no-textconv")


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
    done = programs.git(project, *words)
    return done.stdout if done.returncode == 0 else None


def _names(text: str | None) -> list[str]:
    return [name for name in (text or "").split("\0") if name]


def listing(project: str) -> Source:
    """The files of a project's source that git tracks, as they are now.

    Raises UserError where git does not say which files are the project's, or one of them is no regular file.
    """
    names = _names(_git(project, "ls-files", "-z"))
    if "Snakefile" not in names:
        raise UserError(f"which files are the project's is not known: {_unknown(project)}")
    found = Source(
        revision=(_git(project, "rev-parse", "--verify", "--quiet", "HEAD") or "").strip() or None
    )
    for name in sorted(set(names)):
        path = os.path.join(project, name)
        if os.path.islink(path) or os.path.isdir(path):
            raise UserError(
                f"{name}: git tracks it, but it is a link or a folder; the source of an archive is files"
            )
        if os.path.exists(path):
            found.files.append(name)
    found.untracked = sorted(
        _names(_git(project, "ls-files", "-z", "--others", "--exclude-standard"))
    )
    found.changed = sorted(
        _names(_git(project, "diff", "-z", "--name-only", *_PLAIN, "HEAD", "--", "."))
    )
    return found


def state(project: str) -> str:
    """What changes when a file of the source does."""
    found = hashlib.sha256()
    for name in listing(project).files:
        found.update(f"{name} {of_file(os.path.join(project, name))}\n".encode(errors="replace"))
    return found.hexdigest()


def tree(folder: str) -> Tree:
    """The tree of all files in a folder, as bytes.  Raises UserError where there is no git."""
    with programs.scratch("tree") as room:
        where = (f"--git-dir={room}", f"--work-tree={os.path.abspath(folder)}")

        def git(*words: str) -> str:
            return programs.git(folder, *where, *words, check=True).stdout

        git("init", "--quiet", "--object-format=sha1")
        os.makedirs(os.path.join(room, "info"), exist_ok=True)
        with open(os.path.join(room, "info/attributes"), "w", encoding="utf-8") as file:
            # Over any .gitattributes of the folder: bytes count as they are.
            file.write("* -text -filter -ident -working-tree-encoding\n")
        git("-c", "core.looseCompression=0", "add", "--all", "--force", ".")
        files = git("ls-files", "--stage", "-z")
        return _tree(git("write-tree"), files, 1)


def committed(project: str, revision: str | None) -> Tree | None:
    """The tree of a commit of a project's repository; None where it has no such commit."""
    if revision is None or not re.fullmatch(r"[0-9a-f]{40,64}", revision):
        return None
    found = _git(project, "rev-parse", "--verify", "--quiet", f"{revision}^{{tree}}")
    if found is None:
        return None
    return _tree(found, _git(project, "ls-tree", "-r", "-z", "--full-tree", found.strip()) or "", 2)


def _unknown(project: str) -> str:
    """Why git does not track a project's files, and what would help."""
    if not _is_in_repository(project):
        return "this folder is in no git repository; `git init && git add .` makes one of it"
    if why := refusal(project):
        return f"git says: {why}"
    return "the git repository that this folder lies in does not track them; `git add` them there, or move the folder"


def _is_in_repository(project: str) -> bool:
    """Whether a folder, or one above it, has a repository, which git may refuse to read."""
    above = pathlib.Path(os.path.realpath(project))
    return any(os.path.lexists(folder / ".git") for folder in (above, *above.parents))


def refusal(project: str) -> str | None:
    """Why git says nothing of a project's repository, in its own words; None where it does."""
    done = programs.git(project, "rev-parse", "--git-dir")
    return None if done.returncode == 0 else done.stderr.strip()


def lacking(project: str, revision: str | None) -> str:
    """Why :func:`committed` knows no such commit, and what would help: a sentence without its full stop."""
    if revision is None:
        return "No commit is named"
    if not _is_in_repository(project):
        return f"Commit {revision} is not at hand, since this folder is no clone of the project"
    if why := refusal(project):
        return f"Commit {revision} is looked for in this project's repository, and git says: {why}"
    shallow = (_git(project, "rev-parse", "--is-shallow-repository") or "").strip() == "true"
    more = ", which has not its whole history: `git fetch --unshallow` brings it" if shallow else ""
    return f"This repository has no commit {revision}{more}"


def _tree(name: str, entries: str, place: int) -> Tree:
    """What git lists as MODE … ID … TAB PATH, the id being the word at a place."""
    rows = [entry.partition("\t") for entry in _names(entries)]
    return Tree(
        name.strip(), {path: (words.split()[0], words.split()[place]) for words, _, path in rows}
    )


def blob(path: str) -> str:
    """The id that git gives a file's bytes."""
    with open(path, "rb") as file:
        content = file.read()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

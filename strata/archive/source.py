"""List the source that an archive holds: the files that git tracks, and the id of their tree.

Git's id of a folder's tree is the folder's SWHID, its name at Software Heritage.  Where no
file differs from a commit it is the id of the commit's tree.
"""

import hashlib
import os
import pathlib
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from strata.archive.checksums import hash_file
from strata.util import programs
from strata.util.errors import UserError

# Options that make git compare bytes and names, whatever the repository's own settings.
_COMPARE_BYTES = ("--relative", "--no-renames", "--no-ext-diff", "--no-textconv")


@dataclass
class Source:
    """The files of a project's source, and how they differ from its commit.

    files: paths of the tracked files that exist, relative to the project.
    root: path of the project's folder, relative to the working directory.
    own: paths of the files that an experiment beside the project has instead of the project's.
    revision: ID of the commit that is checked out; None if there is no commit yet.
    changed: paths of tracked files that differ from the commit, or were added or deleted.
    untracked: paths of files that git neither tracks nor ignores, but those of other experiments.
    """

    files: list[str] = field(default_factory=list)
    revision: str | None = None
    changed: list[str] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)
    root: str = "."
    own: list[str] = field(default_factory=list)

    def locate_file(self, name: str) -> str:
        """Return the path of one of the files, relative to the working directory."""
        return name if name in self.own else os.path.normpath(os.path.join(self.root, name))


class Tree(NamedTuple):
    """A tree of files as git knows it.

    id: git's object ID of the tree.
    files: path → (mode, object ID) of each file; a mode is, for example, "100644".
    """

    id: str
    files: dict[str, tuple[str, str]]

    @property
    def swhid(self) -> str:
        """The tree's identifier as a directory in Software Heritage (SWHID)."""
        return f"swh:1:dir:{self.id}"


def read_project_source(project: str) -> Source:
    """Return the source of a project in its present state.

    project: the project's folder, or the folder of an experiment, whose Snakefile is a link to the
    project's.
    Raises UserError if git does not track the project's files, or tracks a link or a folder (a
    submodule).
    The source of an experiment is the project's, except for the experiment's config.yaml, which
    counts as changed.  Before the first commit no file counts as changed.
    """
    snakefile = os.path.join(project, "Snakefile")
    if os.path.islink(snakefile) and os.path.exists(snakefile):
        root = os.path.dirname(os.path.realpath(snakefile))
        source = read_project_source(root)
        source.root = root
        source.own = ["config.yaml"]
        source.changed = sorted({*source.changed, *source.own})
        untracked = {*_list_untracked(project)} - {".gitignore", *source.own}
        source.untracked = sorted({*source.untracked, *untracked})
        return source
    names = _list_git_names(project, "ls-files", "-z")
    if "Snakefile" not in names:
        raise UserError(
            f"which files are the project's is not known: {_explain_untracked(project)}"
        )
    revision = _run_git(project, "rev-parse", "--verify", "--quiet", "HEAD") or ""
    source = Source(revision=revision.strip() or None)
    for name in names:
        path = os.path.join(project, name)
        if os.path.islink(path) or os.path.isdir(path):
            raise UserError(
                f"{name}: git tracks it, but it is a link or a folder; an archive's source holds "
                "only regular files"
            )
        if os.path.exists(path):
            source.files.append(name)
    source.untracked = _list_untracked(project)
    # Before the first commit git fails, which gives an empty list.
    source.changed = _list_git_names(
        project, "diff", "-z", "--name-only", *_COMPARE_BYTES, "HEAD", "--", "."
    )
    return source


def _list_untracked(project: str) -> list[str]:
    """Return the project's files that git neither tracks nor ignores, without those of experiments.

    project: the project's folder, to which the paths are relative.
    Returns an empty list if git fails.
    """
    names = _list_git_names(project, "ls-files", "-z", "--others", "--exclude-standard")
    return [name for name in names if not _is_in_experiment(project, name)]


def _is_in_experiment(project: str, name: str) -> bool:
    """Return whether a file is in an experiment's folder within the project.

    project: the project's folder.
    name: the path of the file, relative to the project.
    The Snakefile of an experiment's folder is a symbolic link.
    """
    # The last parent is ".", the project's own folder.
    *folders, _ = pathlib.PurePath(name).parents
    return any(os.path.islink(os.path.join(project, folder, "Snakefile")) for folder in folders)


def hash_source(project: str) -> str:
    """Return a SHA-256 of the names and contents of a project's source files.

    Snakemake makes the archive again if the hash changes.
    Raises UserError if git does not track the project's files, or tracks a link or a folder.
    """
    digest = hashlib.sha256()
    source = read_project_source(project)
    for name in source.files:
        line = f"{name} {hash_file(os.path.join(project, source.locate_file(name)))}\n"
        digest.update(line.encode(errors="replace"))
    return digest.hexdigest()


def read_tree(folder: str) -> Tree:
    """Return the git tree of all files in a folder, hashed byte by byte.

    Archives name the tree by its SWHID.  Neither .gitignore nor .gitattributes has an effect.
    A temporary repository is used, and the folder is not changed.
    Raises MachineError if git is not installed or fails.
    """
    with programs.create_temporary_folder("tree") as repository:
        options = (f"--git-dir={repository}", f"--work-tree={os.path.abspath(folder)}")

        def run_git(*arguments: str) -> str:
            """Run git on the temporary repository, and return what it prints."""
            return programs.run_git(folder, *options, *arguments, check=True).stdout

        run_git("init", "--quiet", "--object-format=sha1")
        os.makedirs(os.path.join(repository, "info"), exist_ok=True)
        with open(os.path.join(repository, "info/attributes"), "w", encoding="utf-8") as file:
            # This overrides any .gitattributes of the folder, which could make git change bytes.
            file.write("* -text -filter -ident -working-tree-encoding\n")
        run_git("-c", "core.looseCompression=0", "add", "--all", "--force", ".")
        return _parse_git_listing(
            run_git("write-tree"), run_git("ls-files", "--stage", "-z"), id_column=1
        )


def read_commit(project: str, revision: str | None) -> Tree | None:
    """Return the git tree of a commit; None if the project's repository lacks the commit.

    revision: the full ID of the commit.  For None or any other text, None is returned.
    """
    if revision is None or not re.fullmatch(r"[0-9a-f]{40,64}", revision):
        return None
    tree_id = _run_git(project, "rev-parse", "--verify", "--quiet", f"{revision}^{{tree}}")
    if tree_id is None:
        return None
    listing = _run_git(project, "ls-tree", "-r", "-z", "--full-tree", tree_id.strip()) or ""
    return _parse_git_listing(tree_id, listing, id_column=2)


def _parse_git_listing(tree_id: str, listing: str, id_column: int) -> Tree:
    """Return the tree that git's listing of its files describes.

    tree_id: git's object ID of the tree, with or without the end of a line.
    listing: entries "MODE … ID …", a tab and the path, each ended by a NUL character.
    id_column: the column of a file's object ID, from 0: 1 in ``ls-files``, 2 in ``ls-tree``.
    """
    files = {}
    for entry in _split_entries(listing):
        description, _, path = entry.partition("\t")
        columns = description.split()
        files[path] = (columns[0], columns[id_column])
    return Tree(tree_id.strip(), files)


def hash_blob(path: str) -> str:
    """Return the object ID (SHA-1 of a blob) that git gives the content of a file.

    Trees of :func:`read_tree` and :func:`read_commit` hold such IDs.
    """
    with open(path, "rb") as file:
        content = file.read()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def explain_missing_commit(project: str, revision: str | None) -> str:
    """Return why a project's repository lacks a commit and, if one is known, the remedy.

    revision: the commit's ID; None if no commit is named.
    The sentence has no full stop, since callers continue it.
    """
    if revision is None:
        return "No commit is named"
    if not _is_in_repository(project):
        return f"Commit {revision} is not at hand, since this folder is not a clone of the project"
    if reason := _read_refusal(project):
        return (
            f"Commit {revision} is looked for in this project's repository, and git says: {reason}"
        )
    sentence = f"This repository has no commit {revision}"
    is_shallow = _run_git(project, "rev-parse", "--is-shallow-repository") or ""
    if is_shallow.strip() == "true":
        sentence += ", which has not its whole history: `git fetch --unshallow` brings it"
    return sentence


def _explain_untracked(project: str) -> str:
    """Return why git does not track a project's files, and the remedy, for the end of a message."""
    if not _is_in_repository(project):
        return "this folder is in no git repository; `git init && git add .` makes one of it"
    if reason := _read_refusal(project):
        return f"git says: {reason}"
    return (
        "the git repository that this folder lies in does not track them; `git add` them there, or "
        "move the folder"
    )


def _is_in_repository(project: str) -> bool:
    """Return whether a folder, or one above it, has a repository, even one that git refuses.

    Git itself is not run, since its refusal would look as if there were no repository.
    """
    project_folder = pathlib.Path(os.path.realpath(project))
    ancestors = (project_folder, *project_folder.parents)
    return any(os.path.lexists(folder / ".git") for folder in ancestors)


def _read_refusal(project: str) -> str | None:
    """Return git's own message if git refuses to read a project's repository; else None."""
    result = programs.run_git(project, "rev-parse", "--git-dir")
    return None if result.returncode == 0 else result.stderr.strip()


def _run_git(project: str, *arguments: str) -> str | None:
    """Run git in a project, and return what it prints; None if it fails.

    The message of git is lost; :func:`_read_refusal` reads the one that matters.
    """
    result = programs.run_git(project, *arguments)
    return result.stdout if result.returncode == 0 else None


def _list_git_names(project: str, *arguments: str) -> list[str]:
    """Run git in a project, and return the names that it prints, sorted; empty if git fails.

    arguments: the arguments of git.  They must contain ``-z``, without which git quotes some names.
    """
    return sorted(set(_split_entries(_run_git(project, *arguments) or "")))


def _split_entries(output: str) -> list[str]:
    """Return the entries that git prints with the option ``-z``, each ended by a NUL character."""
    return [entry for entry in output.split("\0") if entry]

"""Compute tables and papers from logs, by the code of a folder, and compare them with others.

Nothing is measured, and neither Docker nor QEMU is needed.
"""

import contextlib
import filecmp
import os
import shutil

from strata.archive import checksums, metadata, source
from strata.experiment import plan
from strata.results import outputs
from strata.util import paths, programs
from strata.util.errors import UserError
from strata.util.files import flush_to_disk, write_text
from strata.util.process import capture_output
from strata.util.progress import print_message, print_topic_message

# Seconds in which all tables and papers must be computed again; STRATA_PATIENCE multiplies them.
LIMIT = 3600
# The state of a paper that differs and was made with other fonts or versions than this machine's.
NOT_COMPARABLE = "not comparable here"
# Files and folders of results/ that are measured or decided; all others are made from these.
INPUTS = (
    "plan.json",
    "plan.csv",
    "image.json",
    "image-manifest.json",
    "raw",
    "failed",
    "precision",
)
# Folders of the project whose code and texts make tables and papers.
_CODE = ("strata", "schemas", "published", "workloads", "analysis", "paper")


def copy_own_code(work: str) -> None:
    """Copy the code of this checkout that computes tables and papers into a folder.

    work: the folder to write, created if missing; files of equal names are overwritten.
    Tests and fixtures are left out.  If code in a further folder of the project computes tables,
    the folder must be added to `_CODE`.
    """
    unneeded = shutil.ignore_patterns("__pycache__", "tests", "fixtures")
    for name in _CODE:
        path = os.path.join(paths.PROJECT, name)
        if os.path.isdir(path):
            shutil.copytree(path, os.path.join(work, name), ignore=unneeded, dirs_exist_ok=True)


def copy_archived_code(folder: str, work: str) -> None:
    """Copy an archive's source into a folder: its packed files, or the files of its commit.

    folder: the folder of the unpacked archive.
    work: an existing folder, into which the source is copied.
    Raises UserError if the archive holds no source and this repository lacks the commit, and
    MachineError if git fails.
    """
    origin = metadata.read_facts(folder)["source"]
    if origin["packed"]:
        shutil.copytree(os.path.join(folder, "source"), work, dirs_exist_ok=True)
        return
    revision = origin["revision"]
    if source.read_commit(paths.PROJECT, revision) is None:
        reason = source.explain_missing_commit(paths.PROJECT, revision)
        raise UserError(
            f"the archive holds no source but names a commit. {reason}; or take the whole archive"
        )
    result = programs.run_git(paths.PROJECT, "rev-parse", "--git-path", "objects", check=True)
    objects = os.path.join(paths.PROJECT, result.stdout.strip())
    tar = os.path.abspath(os.path.join(work, "source.tar"))
    # Settings of the project's repository may name programs (filters) that change the content of
    # files.  A new, empty repository that uses the project's objects has no settings.
    with programs.create_temporary_folder("objects") as bare:
        programs.run_git(bare, "init", "--quiet", "--bare", check=True)
        command = ("archive", "--output", tar, revision)
        programs.run_git(bare, *command, check=True, GIT_OBJECT_DIRECTORY=objects)
    capture_output(["tar", "-C", work, "-xf", tar])
    os.unlink(tar)


def copy_measurements(folder: str, work: str) -> None:
    """Copy the measured or decided results (`INPUTS`) of an archive into a folder.

    folder: the folder of the unpacked archive.
    work: the folder of a project, whose folder ``results`` is written.
    Inputs that the archive lacks are left out; files of equal names are overwritten.
    """
    target = os.path.join(work, "results")
    os.makedirs(target, exist_ok=True)
    for name in INPUTS:
        path = os.path.join(folder, "results", name)
        if os.path.isdir(path):
            shutil.copytree(path, os.path.join(target, name), dirs_exist_ok=True)
        elif os.path.exists(path):
            shutil.copyfile(path, os.path.join(target, name))


def compute_outputs(folder: str, work: str, papers: bool) -> None:
    """Compute an archive's tables, and its papers if requested, from the logs in a work folder.

    folder: the folder of the unpacked archive; only its archive.json is read.
    work: a folder with code and logs; its code runs, and the outputs are written into it.
    Raises UserError if a log or record is refused, MachineError if a program fails.
    """
    compute_tables(work, metadata.read_facts(folder)["partial"])
    if papers:
        render_papers(work)


def compute_tables(work: str, partial: bool = False, to: str = "results") -> str:
    """Run the code of a project to compute all its tables from its logs.

    work: the folder of the project.
    partial: whether cells may be missing.
    to: the folder to write, relative to `work` or absolute.

    Returns the text that the command ``tidy`` prints on stderr: a line for each log left out.
    Raises UserError if a log or record is refused, MachineError if a program fails.
    """
    options = ["--partial"] if partial else []
    target = []
    # The default folder is not named, since the code of older archives takes no such option.
    if to != "results":
        options += ["--to", to]
        target = [to]
    notes = programs.run_python(work, "tidy", *options).stderr
    programs.run_r("analysis/tables.R", "results", *target, folder=work)
    return notes


def render_papers(work: str) -> None:
    """Run the code of a project to write its papers (`outputs.PAPERS`) from its tables.

    work: the folder of the project, with all tables.
    Raises MachineError if R fails.
    """
    for paper_file in outputs.PAPERS:
        programs.run_r("analysis/report.R", paper_file, folder=work)


def write_tables(partial: bool, to: str) -> None:
    """Write the tables of the project in the working directory, and their SHA256SUMS.

    This is the command ``tables``, which the rule `draft_tables` of Snakemake runs.
    partial: whether cells may be missing.
    to: the folder to write, created if missing.
    The paths in SHA256SUMS always begin with ``results/``, the folder into which Snakemake moves
    the tables; :func:`list_edited_tables` reads them.
    Prints a line for each log that is left out.
    Raises UserError if a log or record is refused, MachineError if a program fails.
    """
    os.makedirs(to, exist_ok=True)
    for line in compute_tables(".", partial, to).splitlines():
        print_message(line)
    # The lines have the form of checksums.format_checksum.
    lines = []
    for name in _list_table_paths():
        digest = checksums.hash_file(os.path.join(to, os.path.relpath(name, "results")))
        lines.append(f"{digest}  {name}\n")
    write_text(os.path.join(to, checksums.NAME), "".join(lines), lasting=True)


def write_paper(out: str) -> None:
    """Write a paper of the project in the working directory from its tables.

    This is the command ``paper``, which the rule `draft_paper` of Snakemake runs.
    out: the path of the paper; its ending decides whether analysis/report.R writes a PDF or a web
    page.
    Tables that do not fit their checksums were edited, and are computed again first.  A message
    names them; each file is replaced atomically, and the folders are flushed to disk.
    """
    if edited_tables := list_edited_tables():
        names = ", ".join(edited_tables)
        print_topic_message("tables", f"made again, since these were edited: {names}")
        with programs.create_temporary_folder("tables", "results/tmp") as folder:
            write_tables(partial=True, to=folder)
            for name in [*_list_table_paths(), f"results/{checksums.NAME}"]:
                os.replace(os.path.join(folder, os.path.relpath(name, "results")), name)
        for name in sorted({os.path.dirname(name) for name in _list_table_paths()}):
            flush_to_disk(name)
    programs.run_r("analysis/report.R", out)


def _list_table_paths() -> list[str]:
    """Return the paths, below ``results/``, of all tables that are made for the project's plan."""
    return outputs.list_table_paths(plan.read_checked_plan())


def list_edited_tables() -> list[str]:
    """Return the paths of the project's tables that are missing or do not fit their checksums.

    The paths begin with ``results/``, as in results/SHA256SUMS, which :func:`write_tables` writes.
    All tables count as edited if that file is missing.
    """
    checksum_lines: list[str] = []
    with (
        contextlib.suppress(FileNotFoundError),
        open(f"results/{checksums.NAME}", encoding="utf-8") as file,
    ):
        checksum_lines = file.readlines()
    edited_tables = []
    for name in _list_table_paths():
        if not os.path.exists(name) or checksums.format_checksum("", name) not in checksum_lines:
            edited_tables.append(name)
    return edited_tables


def compare_outputs(folder: str, work: str, names: list[str]) -> dict[str, str]:
    """Compare tables and papers of an archive byte by byte with those that were computed again.

    folder: the folder of the unpacked archive.
    work: the folder with the new files.
    names: paths that are relative to both folders.
    Returns ``{path: state}``.  A state is "identical", "different" or "missing" (not computed).  It
    is `NOT_COMPARABLE` for a paper that differs and was made with other fonts or versions of R,
    pandoc or LaTeX than this machine's.
    The command ``rebuild`` prints the states, and ``verify`` reports them.
    """
    states = {}
    for name in names:
        archived_path = os.path.join(folder, name)
        computed_path = os.path.join(work, name)
        if not os.path.exists(computed_path):
            states[name] = "missing"
        elif os.path.exists(archived_path) and filecmp.cmp(
            archived_path, computed_path, shallow=False
        ):
            states[name] = "identical"
        else:
            states[name] = "different"
    different_papers = [name for name in outputs.PAPERS if states.get(name) == "different"]
    if different_papers and metadata.list_software_differences(folder):
        states |= dict.fromkeys(different_papers, NOT_COMPARABLE)
    return states

"""The command ``strata rebuild``: make an archive's paper again from its logs, by its own code."""

import contextlib
import os

from strata.archive import check, checksums, light, metadata, output, remake, sandbox
from strata.results import outputs
from strata.results.validate import load_object
from strata.util import paths, programs, progress
from strata.util.errors import UserError
from strata.util.files import remove_tree
from strata.util.timeouts import scale_timeout


def rebuild_paper(path: str, target: str | None, boxed: str | None = None) -> int:
    """Run an archive's own code on its logs, and print whether each table and paper is the same.

    path: the archive's file, or the folder of an unpacked one.
    target: the folder to write, empty or missing; None for ARCHIVE-rebuilt in the working
    directory.
    boxed: "yes" to run the archive's code in a sandbox, "no" to run it without one; None for a
    sandbox if bubblewrap is installed.
    Returns the exit status: 0 if every table is byte-identical and no paper is missing, else 1.
    Raises UserError for a light archive, if a file does not fit its checksum, if `target` holds
    files or cannot be written, or if the archive's code fails or exceeds `remake.LIMIT`.  `target`
    is then as it was before.
    The parameters must have the names that ``add_rebuild_options`` of strata/options.py gives to
    the options.
    """
    if target is None:
        # review.md, the archive's README, names this folder too.
        name = os.path.basename(os.path.abspath(path)).removesuffix(".zip")
        target = f"{name}-rebuilt"
    programs.remove_abandoned_folders(target)
    if os.path.isdir(target) and os.listdir(target):
        raise UserError(f"{target}: is there already; remove it, or name another folder with --to")
    with contextlib.ExitStack() as stack:
        with check.convert_to_machine_error(path):
            folder = stack.enter_context(check.open_archive(path))
            if light.is_light_archive(folder):
                raise UserError(
                    f"{path}: is a light archive, which holds no logs to make a paper of. Rebuild "
                    "the whole archive (archive.zip) of the same results, or see the ratios of "
                    "this one by `python3 -m strata pool`."
                )
            faults = checksums.find_checksum_faults(folder)
        if faults:
            raise UserError(f"{path}: does not verify, and is not rebuilt:", *faults)
        experiment = load_object(folder, paths.PLAN)
        if not isinstance(experiment.get("workloads"), dict):
            raise UserError(
                f"{paths.PLAN}: workloads: missing, or no mapping of names to workloads"
            )
        uses_sandbox = sandbox.is_installed() if boxed is None else boxed == "yes"
        with output.write_whole_folder(target) as work:
            _run_archived_code(folder, work, target, uses_sandbox)
            states = remake.compare_outputs(folder, work, outputs.list_output_paths(experiment))
        differences = []
        if remake.NOT_COMPARABLE in states.values():
            differences = metadata.list_software_differences(folder)
    for name, state in states.items():
        progress.print_line(f"{state:9}  {name}")
    for sentence in differences:
        progress.print_message(f"rebuild: papers are {remake.NOT_COMPARABLE}: {sentence}")
    return _print_summary(states, target)


def _print_summary(states: dict[str, str], target: str) -> int:
    """Print how many tables and papers are identical, and return the exit status of ``rebuild``.

    states: path → state, of all tables and papers, as `remake.compare_outputs` returns them.
    target: the folder with the papers.
    Papers that differ leave the status 0: their bytes depend on this machine's software too.
    """
    tables = [state for name, state in states.items() if name.endswith(".csv")]
    papers = [states[name] for name in outputs.PAPERS]
    paper_path = os.path.join(target, outputs.PAPERS[0])
    progress.print_message(
        f"rebuild: {tables.count('identical')} of {len(tables)} tables are byte-identical"
    )
    progress.print_message(
        f"rebuild: {papers.count('identical')} of {len(papers)} papers are (their bytes depend on "
        f"fonts and the versions of R, pandoc and LaTeX too); the paper is {paper_path}"
    )
    return 0 if set(tables) <= {"identical"} and "missing" not in papers else 1


def _run_archived_code(folder: str, work: str, target: str, uses_sandbox: bool) -> None:
    """Run an archive's own code to compute its tables and papers, and kill processes that it left.

    folder: the folder of the unpacked archive.
    work: the folder into which code, logs and outputs are written; the code may do anything in it.
    target: the folder that messages name.
    uses_sandbox: whether the code runs in a sandbox; otherwise it has all rights of this user.
    Raises UserError if the code fails or exceeds `remake.LIMIT`.
    """
    if uses_sandbox:
        # At the end, its plain files are copied to `work` as files of this user, and it is removed.
        project = os.path.join(work, ".sandbox")
        rights = "in a sandbox: without network, and nothing of yours in reach but its folder"
        os.mkdir(project)
    else:
        project = work
        rights = "WITHOUT a sandbox: it can do all that you can"
    remake.copy_archived_code(folder, project)
    remake.copy_measurements(folder, project)
    with contextlib.ExitStack() as stack:
        stack.enter_context(
            programs.limit_program_time(remake.LIMIT, "rebuild: the archive's own code")
        )
        stack.enter_context(sandbox.kill_processes_at_end())
        if uses_sandbox:
            sandbox.change_owner_to_nobody(project)
            stack.enter_context(sandbox.run_sandboxed(project))
        progress.print_message(
            f"rebuild: what runs now is the archive's own code, for {target}, {rights}; "
            f"it is ended after {progress.format_duration(scale_timeout(remake.LIMIT))}"
        )
        remake.compute_outputs(folder, project, papers=True)
    # All processes have ended here, so that no file changes while it is copied.
    if uses_sandbox:
        sandbox.copy_plain_files(project, work)
        remove_tree(project)

"""The paper made again from archived logs by the archive's own code."""

import contextlib
import os

from strata.archive import check, checksums, metadata, remake, sandbox
from strata.results import outputs
from strata.results.validate import load
from strata.util import paths, programs, progress
from strata.util.errors import UserError

_OWN = "rebuild: what runs now is the archive's own code"
_INSIDE = "in a sandbox: without network, and nothing of yours in reach but that folder"
_OPEN = "WITHOUT a sandbox: it can do all that you can"


def rebuild(path: str, target: str | None, boxed: str | None = None) -> int:
    """Make an archive's paper again in `target`, and print of each product whether it is the same.

    boxed: whether the archive's code runs in a sandbox, yes or no; None: where bubblewrap is
    installed.  Gives the exit status: 0 where every table is byte-identical, else 1.  Raises
    UserError where a file of the archive is not the one of its checksum, where `target` is there
    already, or where the paper cannot be made.
    """
    work = target or f"{os.path.basename(os.path.abspath(path)).removesuffix('.zip')}-rebuilt"
    if os.path.exists(work) and (not os.path.isdir(work) or os.listdir(work)):
        raise UserError(f"{work}: is there already; remove it, or name another folder with --to")
    with contextlib.ExitStack() as stack:
        with check.blameless(path):
            folder = stack.enter_context(check.unpacked(path))
            found = checksums.findings(folder)
        if found:
            raise UserError(f"{path}: does not verify, and is not rebuilt:", *found)
        experiment = load(folder, paths.PLAN)
        if not isinstance(experiment.get("workloads"), dict):
            raise UserError(
                f"{paths.PLAN}: workloads: missing, or no mapping of names to workloads"
            )
        inside = sandbox.is_installed() if boxed is None else boxed == "yes"
        _make(folder, work, inside)
        states = remake.states(folder, work, outputs.made(experiment))
        unlike = metadata.unlike(folder) if remake.NOT_COMPARABLE in states.values() else []
    for name, state in states.items():
        progress.printed(f"{state:9}  {name}")
    for text in unlike:
        progress.shown(f"rebuild: papers are {remake.NOT_COMPARABLE}: {text}")
    tables = [state for name, state in states.items() if name.endswith(".csv")]
    papers = [states[name] for name in outputs.PAPERS]
    progress.shown(
        f"rebuild: {tables.count('identical')} of {len(tables)} tables are byte-identical"
    )
    progress.shown(
        f"rebuild: {papers.count('identical')} of {len(papers)} papers are (their bytes depend on fonts and the "
        f"versions of R, pandoc and LaTeX too); the paper is {os.path.join(work, outputs.PAPERS[0])}"
    )
    return 0 if set(tables) <= {"identical"} and "missing" not in papers else 1


def _make(folder: str, work: str, inside: bool) -> None:
    """Lay out an archive's code and logs, and make its tables and papers in `work`."""
    if not inside:
        os.makedirs(work, exist_ok=True)
        remake.archived_code(folder, work)
        progress.shown(f"{_OWN}, in {work}, {_OPEN}")
        remake.remake(folder, work, papers=True)
        return
    with programs.scratch("rebuild", os.path.dirname(os.path.abspath(work))) as room:
        place = os.path.join(room, "project")
        os.mkdir(place)
        remake.archived_code(folder, place)
        remake.lay_out(folder, place)
        sandbox.hand_over(place)
        with sandbox.around(place):
            progress.shown(f"{_OWN}, for {work}, {_INSIDE}")
            remake.make(folder, place, papers=True)
        sandbox.take_out(place, work)

"""Measure a cell, and with it the others of its set or of its machine's block that are due: one process, after which
nothing of them is up.

The cell that was asked for goes to results/raw, the others wait in results/spool until they are asked for.
"""

import os
import subprocess
import sys
from collections.abc import Sequence

from strata import layers
from strata.base import places, progress, run, signals
from strata.base.errors import CellFailed, Unable, UserError
from strata.base.files import note_json, read_json
from strata.base.process import alive
from strata.base.signals import Interrupted
from strata.cell import spool, together
from strata.cell.cell import Cell
from strata.experiment import plan, sets
from strata.image import cache
from strata.system import testbed
from strata.vm import disk


def measure(environment: str, workload: str, repetition: int) -> None:
    """Measure a cell and put its log and record into results/raw.

    Raises CellFailed, with the log, the reason and the command that reruns it; the output so far is then in
    results/failed, and results/raw is as it was.
    """
    signals.heed()
    run.end_with_it()
    experiment = plan.read()
    _check_name(experiment, environment, workload)
    cell = Cell(experiment, environment, workload, repetition)
    if cell.block is None:
        raise UserError(f"{places.PLAN}: {cell.order.missing(*cell.key)}")
    try:
        with testbed.exclusive():
            if not _was_measured(cell) and not _was_waiting(cell):
                _provide(experiment, environment)
                _measure(cell)
            owner = run.owner()
            if owner["pid"] == os.getpid():
                spool.forget(cell.key)
            else:
                note_json(places.LAST, {"cell": list(cell.key), "owner": owner})
    except Interrupted as asked:
        raise CellFailed(f"{cell.name} was ended by {asked} before it began") from None


def _check_name(experiment: dict, environment: str, workload: str) -> None:
    for kind, name in (("environment", environment), ("workload", workload)):
        known = list(experiment[f"{kind}s"])
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(known)}"
            raise UserError(f"{places.PLAN}: there is no {kind} '{name}'; {hint}")
    entry = experiment["environments"][environment]
    if not entry["available"]:
        raise UserError(f"environment '{environment}' is not available here: {entry['reason']}")


def _was_measured(cell: Cell) -> bool:
    """Whether the cell was the last of a run that was ended, of which Snakemake may not have noted that it is good."""
    last = read_json(places.LAST) or {}
    killed = last.get("cell") == list(cell.key) and isinstance(last.get("owner"), dict) and not alive(last["owner"])
    if last and not killed:
        spool.forget(last["cell"])
    if not killed or not spool.is_measured(cell.plan, cell.key):
        return False
    cell.note("measured as the run before this one was ended")
    progress.say("cell", f"{cell.name} was being measured when the previous run was killed")
    return True


def _was_waiting(cell: Cell) -> bool:
    """Put the cell in its place if it was measured before with another one; whether it was."""
    record = spool.take(cell.plan, cell.key)
    if record is not None:
        # How it went was noted then.
        spool.take_note(cell.key)
        progress.done(cell.name, record["seconds"], not cell.order.decided)
    return record is not None


def _provide(experiment: dict, environment: str) -> None:
    """See that the image is there, and the disk of the environment's machine: in the cache, or built now."""
    entry = experiment["environments"][environment]
    forms = layers.forms(name for layer in entry["layers"] for name in layer)
    recipe = experiment["image"]["recipe"]
    if forms and (cache.find(recipe) is None or ("disk" in forms and not disk.whole(recipe))):
        # With the packages that a cell does without.
        done = subprocess.run([sys.executable, "-m", "strata", "image", "--planned", environment], check=False)
        if done.returncode:
            raise CellFailed(f"the image of {environment} could not be made (see above)")


def _measure(cell: Cell) -> None:
    """Measure it, and those of its unit that are due."""
    others = [key for key in cell.order.unit(*cell.key) if key != cell.key and spool.due(cell.plan, key)]
    if cell.order.sharing(cell.environment, cell.workload) != [cell.workload]:
        _in_one_system(cell, others)
        return
    mates = together.mates(cell, others)
    _run(cell, mates)


def _in_one_system(cell: Cell, others: Sequence[sets.Cell]) -> None:
    """Measure cells one after the other in one system, which goes with the last; each is kept as it ends."""
    coming = [cell, *(Cell(cell.plan, *key, cell.order) for key in others)]
    for number, one in enumerate(coming, 1):
        try:
            _run(one, kind="spool", last=number == len(coming))
        except CellFailed as failure:
            if one is cell:
                raise
            if isinstance(failure.__cause__, Interrupted):
                break
            # Its own job measures it again, and says what is wrong if that stays so; those after it get a fresh system.
            progress.say("cell", f"{one.name} failed beside {cell.name} and is measured again alone: {failure}")
    spool.take(cell.plan, cell.key)


def _run(cell: Cell, mates: Sequence[Cell] = (), kind: str = "raw", last: bool = True) -> None:
    """Measure, in turns with `mates`; whatever goes wrong, nothing of it stays up and nothing looks complete.

    kind: where log and record go.  last: whether no other cell uses its system.
    """
    cell.start()
    progress.announce(cell.name + together.words(mates))
    try:
        system = _taken(cell, mates)
        cell.put_in_place(kind)
        if "cannot" in cell.known:
            testbed.take_down()
            cell.tell_that_it_cannot()
            return
        left = sorted(set(testbed.end_cell(system, last)))
    except BaseException as error:
        failure = cell.give_up(error)
        cell.note(str(failure), error)
        raise failure from error
    cell.tell(left)


def _taken(cell: Cell, mates: Sequence[Cell]) -> testbed.System:
    """Take the cell's steps, in turns with those of `mates`; the system that is up at the end."""
    if mates:
        try:
            return together.measure(cell, mates)
        except Unable:
            if not cell.plan["environments"][cell.environment].get("doubtful"):
                raise
            # What a system cannot do, it is to show alone.
            testbed.take_down()
    return cell.measure()

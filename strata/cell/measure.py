"""Measure one cell: bring its system up, warm up, run, check, and only then put log and record in place."""

import signal
from collections.abc import Sequence

from strata.base import places, progress, run, signals
from strata.base.errors import CellFailed, Unable, UserError
from strata.base.signals import Interrupted
from strata.cell import together
from strata.cell.cell import Cell
from strata.experiment import plan
from strata.system import keeper, testbed


def measure(environment: str, workload: str, repetition: int) -> None:
    """Measure a cell and put its log and record into results/raw.

    Raises CellFailed, with the log, the reason and the command that reruns it; the output so far is
    then in results/failed and nothing in results/raw.
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
            if progress.interrupted():
                raise Interrupted(signal.SIGINT.name)
            if not together.adopt(cell):
                _run(cell, together.mates(cell))
    except Interrupted as asked:
        cell.note_interrupt(asked)
        raise CellFailed(f"{cell.name} was ended by {asked} before it began") from None


def _check_name(experiment: dict, environment: str, workload: str) -> None:
    known = experiment["environments"]
    if environment not in known:
        raise UserError(f"{places.PLAN}: there is no environment '{environment}'; there are {', '.join(known)}")
    if not known[environment]["available"]:
        raise UserError(f"environment '{environment}' is not available here: {known[environment]['reason']}")
    if workload not in experiment["workloads"]:
        names = ", ".join(experiment["workloads"])
        raise UserError(f"{places.PLAN}: there is no workload '{workload}'; there are {names}")


def _run(cell: Cell, mates: Sequence[Cell]) -> None:
    """Measure, in turns with `mates`; whatever goes wrong, nothing of it stays up and nothing looks complete."""
    cell.start()
    progress.announce(cell.name + together.words(mates))
    left: list[str] = []
    try:
        # Before anything is brought up that it would have to remove.
        keeper.see(run.owner())
        system = _measure(cell, mates)
        cell.put_in_place()
        if "cannot" in cell.known:
            cell.tell_that_it_cannot()
            return
        left = sorted(set(testbed.end_cell(system, progress.last())))
    except BaseException as error:
        failure = cell.give_up(error)
        cell.note(str(failure), error)
        raise failure from error
    cell.tell(left)


def _measure(cell: Cell, mates: Sequence[Cell]) -> testbed.System:
    """The system that is up at the end."""
    if mates:
        try:
            return together.measure(cell, mates)
        except Unable:
            if not cell.plan["environments"][cell.environment].get("doubtful"):
                raise
            # What a system cannot do, it is to show alone.
            testbed.take_down()
    return cell.measure()

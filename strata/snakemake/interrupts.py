"""A signal that reaches the workflow alone is passed on to its cell, which else might wait for its turn for hours."""

import contextlib
import os
import signal

from strata.base import progress
from strata.base.process import descendants
from strata.system import state


def pass_on() -> None:
    """From now on the cell hears of the signals that ask the workflow to end, before Snakemake does.

    After SIGTERM Snakemake lets a cell end that measures, as it does with every job; one that waits ends at once.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.getsignal(number)
        if before == signal.SIG_IGN:
            continue

        def heard(number: int, frame: object, before: object = before) -> None:
            if number == signal.SIGINT:
                progress.interrupt()
            for cell in cells():
                if number == signal.SIGINT or not _measures(cell):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(cell, number)
            if callable(before):
                before(number, frame)
            else:
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)

        signal.signal(number, heard)


def cells() -> list[int]:
    """The processes of the cells that this workflow started, whether they wait, measure or only begin."""
    return [process for process, words in descendants(os.getpid()) if words[-5:-3] == ["strata", "cell"]]


def _measures(cell: int) -> bool:
    measuring = state.read()["cell"]
    return measuring is not None and measuring["pid"] == cell

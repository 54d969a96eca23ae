"""Which jobs the workflow starts next: the first of the plan.

Snakemake's greedy scheduler weighs every job that is ready against every resource before each start, which is most
of what its controller does with 10,000 cells.  Here the priorities say it all: they are the order of the plan.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from strata.base import progress

CORES = "_cores"


class Job(Protocol):
    """What is asked of a job of Snakemake's."""

    @property
    def priority(self) -> int:
        """Higher is earlier."""

    @property
    def scheduler_resources(self) -> Mapping[str, Any]:
        """How much it takes of each resource."""


J = TypeVar("J", bound=Job)


def _priority(job: Job) -> int:
    return job.priority


def fits(job: Job, left: Mapping[str, int]) -> bool:
    """Whether there is enough of each resource for a job."""
    return all(amount <= left.get(name, amount) for name, amount in job.scheduler_resources.items())


def first(ready: Sequence[J], available: Mapping[str, int]) -> list[J]:
    """The jobs that start now, of those that are ready.

    One after the other that of the highest priority for which there are resources; of equal ones any.
    """
    left, waiting, chosen = dict(available), list(ready), []
    while waiting and left.get(CORES, 1) > 0:
        best = max(waiting, key=_priority)
        if fits(best, left):
            chosen.append(best)
            for name, amount in best.scheduler_resources.items():
                if name in left:
                    left[name] -= amount
        if left.get(CORES, 1) > 0:
            waiting = [job for job in waiting if job is not best and fits(job, left)]
    return chosen


def following(ready: Sequence[J], available: Mapping[str, int]) -> list[J]:
    """The jobs that start now, unless a person ended the cell that ran: then the run ends.

    Of Ctrl-C Snakemake does not hear while its event loop has something to do.
    """
    if progress.interrupted():
        raise KeyboardInterrupt
    return first(ready, available)

"""Which jobs the workflow starts next: the first of the plan.

Snakemake's greedy scheduler weighs every job that is ready against every resource before each start, which is most
of what its controller does with 10,000 cells.  Here the priorities say it all: they are the order of the plan.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

CORES = "_cores"


class Job(Protocol):
    """What is asked of a job of Snakemake's."""

    priority: int
    scheduler_resources: Mapping[str, int]


def _priority(job: Job) -> int:
    return job.priority


def fits(job: Job, left: Mapping[str, int]) -> bool:
    """Whether there is enough of each resource for a job."""
    return all(amount <= left.get(name, amount) for name, amount in job.scheduler_resources.items())


def first(ready: Sequence[Job], remaining: Any, available: Mapping[str, int], sizes: Any) -> list[Job]:
    """The jobs to start now, by the signature of a scheduler of Snakemake's.

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

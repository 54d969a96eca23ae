"""The scheduler `strata` of Snakemake: the first jobs of the plan, by the interface for scheduler plugins.

Snakemake finds it by the name of this folder in every folder of Python's path: in that of the project, which
`scripts/setup.sh` puts on the path of .venv, and `python -m snakemake` as the folder that it is started in.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from snakemake_interface_scheduler_plugins.base import SchedulerBase
from snakemake_interface_scheduler_plugins.interfaces.jobs import JobSchedulerInterface


class Scheduler(SchedulerBase):
    """What Snakemake asks for the jobs to start."""

    def __post_init__(self) -> None:
        """Before anything starts (:func:`strata.snakemake.insides.settle_part`)."""
        from snakemake import __version__

        from strata.snakemake import insides

        insides.settle_part(self.dag.workflow, __version__)  # type: ignore[attr-defined]

    def select_jobs(
        self,
        selectable_jobs: Sequence[JobSchedulerInterface],
        remaining_jobs: Sequence[JobSchedulerInterface],
        available_resources: Mapping[str, Any],
        input_sizes: Mapping[Any, int],
    ) -> Sequence[JobSchedulerInterface]:
        """The jobs to start now (:func:`strata.snakemake.order.following`)."""
        # Not before: the Snakefile says which project's package it is.
        from strata.snakemake import order

        return order.following(selectable_jobs, available_resources)

"""Which versions of Snakemake the project was tried with, and what it asks of them beyond their interfaces.

Jobs are chosen by the interface for schedulers (the folder snakemake_scheduler_plugin_strata).  What has no interface
is looked at when a run starts: a version in which it has another shape is refused, not run in another order.
"""

import operator
import os
from collections.abc import Callable, Iterable
from typing import Any

from strata.base.errors import UserError

# The first takes functions as priorities; the last is that of requirements.txt.  `make test-long` tries the first.
OLDEST = (9, 17)
NEWEST = (9, 27)
SCHEDULER = "strata"
# The group of jobs that is a set, as profiles/slurm says, and as many environments as it may hold.
SET = "set-{workload}-{repetition}"
MOST_OF_SET = 100


def check_version(version: str) -> None:
    """Raise UserError for a version of Snakemake with which the project was not tried."""
    if not OLDEST <= tuple(int(part) for part in version.split(".")[:2]) <= NEWEST:
        oldest, newest = (".".join(map(str, end)) for end in (OLDEST, NEWEST))
        raise UserError(
            f"this is Snakemake {version}, and the project was tried with {oldest} to {newest}; `make setup` installs "
            "one of these as .venv/bin/snakemake"
        )


def _ask(workflow: Any, name: str, version: str) -> Any:
    try:
        return operator.attrgetter(name)(workflow)
    except AttributeError as error:
        raise UserError(
            f"Snakemake {version} is not as the versions that the project was tried with: workflow.{name} is not "
            f"there ({error}); take the version of requirements.txt"
        ) from None


def laid_over(workflow: Any, version: str, config: dict) -> tuple[list[str], dict]:
    """The pages that are laid over that of the experiment, and the words of the command line over these.

    config: what Snakemake made of them; where another workflow imports this one and hands something else over, all of
    that counts as words.
    """
    if config != _ask(workflow, "config_settings.overwrite_config", version):
        return [], config
    pages = [os.path.relpath(page) for page in _ask(workflow, "config_settings.configfiles", version)]
    return pages, dict(_ask(workflow, "config_settings.config", version))


def wanted(workflow: Any, version: str) -> list[Any]:
    """The jobs that are to run."""
    return list(_ask(workflow, "dag.needrun_jobs", version)())


def is_dry(workflow: Any, version: str) -> bool:
    """Whether nothing is to be run."""
    return bool(_ask(workflow, "dryrun", version))


def is_part(workflow: Any, version: str) -> bool:
    """Whether another Snakemake started this one for some of its jobs, on a machine of its choice."""
    return bool(_ask(workflow, "remote_exec", version))


def is_spread(workflow: Any, version: str) -> bool:
    """Whether jobs go to other machines.  To be called once Snakemake has settled how it runs, after all is read."""
    return not is_part(workflow, version) and not _ask(workflow, "local_exec", version)


def settle_spread(workflow: Any, version: str) -> None:
    """See that the cells of a set go to one node together.  Raises UserError where they would not."""
    groups = _ask(workflow, "group_settings.overwrite_groups", version)
    components = _ask(workflow, "group_settings.group_components", version)
    whole = groups.get("cell") == SET and components.get(SET, 1) >= MOST_OF_SET
    scope = _ask(workflow, "resource_scopes.is_local", version)("testbed")
    if not (whole and scope and _ask(workflow, "execution_settings.keep_incomplete", version)):
        raise UserError(
            "cells go to other machines, and nothing keeps those of a set together on one: add "
            "`--workflow-profile profiles/slurm`, or take its `groups`, `group-components`, `set-resource-scopes` and "
            "`keep-incomplete` into your own profile (docs/slurm.md)"
        )


def settle_part(workflow: Any, version: str) -> None:
    """In a part of a run, what a profile says to the run itself: a cell that fails, fails alone, and none is woken for.

    To be called when the scheduler is made.  Does nothing where this is no part.
    """
    if is_part(workflow, version):
        _ask(workflow, "execution_settings.keep_going", version)
        _ask(workflow, "scheduling_settings.max_jobs_per_timespan", version)
        workflow.execution_settings.keep_going = True
        workflow.scheduling_settings.max_jobs_per_timespan = None


def split(jobs: Iterable[Any]) -> tuple[list[tuple[str, str, int]], list[Any]]:
    """The cells of some jobs, and the jobs that make something else.

    By their files: a workflow that imports this one may give its rules other names.
    """
    cells, others = [], []
    for job in jobs:
        if job.output and job.output[0].startswith("results/raw/"):
            cells.append((job.wildcards.environment, job.wildcards.workload, int(job.wildcards.repetition)))
        elif job.output:
            others.append(job)
    return cells, others


def folder(workflow: Any, version: str) -> str:
    """The project's folder, also where another workflow imports this one; the working directory if it is that.

    To be called from a file in rules/.  Raises UserError where the working directory is another one.
    """
    project = os.path.dirname(os.path.abspath(str(_ask(workflow, "current_basedir", version))))
    if not os.path.samefile(project, os.getcwd()):
        raise UserError(
            f"results and papers lie in the project's folder, and this is {os.getcwd()}; add `--directory {project}`, "
            f'or in a workflow that imports this one `workdir: "{project}"`'
        )
    return os.getcwd()


def join(workflow: Any, version: str, start: Callable[[], None], end: Callable[[], None]) -> None:
    """Have a run's start and end told to us where another workflow imports this one, of which alone Snakemake calls the
    handlers.  Ours come before those.  Where nobody imports us, nothing is changed.
    """
    if _ask(workflow, "modifier.is_main_snakefile", version)():
        return

    def both(function: Callable[[], None], theirs: Callable[[Any], None]) -> Callable[[Any], None]:
        def handler(log: Any) -> None:
            function()
            theirs(log)

        return handler

    for name, function in (("onstart", start), ("onsuccess", end), ("onerror", end)):
        register = _ask(workflow, name, version)
        setattr(workflow, f"_{name}", both(function, _ask(workflow, f"_{name}", version)))
        # Where its own handler stands below the import.
        setattr(workflow, name, lambda theirs, register=register, ours=function: register(both(ours, theirs)))


def place_again(workflow: Any, version: str) -> None:
    """Ask for the priorities of all jobs again, since the order of cells may have changed since they were asked for."""
    _ask(workflow, "dag.update_priority", version)()


def settle_scheduler(workflow: Any, version: str) -> None:
    """See that cells come in the order of the plan, and that nothing wakes the controller while one measures.

    Raises UserError where that would not be so.
    """
    chosen = _ask(workflow, "scheduling_settings.scheduler", version)
    if chosen != SCHEDULER:
        raise UserError(
            f"the scheduler is '{chosen}', which does not keep to the order of the plan; leave profiles/default as it "
            f"is, or add --scheduler {SCHEDULER}"
        )
    # The limit of jobs a second sets a timer in every round of the scheduler, each of which sets another: after
    # n jobs the controller would wake n times a second.  No option switches it off.
    if _ask(workflow, "scheduler.job_rate_limiter", version) is not None:
        _ask(workflow, "scheduler.job_rate_limiter.timespan", version)
    workflow.scheduler.job_rate_limiter = None

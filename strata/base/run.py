"""The run that this process belongs to."""

import os
import select
import signal

from strata.base.errors import UserError
from strata.base.process import alive, identity

OWNER = "STRATA_OWNER"
# The job of Slurm that the owner is the first process of.
JOB = "STRATA_JOB"
# The words by which a person started Snakemake, for what is said of it.
SNAKEMAKE = "STRATA_SNAKEMAKE"
# What lay over the page of the experiment then, likewise.
OVER = "STRATA_OVER"


def snakemake() -> str:
    """How Snakemake is started here, as a person types it."""
    return os.environ.get(SNAKEMAKE, ".venv/bin/snakemake")


def again(target: str) -> str:
    """The command that makes a target of the same experiment, as a person types it."""
    over = os.environ.get(OVER, "")
    return f"{snakemake()} --cores 1 {over + ' -- ' if over else ''}{target}"


def _named() -> dict | None:
    """The process that STRATA_OWNER names, by its id or ``ID:START``; None where it names none."""
    pid, _, start = os.environ.get(OWNER, "").partition(":")
    if not pid.isdigit():
        return None
    return {"pid": int(pid), "start": start} if start else identity(int(pid))


def begin(part: bool = False) -> None:
    """Make this process the owner of what it starts, unless it belongs to a run itself.

    A `part` of a run, which Slurm started on a node, belongs to the first process of its job: the run's own is
    another machine's.
    """
    afresh = part and os.environ.get(JOB) != (job := os.environ.get("SLURM_JOB_ID", ""))
    if afresh:
        os.environ[JOB] = job
    if afresh or not alive(_named()):
        own = identity(os.getpid())
        os.environ[OWNER] = f"{own['pid']}:{own['start']}"


def owner() -> dict:
    """The process to whose end a system lives: the workflow that STRATA_OWNER names, else this one.

    Raises UserError where that workflow has ended.
    """
    named = _named()
    if named is None:
        return identity(os.getpid())
    if not alive(named):
        raise UserError(f"the run that this belongs to ({OWNER}: process {named['pid']}) has ended")
    return named


def end_with_it() -> None:
    """See that this process is asked to end (SIGTERM) as soon as its run has ended; a thread sleeps until then."""
    process = owner()
    if process["pid"] == os.getpid():
        return
    import _thread

    try:
        descriptor = os.pidfd_open(process["pid"])
    except ProcessLookupError:
        descriptor = None
    # Whoever had the same id in between is not the one.
    if descriptor is None or not alive(process):
        raise UserError(f"the run that this belongs to ({OWNER}: process {process['pid']}) has ended")
    _thread.start_new_thread(_watch, (descriptor,))


def _watch(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.poll()
    os.kill(os.getpid(), signal.SIGTERM)

"""The run that this process belongs to: the Snakemake that started it, and how a person started that."""

import os
import signal
from collections.abc import Sequence

from strata.util import signals
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.process import alive, identity, wait_for

# The process of the run, as ID:START, and the words by which it is started again.
OWNER = "STRATA_OWNER"
COMMAND = "STRATA_COMMAND"
# Options of Snakemake that decide the experiment, and where the programs of the rules come from.
_PAGES = (
    *("--configfile", "--configfiles", "--config", "-C", "--profile", "--workflow-profile"),
    *("--software-deployment-method", "--deployment-method", "--deployment", "--sdm"),
)


# Variables, or their beginnings, by which a caller would steer the programs that bring systems up.  Which daemon is
# asked (DOCKER_HOST, DOCKER_CONTEXT) stays his choice, and is looked at.
_STEERING = (
    "CONTAINERS_", "STORAGE_", "DOCKER_DEFAULT_PLATFORM", "DOCKER_CONTENT_TRUST", "DOCKER_BUILDKIT", "LIBVIRT_",
    "VIRSH_", "VAGRANT_", "PACKER_", "PKR_", "TAR_OPTIONS", "XZ_", "GZIP", "ZSTD_", "POSIXLY_CORRECT", "BASH_ENV",
    "LD_PRELOAD",
)  # fmt: skip


def forget() -> None:
    """Forget what the caller would have the programs do that are started from here on."""
    for name in [name for name in os.environ if name.startswith(_STEERING)]:
        del os.environ[name]


def again(target: str) -> str:
    """The command that makes a target of the same experiment, as a person types it."""
    return f"{os.environ.get(COMMAND, 'snakemake --cores 1')} {target}"


def command(words: Sequence[str]) -> str:
    """The words by which the same experiment is run again, for the words by which Snakemake was started."""
    # Cells, which are told it, do without these.
    import shlex
    import shutil

    program = os.path.relpath(words[0])
    if (
        shutil.which("snakemake") == words[0]
        or program.startswith("..")
        or not program.endswith("snakemake")
    ):
        program = "snakemake"
    kept: list[str] = []
    keeping = False
    for word in words[1:]:
        keeping = word.partition("=")[0] in _PAGES if word.startswith("-") else keeping
        kept += [word] * (keeping or word == "--use-conda")
    return shlex.join([program, "--cores", "1", *kept, *(["--"] if kept else [])])


def begin(words: Sequence[str]) -> None:
    """Make this process, started by these words, the run of what it starts, unless it belongs to one itself."""
    if not alive(_named()):
        os.environ[OWNER] = "{pid}:{start}".format(**identity(os.getpid()))
        os.environ[COMMAND] = command(words)


def _named() -> Fields | None:
    """The process that STRATA_OWNER names, as ``ID:START``; None where it names none."""
    pid, _, start = os.environ.get(OWNER, "").partition(":")
    return {"pid": int(pid), "start": start} if pid else None


def owner() -> Fields:
    """The process of the run; this one where it belongs to none.  Raises UserError where the run has ended."""
    named = _named()
    if named is None:
        return identity(os.getpid())
    if not alive(named):
        raise UserError(f"the run that this belongs to ({OWNER}: process {named['pid']}) has ended")
    return named


def end_with_it() -> None:
    """End this process (:data:`strata.util.signals.ENDED`) as soon as its run has ended; a thread waits for that."""
    process = owner()
    if process["pid"] == os.getpid():
        return
    import _thread

    _thread.start_new_thread(_watch, (process["pid"], _thread.get_ident()))


def _watch(pid: int, thread: int) -> None:
    wait_for(pid)
    # That very thread: it may delay signals now, and sleep once it no longer does.
    signal.pthread_kill(thread, signals.ENDED)

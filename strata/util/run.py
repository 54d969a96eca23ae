"""Identify the run of this process: the Snakemake that started it, and its command line."""

import os
import signal
from collections.abc import Sequence

from strata.util import signals
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.process import identify_process, is_alive, wait_for_process

# Variables that name the process of the run, as ID:START, and the command that starts it again.
OWNER = "STRATA_OWNER"
COMMAND = "STRATA_COMMAND"
# Options of Snakemake that decide the experiment, and where the rules' programs come from.
_KEPT_OPTIONS = (
    *("--configfile", "--configfiles", "--config", "-C", "--profile", "--workflow-profile"),
    *("--software-deployment-method", "--deployment-method", "--deployment", "--sdm"),
)
# Variables, or beginnings of their names, that would change what the programs do that bring systems
# up.  Those that choose a daemon (DOCKER_HOST, DOCKER_CONTEXT) are not among them:
# Strata looks which daemon answers.
_STEERING = (
    "CONTAINERS_", "STORAGE_", "DOCKER_DEFAULT_PLATFORM", "DOCKER_CONTENT_TRUST", "DOCKER_BUILDKIT",
    "LIBVIRT_", "VIRSH_", "VAGRANT_", "PACKER_", "PKR_", "TAR_OPTIONS", "XZ_", "GZIP", "ZSTD_",
    "POSIXLY_CORRECT", "BASH_ENV", "LD_PRELOAD",
)  # fmt: skip


def remove_steering_variables() -> None:
    """Remove the environment variables :data:`_STEERING` of this process.

    They would change how the programs behave that bring systems up.  Call this before any program
    is started.
    """
    for name in [name for name in os.environ if name.startswith(_STEERING)]:
        del os.environ[name]


def format_target_command(target: str) -> str:
    """Return the command that a person types to make a target of the same experiment.

    The command comes from the variable that :func:`declare_run_owner` sets.  Outside of a run, it
    is a plain call of Snakemake.
    target: a target of Snakemake.
    """
    return f"{os.environ.get(COMMAND, 'snakemake --cores 1')} {target}"


def format_rerun_command(argv: Sequence[str]) -> str:
    """Return the command that runs the same experiment again, without targets.

    argv: the command line of Snakemake, from its program on.
    Only the options that decide the experiment, and the source of its programs, are kept.
    The command is, for example, "snakemake --cores 1 --configfile a.yaml --".
    """
    # Cells read the result from the environment, and start faster without these modules.
    import shlex
    import shutil

    program = os.path.relpath(argv[0])
    is_on_path = shutil.which("snakemake") == argv[0]
    # A Snakemake outside of the project is called by its name; one in the project, such as
    # .venv/bin/snakemake, by its path.
    if is_on_path or program.startswith("..") or not program.endswith("snakemake"):
        program = "snakemake"
    options: list[str] = []
    # The arguments after an option, up to the next option, are its values.
    belongs_to_kept_option = False
    for argument in argv[1:]:
        if argument.startswith("-"):
            name, _, _ = argument.partition("=")
            belongs_to_kept_option = name in _KEPT_OPTIONS
        # --use-conda has no value, so the arguments after it are targets.
        if belongs_to_kept_option or argument == "--use-conda":
            options.append(argument)
    if options:
        # Without "--", the targets, which callers append, would be values of the last option.
        options.append("--")
    return shlex.join([program, "--cores", "1", *options])


def declare_run_owner(argv: Sequence[str]) -> None:
    """Declare this process the owner of a run, unless it belongs to a run that is active.

    Sets the environment variables :data:`OWNER` and :data:`COMMAND`, which child processes inherit:
    a process that starts its own run must leave them out.
    argv: the command line that started this process.
    """
    if not is_alive(_read_owner()):
        process = identify_process(os.getpid())
        os.environ[OWNER] = f"{process['pid']}:{process['start']}"
        os.environ[COMMAND] = format_rerun_command(argv)


def _read_owner() -> Fields | None:
    """Return the process that STRATA_OWNER names as ``{pid, start}``; None if it is unset.

    Only :func:`declare_run_owner` sets the variable, to PID:START.  START is the process's start
    time, which distinguishes it from a later process with the same PID.
    """
    pid, _, start = os.environ.get(OWNER, "").partition(":")
    return {"pid": int(pid), "start": start} if pid else None


def identify_run_process() -> Fields:
    """Return the process that owns the run, ``{pid, start}``; outside of a run, this process.

    Raises UserError if the run has ended.
    """
    process = _read_owner()
    if process is None:
        return identify_process(os.getpid())
    if not is_alive(process):
        raise UserError(
            f"the run that this belongs to ({OWNER}: process {process['pid']}) has ended"
        )
    return process


def watch_for_run_end() -> None:
    """Arrange that this thread gets the signal RUN_ENDED as soon as the run has ended.

    Starts a thread that waits for that, unless this process owns the run or there is none.
    :func:`strata.util.signals.raise_on_signals` must have been called: by its default action the
    signal would end this process without clean-up.
    Raises UserError if the run has ended already.
    """
    process = identify_run_process()
    if process["pid"] == os.getpid():
        return
    import _thread

    _thread.start_new_thread(_signal_end_of_run, (process["pid"], _thread.get_ident()))


def _signal_end_of_run(pid: int, thread: int) -> None:
    """Wait until a process ends, and send the signal RUN_ENDED to a thread of this process.

    pid: the process ID.
    thread: the thread's identifier, as _thread.get_ident() returns it.
    """
    wait_for_process(pid)
    # The signal must go to this thread: a signal that another thread gets would not wake it.
    signal.pthread_kill(thread, signals.RUN_ENDED)

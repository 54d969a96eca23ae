"""Run commands without being busy, end what was started, and nothing else."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence

from strata.base import signals
from strata.base.errors import MachineError, UserError
from strata.base.patience import stretched
from strata.base.shapes import Any, Fields


def start_time(pid: int) -> str | None:
    """Field 22 of /proc/PID/stat: with the id it names one process for good.  None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]


def identity(pid: int) -> Fields:
    """What names a process even after its id was given to another one."""
    return {"pid": pid, "start": start_time(pid)}


def alive(process: Fields | None) -> bool:
    """Whether the process of :func:`identity` still runs."""
    return bool(process and process["start"] and start_time(process["pid"]) == process["start"])


def wait_for(pid: int, timeout: float | None = None) -> bool:
    """Sleep until process `pid` ends or `timeout` seconds are over; whether it ended."""
    return bool(wait_for_any([pid], timeout))


def wait_for_any(pids: Iterable[int], timeout: float | None) -> set[int]:
    """Sleep until one of some processes ends or `timeout` seconds are over; those that ended."""
    watched: dict[int, int] = {}
    poll = select.poll()
    try:
        for pid in pids:
            descriptor = os.pidfd_open(pid)
            watched[descriptor] = pid
            poll.register(descriptor, select.POLLIN)
        ready = poll.poll(None if timeout is None else max(0, timeout) * 1000)
        return {watched[descriptor] for descriptor, _ in ready}
    except ProcessLookupError:
        return {pid}
    finally:
        for descriptor in watched:
            os.close(descriptor)


def end(*processes: subprocess.Popen[Any], patience: float = 5.0) -> None:
    """End children that still run, and the sessions that they lead: all are first asked, then forced."""
    with signals.undisturbed():
        running = [process for process in processes if process.returncode is None]
        for process in running:
            if not wait_for(process.pid, 0):
                _signal(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + patience
        for process in running:
            if not wait_for(process.pid, deadline - time.monotonic()):
                _signal(process.pid, signal.SIGKILL)
            reap(process)


def reap(process: subprocess.Popen[Any]) -> int:
    """Wait for the end of a child, end what is left of the session that it leads, and return its exit code.

    While a group has members its number is not given out again.
    """
    code = process.wait()
    _signal(process.pid, signal.SIGKILL)
    return code


ROOT_NEEDED = "run as root, or allow sudo without a password (docs/privileges.md)"
DOCKER_GROUP = "`sudo usermod -aG docker $USER` lets you use Docker; then log in again"
# So many letters of a command are in a message.
MOST_OF_COMMAND = 300
# Causes that programs name when they fail, and what would change that.
REMEDIES = {
    "sudo: a password is required": ROOT_NEEDED,
    "unable to pick chroot mode automatically": ROOT_NEEDED,
    "permission denied while trying to connect to the Docker daemon": DOCKER_GROUP,
    "Temporary failure resolving": "no package source answers: check the network, or set image.mirror in config.yaml",
    "No space left on device": "free some disk, or set STRATA_HOME to a folder on a larger one",
}


def _signal(group: int, number: signal.Signals) -> None:
    """Send a signal to a process group; to one of another user's (with sudo) with the rights of root."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        capture(as_root(["kill", f"-{number.value}", "--", f"-{group}"]), check=False)


def run_together(
    commands: Sequence[Sequence[str]], outputs: Sequence[int], timeout: float, needed: Sequence[int] = ()
) -> list[tuple[int | None, float]]:
    """Run commands at the same time, standard output and error of each into its descriptor of `outputs`.

    Returns for each its exit code and the seconds it took.  The first that ends with another code than 0, the end
    of a process of `needed`, or `timeout` seconds (as stretched), end all others: their code is None.  However they
    end, their sessions are gone afterwards.
    """
    found: list[tuple[int | None, float]] = [(None, 0.0)] * len(commands)
    if wait_for_any(needed, 0):
        return found
    processes: list[subprocess.Popen[Any]] = []
    begun: list[float] = []
    try:
        for command, output in zip(commands, outputs, strict=True):
            begun.append(time.monotonic())
            with signals.undisturbed():
                processes.append(
                    subprocess.Popen(
                        command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )  # fmt: skip
        running = {process.pid: number for number, process in enumerate(processes)}
        deadline = time.monotonic() + stretched(timeout)
        while running:
            ended = wait_for_any([*running, *needed], deadline - time.monotonic())
            for pid in ended & running.keys():
                number = running.pop(pid)
                seconds = time.monotonic() - begun[number]
                found[number] = (reap(processes[number]), seconds)
            # The time is over, something that was needed has ended, or one ended badly.
            if not ended or ended.intersection(needed) or any(code for code, _ in found):
                break
        for number in running.values():
            found[number] = (None, time.monotonic() - begun[number])
        return found
    finally:
        end(*processes)


def capture(
    argv: Sequence[str], timeout: float = 120, check: bool = True, **start: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command of the machinery and return what it printed (text); it ends with whatever ends the wait for it.

    start: for subprocess.Popen: `cwd`, `env`, `umask`.  What it prints is read as UTF-8 in every locale.
    Raises MachineError where it cannot be started or does not end within `timeout` seconds (as stretched), and
    :class:`UserError` with the command's own words if it fails and `check` is set.
    """
    process: subprocess.Popen[str] | None = None
    pipe = subprocess.PIPE
    try:
        with signals.undisturbed():
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace",
                start_new_session=True, **start,
            )  # fmt: skip
        said, complaint = process.communicate(timeout=stretched(timeout))
    except subprocess.TimeoutExpired:
        raise MachineError(f"`{' '.join(argv)}` did not end within {stretched(timeout):g} s") from None
    except FileNotFoundError as error:
        if error.filename != argv[0]:
            raise MachineError(f"{error.filename}: {error.strerror}") from None
        raise MachineError(f"{argv[0]} is not installed: run `make setup`") from None
    except OSError as error:
        raise MachineError(f"`{argv[0]}` cannot be started: {error.strerror}") from None
    finally:
        if process is not None:
            end(process)
    if check and process.returncode != 0:
        words = (complaint or said).strip() or f"exit code {process.returncode}"
        remedies = [f"; {remedy}" for cause, remedy in REMEDIES.items() if cause.lower() in words.lower()]
        command = " ".join(argv)
        command = command if len(command) <= MOST_OF_COMMAND else command[:MOST_OF_COMMAND] + " …"
        raise UserError(f"`{command}` failed: {words}{''.join(remedies[:1])}")
    return subprocess.CompletedProcess(argv, process.returncode, said, complaint)


def has_root() -> bool:
    """Whether this process is root's, or gets the rights of root from sudo without a password."""
    import shutil

    if os.geteuid() == 0:
        return True
    return shutil.which("sudo") is not None and capture(["sudo", "-n", "true"], check=False).returncode == 0


def as_root(argv: Sequence[str]) -> list[str]:
    """The command with the rights of root: as it is for root, through sudo (never asking) for others."""
    if os.geteuid() == 0:
        return list(argv)
    import shutil

    if not shutil.which("sudo"):
        raise UserError(f"`{argv[0]}` needs root: install sudo or run as root (docs/privileges.md)")
    return ["sudo", "-n", "--", *argv]

"""Run commands without being busy, end what was started, and nothing else."""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence

from strata.util import signals
from strata.util.data_types import Any, Fields
from strata.util.errors import MachineError, UserError
from strata.util.timeouts import stretched

# Bytes that a command of the machinery may print, which are held in memory; and how many of its last
# characters are in the message where it fails.
MOST, LAST = 64 << 20, 4000
# Bytes that are read at once: more than a pipe holds.
PIECE = 1 << 20


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
    return _wait(pids, (), timeout)[0]


def _wait(
    pids: Iterable[int], files: Iterable[int], timeout: float | None
) -> tuple[set[int], set[int]]:
    """Sleep as :func:`wait_for_any`, or until one of some files can be read, or is at its end.

    Returns the processes that ended, and these files.
    """
    watched: dict[int, int] = {}
    poll = select.poll()
    for file in files:
        poll.register(file, select.POLLIN)
    try:
        for pid in pids:
            descriptor = os.pidfd_open(pid)
            watched[descriptor] = pid
            poll.register(descriptor, select.POLLIN)
        found = poll.poll(None if timeout is None else max(0, timeout) * 1000)
        ready = {descriptor for descriptor, _ in found}
        return {watched[one] for one in ready & watched.keys()}, ready - watched.keys()
    except ProcessLookupError:
        return {pid}, set()
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

    While a group has members, the child that was not waited for among them, its number is not given
    out again.
    """
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return process.wait()
    except PermissionError:
        # The child was root's; so is what it left, if anything.
        code = process.wait()
        _signal(process.pid, signal.SIGKILL)
        return code
    return process.wait()


ROOT_NEEDED = "run as root, or allow sudo without a password (docs/privileges.md)"
DOCKER_GROUP = "`sudo usermod -aG docker $USER` lets you use Docker; then log in again"
MORE_SPACE = "free some disk, or set STRATA_HOME to a folder on a larger one"
# So many letters of a command are in a message.
MOST_OF_COMMAND = 300
# Causes that programs name when they fail, and what would change that.
REMEDIES = {
    "sudo: a password is required": ROOT_NEEDED,
    "unable to pick chroot mode automatically": ROOT_NEEDED,
    "permission denied while trying to connect to the Docker daemon": DOCKER_GROUP,
    "Temporary failure resolving": "no package source answers: check the network, or set image.mirror in config.yaml",
    "No space left on device": MORE_SPACE,
    "enough free space": MORE_SPACE,
}


def remedy(text: str) -> str:
    """What would change the first cause that a program's own words name, behind a semicolon; or nothing."""
    return next(
        (f"; {change}" for cause, change in REMEDIES.items() if cause.lower() in text.lower()), ""
    )


def _signal(group: int, number: signal.Signals) -> None:
    """Send a signal to a process group; to one of another user's (with sudo) with the rights of root."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        capture(as_root(["kill", f"-{number.value}", "--", f"-{group}"]), check=False)


def run_together(
    commands: Sequence[Sequence[str]],
    outputs: Sequence[Callable[[bytes], None]],
    timeout: float,
    needed: Sequence[int] = (),
) -> list[tuple[int | None, float]]:
    """Run commands at the same time; `outputs` are called with what each prints, on both streams.

    Returns for each its exit code and the seconds it took.  The first that ends with another code
    than 0, the end of a process of `needed`, or `timeout` seconds (as stretched), end all others:
    their code is None.  However they end, their sessions are gone afterwards; so they are where an
    output raises, which ends this.
    """
    found: list[tuple[int | None, float]] = [(None, 0.0)] * len(commands)
    if wait_for_any(needed, 0):
        return found
    processes: list[subprocess.Popen[bytes]] = []
    begun: list[float] = []
    try:
        for command in commands:
            begun.append(time.monotonic())
            with signals.undisturbed():
                processes.append(
                    subprocess.Popen(
                        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT, start_new_session=True, bufsize=0,
                    )
                )  # fmt: skip
        running = {process.pid: number for number, process in enumerate(processes)}
        printing = {_file(process.stdout): number for number, process in enumerate(processes)}
        deadline = time.monotonic() + stretched(timeout)
        while running:
            left = deadline - time.monotonic()
            ended, ready = _wait([*running, *needed], printing, left)
            now = time.monotonic()
            for file in ready:
                if text := os.read(file, PIECE):
                    outputs[printing[file]](text)
                else:
                    del printing[file]
            for pid in ended & running.keys():
                number = running.pop(pid)
                found[number] = (reap(processes[number]), now - begun[number])
            # The time is over, something that was needed has ended, or one ended badly.
            if left <= 0 or ended.intersection(needed) or any(code for code, _ in found):
                break
        for number in running.values():
            found[number] = (None, time.monotonic() - begun[number])
        end(*processes)
        for file, number in printing.items():
            # All that a pipe holds: nobody waits for a process that left its session.
            os.set_blocking(file, False)
            with contextlib.suppress(BlockingIOError):
                outputs[number](os.read(file, PIECE))
        return found
    finally:
        end(*processes)
        for process in processes:
            assert process.stdout
            process.stdout.close()


def _file(stream: Any) -> int:
    found: int = stream.fileno()
    return found


def capture(
    argv: Sequence[str], timeout: float = 120, check: bool = True, **start: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command of the machinery and return what it printed (text); it ends with whatever ends
    the wait for it.

    start: for subprocess.Popen: `cwd`, `env`, `umask`.  What it prints is read as UTF-8 in every
    locale.
    Raises MachineError where it cannot be started, does not end within `timeout` seconds (as
    stretched) or prints more than :data:`MOST` bytes, and :class:`UserError` with the end of the
    command's own words if it fails and `check` is set.
    """
    process: subprocess.Popen[bytes] | None = None
    pipe = subprocess.PIPE
    try:
        with signals.undisturbed():
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True,
                bufsize=0, **start,
            )  # fmt: skip
        said, complaint = _printed(process, argv, stretched(timeout))
    except FileNotFoundError as error:
        if error.filename != argv[0]:
            raise MachineError(f"{error.filename}: {error.strerror}") from None
        raise MachineError(f"{argv[0]} is not installed: run `make setup`") from None
    except OSError as error:
        raise MachineError(f"`{argv[0]}` cannot be started: {error.strerror}") from None
    finally:
        if process is not None:
            end(process)
            for stream in (process.stdout, process.stderr):
                assert stream
                stream.close()
    if check and process.returncode != 0:
        words = (complaint or said).strip()[-LAST:] or f"exit code {process.returncode}"
        command = " ".join(argv)
        command = command if len(command) <= MOST_OF_COMMAND else command[:MOST_OF_COMMAND] + " …"
        raise UserError(f"`{command}` failed: {words}{remedy(words)}")
    return subprocess.CompletedProcess(argv, process.returncode, said, complaint)


def _printed(
    process: subprocess.Popen[bytes], argv: Sequence[str], timeout: float
) -> tuple[str, str]:
    """What a process prints on each stream, to its end.  Raises MachineError beyond a limit."""
    texts = {_file(stream): bytearray() for stream in (process.stdout, process.stderr)}
    deadline, files = time.monotonic() + timeout, set(texts)
    while files or not wait_for(process.pid, 0):
        left = deadline - time.monotonic()
        _, ready = _wait(() if files else [process.pid], files, left)
        if left <= 0:
            raise MachineError(f"`{' '.join(argv)}` did not end within {timeout:g} s")
        for file in ready:
            text = os.read(file, PIECE)
            texts[file] += text
            if not text:
                files.discard(file)
        if sum(map(len, texts.values())) > MOST:
            most = f"{MOST >> 20} MiB"
            raise MachineError(f"`{' '.join(argv)}` was ended: it printed more than {most}")
    process.wait()
    said, complaint = (text.decode(errors="replace") for text in texts.values())
    return _lines(said), _lines(complaint)


def _lines(text: str) -> str:
    """A text whose lines end in one way."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def has_root() -> bool:
    """Whether this process is root's, or gets the rights of root from sudo without a password."""
    import shutil

    if os.geteuid() == 0:
        return True
    return (
        shutil.which("sudo") is not None
        and capture(["sudo", "-n", "true"], check=False).returncode == 0
    )


def as_root(argv: Sequence[str]) -> list[str]:
    """The command with the rights of root: as it is for root, through sudo (never asking) for others."""
    if os.geteuid() == 0:
        return list(argv)
    import shutil

    if not shutil.which("sudo"):
        raise UserError(f"`{argv[0]}` needs root: install sudo or run as root (docs/privileges.md)")
    return ["sudo", "-n", "--", *argv]

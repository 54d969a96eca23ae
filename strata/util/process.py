"""Run commands, wait for processes without busy waiting, and end started processes."""

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
from strata.util.timeouts import scale_timeout

# The most bytes that a command may print: they are held in memory.
MAX_OUTPUT_BYTES = 64 << 20
# The number of the last printed characters that the message on a failed command holds.
LAST_SHOWN = 4000
# The most bytes that one call reads: more than a pipe holds.
READ_SIZE = 1 << 20


def read_start_time(pid: int) -> str | None:
    """Return the start time of a process; None if the process does not run.

    The time is field 22 of /proc/PID/stat, as text: with the process ID, it identifies a process
    even after another has the same ID.  Callers only compare it.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            # The fields after the name, which may hold anything: field 3, the state, comes first.
            fields = file.read().rpartition(")")[2].split()
    # The kernel raises the second error if the process ends between the opening and the reading.
    except (FileNotFoundError, ProcessLookupError):
        return None
    is_zombie_or_dead = fields[0] in "ZX"
    return None if is_zombie_or_dead else fields[22 - 3]


def identify_process(pid: int) -> Fields:
    """Return ``{pid, start}``, which identifies a process even after another one has the same ID.

    The journal and other files store the result, and a later process passes it to :func:`is_alive`.
    pid: the process ID.
    start: the start time of the process, as :func:`read_start_time` returns it.
    """
    return {"pid": pid, "start": read_start_time(pid)}


def is_alive(process: Fields | None) -> bool:
    """Return whether a process still runs; false for None and for a start time of None.

    process: ``{pid, start}``, the result of :func:`identify_process`, maybe of an earlier process.
    """
    if not process:
        return False
    start = read_start_time(process["pid"])
    return start is not None and start == process["start"]


def wait_for_process(pid: int, timeout: float | None = None) -> bool:
    """Sleep until a process ends or the time is up; return whether the process ended.

    timeout: in seconds; None for no limit.
    """
    return bool(wait_for_any_process([pid], timeout))


def wait_for_any_process(pids: Iterable[int], timeout: float | None) -> set[int]:
    """Sleep until one of several processes ends or the time is up.

    pids: process IDs; without any, only the timeout ends the call.
    timeout: in seconds; None for no limit.
    Returns the IDs of the processes that have ended.
    """
    ended, _ = _wait_for_events(pids, (), timeout)
    return ended


def _wait_for_events(
    pids: Iterable[int], descriptors: Iterable[int], timeout: float | None
) -> tuple[set[int], set[int]]:
    """Sleep until a process ends, a file is readable or closed, or the time is up.

    pids: process IDs, also of processes that have ended.
    descriptors: the descriptors of the files.
    timeout: in seconds; a negative one counts as 0; None for no limit.
    Returns the IDs of the ended processes, and the descriptors that are readable or closed; both
    are empty if the time is up.
    """
    pid_of_descriptor: dict[int, int] = {}
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    try:
        for pid in pids:
            descriptor = os.pidfd_open(pid)
            pid_of_descriptor[descriptor] = pid
            poll.register(descriptor, select.POLLIN)
        events = poll.poll(None if timeout is None else max(0, timeout) * 1000)
        ready = {descriptor for descriptor, _ in events}
        ended = {pid_of_descriptor[descriptor] for descriptor in ready & pid_of_descriptor.keys()}
        return ended, ready - pid_of_descriptor.keys()
    except ProcessLookupError:
        # The process ended, and was reaped, before pidfd_open.  The next call finds the others.
        return {pid}, set()
    finally:
        for descriptor in pid_of_descriptor:
            os.close(descriptor)


def end_processes(*processes: subprocess.Popen[Any], patience: float = 5.0) -> None:
    """End child processes that still run, with their process groups: by SIGTERM, then by SIGKILL.

    processes: each must be the leader of a process group.
    patience: seconds between the two signals, for all processes together.
    Sets the exit code of each process, and delays signals to this process meanwhile.  Processes
    whose exit code is set already are skipped.
    """
    with signals.delay_signals():
        running = [process for process in processes if process.returncode is None]
        for process in running:
            if not wait_for_process(process.pid, 0):
                send_signal(-process.pid, signal.SIGTERM)
        deadline = time.monotonic() + patience
        for process in running:
            if not wait_for_process(process.pid, deadline - time.monotonic()):
                send_signal(-process.pid, signal.SIGKILL)
            reap_process_group(process)


def reap_process_group(process: subprocess.Popen[Any]) -> int:
    """Wait until a child process ends, kill the rest of its process group; return its exit code.

    process: the leader of the process group.
    The exit code is minus the signal's number if a signal ended the child.
    """
    # The child is reaped only after its group is killed: until then, the kernel gives the group's
    # number to no other group.
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return process.wait()
    except PermissionError:
        # The child was root's, and so are the processes that it left.
        exit_code = process.wait()
        send_signal(-process.pid, signal.SIGKILL)
        return exit_code
    return process.wait()


ROOT_NEEDED = "run as root, or allow sudo without a password (docs/privileges.md)"
DOCKER_GROUP = "`sudo usermod -aG docker $USER` lets you use Docker; then log in again"
MORE_SPACE = "free some disk, or set STRATA_HOME to a folder on a larger one"
# The most characters of a command that a message holds.
MAX_COMMAND_LENGTH = 300
# Text that a program prints when it fails → what the user can do about the cause.
REMEDIES = {
    "sudo: a password is required": ROOT_NEEDED,
    "unable to pick chroot mode automatically": ROOT_NEEDED,
    "permission denied while trying to connect to the Docker daemon": DOCKER_GROUP,
    "Temporary failure resolving": (
        "no package source answers: check the network, or set image.mirror in config.yaml"
    ),
    "No space left on device": MORE_SPACE,
    "enough free space": MORE_SPACE,
}


def find_remedy(text: str) -> str:
    """Return the remedy for the first known cause of failure in a program's message.

    text: the program's message.
    The remedy begins with a semicolon, to be appended to a message, for example "; free some disk,
    or …".  It is empty if the message has no text of :data:`REMEDIES`.  Upper and lower case do not
    matter.
    """
    for cause, remedy in REMEDIES.items():
        if cause.lower() in text.lower():
            return f"; {remedy}"
    return ""


def send_signal(target: int, number: signal.Signals) -> None:
    """Send a signal to a process or a process group, as root if it belongs to another user.

    target: the process ID, or minus the ID of a process group.
    number: the signal.
    Returns without an error if the process has ended, or if root cannot send the signal either.
    """
    try:
        os.kill(target, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        capture_output(wrap_as_root(["kill", f"-{number.value}", "--", str(target)]), check=False)


def run_commands_concurrently(
    commands: Sequence[Sequence[str]],
    outputs: Sequence[Callable[[bytes], None]],
    timeout: float,
    needed_pids: Sequence[int] = (),
) -> list[tuple[int | None, float]]:
    """Run commands at the same time, until all have ended successfully or one of them fails.

    commands: the command lines.
    outputs: for each command, a function that is called with the bytes that the command prints on
    either stream.  If one raises, all commands are ended, and the exception is raised here.
    timeout: seconds, which STRATA_PATIENCE multiplies, after which all commands are ended.
    needed_pids: process IDs; all commands are ended as soon as one of these processes ends.
    Returns for each command, in the given order, its exit code (None if the command was ended)
    and the seconds that it took.  If a needed process has ended before, no command is started, and
    each result is (None, 0.0).  No process of the commands' groups runs afterwards.
    """
    results: list[tuple[int | None, float]] = [(None, 0.0)] * len(commands)
    if wait_for_any_process(needed_pids, 0):
        return results
    # For each command that was started: its process, and its start by time.monotonic().
    processes: list[subprocess.Popen[bytes]] = []
    starts: list[float] = []
    try:
        for command in commands:
            starts.append(time.monotonic())
            with signals.delay_signals():
                processes.append(
                    subprocess.Popen(
                        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT, start_new_session=True, bufsize=0,
                    )
                )  # fmt: skip
        # The running processes by their ID, and the open outputs by their descriptor; the values
        # are the numbers of the commands.
        running: dict[int, int] = {}
        printing: dict[int, int] = {}
        for number, process in enumerate(processes):
            assert process.stdout
            running[process.pid] = number
            printing[process.stdout.fileno()] = number
        deadline = time.monotonic() + scale_timeout(timeout)
        while running:
            seconds_left = deadline - time.monotonic()
            ended, ready = _wait_for_events([*running, *needed_pids], printing, seconds_left)
            now = time.monotonic()
            for descriptor in ready:
                if text := os.read(descriptor, READ_SIZE):
                    outputs[printing[descriptor]](text)
                else:
                    del printing[descriptor]
            for pid in ended & running.keys():
                number = running.pop(pid)
                results[number] = (reap_process_group(processes[number]), now - starts[number])
            # The exit code is None as long as a command runs.
            has_failed = any(exit_code for exit_code, _ in results)
            if seconds_left <= 0 or ended.intersection(needed_pids) or has_failed:
                break
        for number in running.values():
            results[number] = (None, time.monotonic() - starts[number])
        end_processes(*processes)
        for descriptor, number in printing.items():
            # Read what the pipe holds now: a process that left the session may keep it open.
            os.set_blocking(descriptor, False)
            with contextlib.suppress(BlockingIOError):
                outputs[number](os.read(descriptor, READ_SIZE))
        return results
    finally:
        end_processes(*processes)
        for process in processes:
            assert process.stdout
            process.stdout.close()


def capture_output(
    argv: Sequence[str], timeout: float = 120, check: bool = True, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command until it ends, and return its exit code, output and error output.

    Waits also for child processes of the command that keep its output open.
    timeout: seconds, which STRATA_PATIENCE multiplies.
    check: whether an exit code other than 0 is an error.
    options: arguments for subprocess.Popen: `cwd`, `env`, `umask`.
    The output is read as UTF-8 in every locale, and all its line ends become line feeds.  If this
    call is interrupted or raises, the command's process group is ended.
    Raises MachineError if the command cannot be started, exceeds its time or prints more than
    :data:`MAX_OUTPUT_BYTES` bytes.  If the exit code is not 0 and `check` is set, raises UserError
    with the end of the error output, or of the output if there is no error output.
    """
    process: subprocess.Popen[bytes] | None = None
    pipe = subprocess.PIPE
    try:
        with signals.delay_signals():
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True,
                bufsize=0, **options,
            )  # fmt: skip
        output, errors = _read_until_end(process, argv, scale_timeout(timeout))
    except FileNotFoundError as error:
        if error.filename != argv[0]:
            raise MachineError(f"{error.filename}: {error.strerror}") from None
        raise MachineError(f"{argv[0]} is not installed: run `make setup`") from None
    except OSError as error:
        raise MachineError(f"`{argv[0]}` cannot be started: {error.strerror}") from None
    finally:
        if process is not None:
            end_processes(process)
            for stream in (process.stdout, process.stderr):
                assert stream
                stream.close()
    if check and process.returncode != 0:
        reason = (errors or output).strip()[-LAST_SHOWN:] or f"exit code {process.returncode}"
        command = " ".join(argv)
        if len(command) > MAX_COMMAND_LENGTH:
            command = command[:MAX_COMMAND_LENGTH] + " …"
        raise UserError(f"`{command}` failed: {reason}{find_remedy(reason)}")
    return subprocess.CompletedProcess(argv, process.returncode, output, errors)


def _read_until_end(
    process: subprocess.Popen[bytes], argv: Sequence[str], timeout: float
) -> tuple[str, str]:
    """Wait until a process ends and its streams are closed; return its output and its errors.

    argv: its command line, for messages.
    timeout: seconds, which were multiplied by STRATA_PATIENCE.
    Bytes that are not UTF-8 become U+FFFD, and all line ends become line feeds.  The caller must
    kill the process if this function raises.
    Raises MachineError if the process exceeds the timeout or :data:`MAX_OUTPUT_BYTES` bytes.
    """
    assert process.stdout
    assert process.stderr
    contents = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    open_streams = set(contents)
    deadline = time.monotonic() + timeout
    while open_streams or not wait_for_process(process.pid, 0):
        seconds_left = deadline - time.monotonic()
        # A child process may keep the streams open after the command has ended.  So the command's
        # end counts only after the streams are closed.
        pids = () if open_streams else (process.pid,)
        _, ready = _wait_for_events(pids, open_streams, seconds_left)
        if seconds_left <= 0:
            raise MachineError(f"`{' '.join(argv)}` did not end within {timeout:g} s")
        for descriptor in ready:
            piece = os.read(descriptor, READ_SIZE)
            contents[descriptor] += piece
            if not piece:
                open_streams.discard(descriptor)
        if sum(map(len, contents.values())) > MAX_OUTPUT_BYTES:
            limit = f"{MAX_OUTPUT_BYTES >> 20} MiB"
            raise MachineError(f"`{' '.join(argv)}` was ended: it printed more than {limit}")
    process.wait()
    # `contents` keeps the order in which it was made: the output first.
    texts = [content.decode(errors="replace") for content in contents.values()]
    output, errors = (text.replace("\r\n", "\n").replace("\r", "\n") for text in texts)
    return output, errors


def can_run_as_root() -> bool:
    """Return whether this process can run commands as root, itself or by sudo without a password.

    Each call runs sudo.  :func:`wrap_as_root` returns the command lines.
    """
    import shutil

    if os.geteuid() == 0:
        return True
    if shutil.which("sudo") is None:
        return False
    return capture_output(["sudo", "-n", "true"], check=False).returncode == 0


def wrap_as_root(argv: Sequence[str]) -> list[str]:
    """Return the command line that runs a command as root: through sudo, unless this user is root.

    sudo never asks for a password: the command fails instead.
    docs/privileges.md lists every program that runs so: a new one must be added there.
    Raises UserError if sudo is needed and not installed.
    """
    if os.geteuid() == 0:
        return list(argv)
    import shutil

    if not shutil.which("sudo"):
        raise UserError(f"`{argv[0]}` needs root: install sudo or run as root (docs/privileges.md)")
    return ["sudo", "-n", "--", *argv]

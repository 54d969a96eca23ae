"""Run a workload author's parsers and patterns in a process of bounded time, memory and output.

None of them can then hold a cell, and with it the machine, for ever.  The worker process ends by a
timer of its own, so that the time limit holds even where the calling process is stopped or killed.
"""

import contextlib
import fcntl
import json
import os
import resource
import select
import signal
import sys
from collections.abc import Callable, Iterator

from strata.util import progress, signals
from strata.util.data_types import Any, Fields
from strata.util.errors import UserError
from strata.util.timeouts import scale_timeout

# The limits: seconds for each part of the work, bytes of memory, and bytes that the work may print.
SECONDS = 60
MEMORY = 2 << 30
PRINTED = 1 << 20
# How many characters are shown of the work's output, and of the reason why it failed.
SHOWN = 4000
REASON = 2000
# The worker's descriptor for messages has at least this number, which the work does not use itself.
MIN_DESCRIPTOR = 64

# A function that is called with the name of each part of the work before it begins.
NamePart = Callable[[str], None]


def run_in_bounded_process(work: Callable[[NamePart], Iterator[Any]]) -> Iterator[Any]:
    """Run a generator function in another process, and yield each of its values as it arrives.

    work: the function; its argument is a function that names the part of the work that begins.
    JSON must be able to hold the values that it yields.  Its changes in memory stay in the other
    process.
    Afterwards, prints the first :data:`SHOWN` bytes of the output of `work` on standard error, and
    kills all processes of its group, even if the caller stops early.
    Raises UserError, with the name of the part, if `work` raises any error, exceeds a limit or
    ends its process.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    limit = scale_timeout(SECONDS)
    receiving_pipe, sending_pipe = os.pipe()
    output_file = os.memfd_create("printed")
    with signals.delay_signals():
        worker_pid = os.fork()
        if worker_pid == 0:
            _run_worker(work, limit, sending_pipe, output_file)
    os.close(sending_pipe)
    # The subject of messages until `work` names its first part.
    part = "it"
    message: Fields = {}
    try:
        for line in _receive_worker_lines(receiving_pipe, worker_pid):
            message = json.loads(line)
            part = message.get("part", part)
            if "value" in message:
                yield message["value"]
    finally:
        with signals.delay_signals():
            status = _end_worker(worker_pid)
            output_start = os.pread(output_file, SHOWN, 0)
            output_bytes = os.fstat(output_file).st_size
            os.close(receiving_pipe)
            os.close(output_file)
        if output_start:
            progress.print_message(output_start.decode(errors="replace").rstrip("\n"))
    # The kernel lets the file grow to this size and no further (RLIMIT_FSIZE).
    if output_bytes >= PRINTED:
        raise UserError(f"{part} was ended: it printed more than {PRINTED >> 20} MiB")
    if "failed" in message:
        raise UserError(message["failed"])
    if "done" not in message:
        raise UserError(f"{part} {_describe_worker_end(status, limit)}")


def _describe_worker_end(status: int, limit: float) -> str:
    """Return how the worker ended before it sent all values, as a predicate for a message.

    status: the worker's exit status; minus the signal's number if a signal ended the worker.
    limit: seconds for each part of the work.
    The predicate is, for example, "was ended: it came to no end within 60 s".
    """
    if status == -signal.SIGALRM:
        return f"was ended: it came to no end within {limit:g} s"
    if status < 0:
        return f"ended by signal {-status}; it may use {MEMORY >> 20} MiB of memory"
    return (
        f"ended with status {status} before its values were handed over: it may neither exit "
        "nor close descriptors that it did not open"
    )


def _receive_worker_lines(pipe: int, worker_pid: int) -> Iterator[bytes]:
    """Yield each line that the worker sends, without its line end, until the worker has ended.

    pipe: descriptor of the pipe from the worker.
    worker_pid: the worker's process ID.
    An unfinished last line is dropped: the worker was ended while it wrote the line.
    The end of the pipe does not show the worker's end: any process that the work has started may
    keep the pipe open.
    """
    worker_descriptor = os.pidfd_open(worker_pid)
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    poll.register(worker_descriptor, select.POLLIN)
    # The pieces of the line whose end has not arrived yet.
    line_pieces: list[bytes] = []
    try:
        # While the pipe is not readable, poll() returns only when the worker has ended.
        while pipe in {descriptor for descriptor, _ in poll.poll()}:
            # As many bytes as a pipe of Linux holds by default.
            piece = os.read(pipe, 1 << 16)
            if not piece:
                # The work closed the pipe.
                poll.unregister(pipe)
            *line_ends, next_line_start = piece.split(b"\n")
            if line_ends:
                yield b"".join([*line_pieces, line_ends[0]])
                yield from line_ends[1:]
                line_pieces = []
            line_pieces.append(next_line_start)
    finally:
        os.close(worker_descriptor)


def _end_worker(worker_pid: int) -> int:
    """Kill the worker, if it still runs, and all processes of its group; return its exit status.

    worker_pid: the worker's process ID, which is also the ID of its group.
    The status is minus the signal's number if a signal ended the worker.
    """
    # The worker is not reaped yet, so this never raises: a zombie takes signals, too.
    os.kill(worker_pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        # The worker may have had no time to create its group.
        os.killpg(worker_pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(worker_pid, 0)[1])


def _run_worker(
    work: Callable[[NamePart], Iterator[Any]], limit: float, pipe: int, output_file: int
) -> None:
    """Run the work in this process, the worker, and send its parts, its values, and how it ended.

    Each message is a line of JSON with one key: part, value, done or failed.
    :func:`run_in_bounded_process` relies on the keys.
    work: the generator function, as :func:`run_in_bounded_process` describes it.
    limit: seconds for each part of the work, after which SIGALRM ends the process.
    pipe: descriptor of the pipe to the parent.
    output_file: descriptor of the file for all output.
    Reasons of failures are cut after :data:`REASON` characters, tracebacks after :data:`SHOWN`.
    Makes the process the leader of a new group.  Never returns: the process exits.
    """
    part = "it"
    exit_code = 1
    worker_pid = os.getpid()

    def send_message(key: str, value: object) -> None:
        """Send a message to the parent process, and restart the time limit.

        Uses `pipe`, `limit` and `worker_pid` of the function around it.
        """
        if os.getpid() != worker_pid:
            # A process that the work has forked came here, too.
            os._exit(1)
        text = json.dumps({key: value}).encode() + b"\n"
        # The timer is off while the message is sent: a stopped parent reads no message.
        signal.setitimer(signal.ITIMER_REAL, 0)
        while text:
            text = text[os.write(pipe, text) :]
        signal.setitimer(signal.ITIMER_REAL, limit)

    def name_part(name: str) -> None:
        """Set `part`, the subject of later messages, and send the name to the parent process."""
        nonlocal part
        part = name
        send_message("part", name)

    try:
        os.setsid()
        pipe = _isolate_process(pipe, output_file)
        name_part(part)
        for value in work(name_part):
            send_message("value", value)
        send_message("done", True)
        exit_code = 0
    except UserError as error:
        send_message("failed", str(error)[:REASON])
    except MemoryError:
        reason = f"{part} was ended: it needs more than {MEMORY >> 20} MiB of memory"
        send_message("failed", reason)
    except BaseException as error:
        # The work is foreign code, which may raise anything, SystemExit included.
        import traceback

        sys.stderr.write(traceback.format_exc()[:SHOWN])
        send_message("failed", f"{part} failed: {type(error).__name__}: {error}"[:REASON])
    finally:
        try:
            sys.stdout.flush()
        finally:
            # This copy of the parent runs none of the parent's code for its exit.
            os._exit(exit_code)


def _isolate_process(pipe: int, output_file: int) -> int:
    """Set the streams, limits and signal actions of this process, the worker.

    pipe: descriptor of the pipe to the parent.
    output_file: descriptor of the file that becomes standard output and standard error.
    Returns the pipe's new descriptor.  All other descriptors above 2 are closed: a lock of the
    parent is then free once the parent has ended.
    SIGALRM gets its default action, which ends the process.
    """
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream in (1, 2):
        os.dup2(output_file, stream)
    descriptor = fcntl.fcntl(pipe, fcntl.F_DUPFD_CLOEXEC, MIN_DESCRIPTOR)
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, os.sysconf("SC_OPEN_MAX"))
    sys.stdout = sys.stderr = open(
        1, "w", encoding="utf-8", errors="backslashreplace", closefd=False
    )
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (PRINTED, PRINTED))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    return descriptor

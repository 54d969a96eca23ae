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
LEAST_DESCRIPTOR = 64

# A function that is called with the name of each part of the work before it begins.
NamePart = Callable[[str], None]


def run_in_bounded_process(work: Callable[[NamePart], Iterator[Any]]) -> Iterator[Any]:
    """Run a generator function in another process, and yield each of its values as it arrives.

    work: the function; its argument is a function that names the part of the work that begins.
    JSON must be able to hold its values.  Its changes in memory stay in the other process.
    Afterwards, prints the output of `work` on standard error, and kills all processes of its group,
    even if the caller stops early.
    Raises UserError, with the name of the part, if `work` raises any error, exceeds a limit or
    ends its process.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    limit = scale_timeout(SECONDS)
    messages, sending = os.pipe()
    printed = os.memfd_create("printed")
    with signals.delay_signals():
        worker = os.fork()
        if worker == 0:
            _run_worker(work, limit, sending, printed)
    os.close(sending)
    # The subject of messages until `work` names its first part.
    part = "it"
    message: Fields = {}
    try:
        for line in _receive_worker_lines(messages, worker):
            message = json.loads(line)
            part = message.get("part", part)
            if "value" in message:
                yield message["value"]
    finally:
        with signals.delay_signals():
            status = _end_worker(worker)
            text = os.pread(printed, SHOWN, 0)
            size = os.fstat(printed).st_size
            os.close(messages)
            os.close(printed)
        if text:
            progress.print_message(text.decode(errors="replace").rstrip("\n"))
    # The kernel lets the file grow to this size and no further (RLIMIT_FSIZE).
    if size >= PRINTED:
        raise UserError(f"{part} was ended: it printed more than {PRINTED >> 20} MiB")
    if "failed" in message:
        raise UserError(message["failed"])
    if "done" not in message:
        raise UserError(f"{part} {_describe_worker_end(status, limit)}")


def _describe_worker_end(status: int, limit: float) -> str:
    """Return how the worker ended before it sent all values, as a predicate for a message.

    status: the worker's exit status; minus the signal's number if a signal ended the worker.
    limit: seconds for each part of the work.
    """
    if status == -signal.SIGALRM:
        return f"was ended: it came to no end within {limit:g} s"
    if status < 0:
        return f"ended by signal {-status}; it may use {MEMORY >> 20} MiB of memory"
    return (
        f"ended with status {status} before its values were handed over: it may neither exit "
        "nor close descriptors that it did not open"
    )


def _receive_worker_lines(messages: int, worker: int) -> Iterator[bytes]:
    """Yield each line that the worker sends, without its line end, until the worker has ended.

    messages: descriptor of the pipe from the worker.  worker: its process ID.
    The end of the pipe does not show the worker's end: any process that the work has started may
    keep the pipe open.
    """
    worker_end = os.pidfd_open(worker)
    poll = select.poll()
    poll.register(messages, select.POLLIN)
    poll.register(worker_end, select.POLLIN)
    partial: list[bytes] = []
    try:
        while messages in {descriptor for descriptor, _ in poll.poll()}:
            piece = os.read(messages, 1 << 16)
            if not piece:
                # The work closed the pipe.
                poll.unregister(messages)
            *lines, unfinished = piece.split(b"\n")
            if lines:
                yield b"".join([*partial, lines[0]])
                yield from lines[1:]
                partial = []
            partial.append(unfinished)
    finally:
        os.close(worker_end)


def _end_worker(worker: int) -> int:
    """Kill the worker, if it still runs, and all processes of its group; return its exit status.

    worker: its process ID.
    The status is minus the signal's number if a signal ended the worker.
    """
    os.kill(worker, signal.SIGKILL)
    with contextlib.suppress(OSError):
        # The worker may have had no time to create its group.
        os.killpg(worker, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])


def _run_worker(
    work: Callable[[NamePart], Iterator[Any]], limit: float, messages: int, printed: int
) -> None:
    """Run the work in this process, the worker, and send its parts, its values, and how it ended.

    Each message is a line of JSON with one key: part, value, done or failed.
    :func:`run_in_bounded_process` relies on the keys.
    limit: seconds for each part of the work, after which SIGALRM ends the process.
    messages: descriptor of the pipe to the parent.  printed: descriptor of the file for all output.
    Makes the process the leader of a new group.  Never returns: the process exits.
    """
    part = "it"
    exit_code = 1
    worker = os.getpid()

    def send_message(key: str, value: object) -> None:
        """Send a message to the parent process, and restart the time limit."""
        if os.getpid() != worker:
            # A process that the work has forked came here, too.
            os._exit(1)
        text = json.dumps({key: value}).encode() + b"\n"
        # The timer is off while the message is sent: a stopped parent reads no message.
        signal.setitimer(signal.ITIMER_REAL, 0)
        while text:
            text = text[os.write(messages, text) :]
        signal.setitimer(signal.ITIMER_REAL, limit)

    def name_part(name: str) -> None:
        """Remember and send the name of the part of the work that begins."""
        nonlocal part
        part = name
        send_message("part", name)

    try:
        os.setsid()
        messages = _isolate_process(messages, printed)
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
        import traceback

        sys.stderr.write(traceback.format_exc()[:SHOWN])
        send_message("failed", f"{part} failed: {type(error).__name__}: {error}"[:REASON])
    finally:
        try:
            sys.stdout.flush()
        finally:
            # This copy of the parent runs none of the parent's code for its exit.
            os._exit(exit_code)


def _isolate_process(messages: int, printed: int) -> int:
    """Give this process, the worker, its streams, limits and SIGALRM's default action.

    printed: descriptor of the file that becomes standard output and standard error.
    messages: descriptor of the pipe to the parent; its new number is returned.  All others above 2
    are closed: a lock of the parent is then free once the parent has ended.
    """
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream in (1, 2):
        os.dup2(printed, stream)
    descriptor = fcntl.fcntl(messages, fcntl.F_DUPFD_CLOEXEC, LEAST_DESCRIPTOR)
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, os.sysconf("SC_OPEN_MAX"))
    sys.stdout = sys.stderr = open(
        1, "w", encoding="utf-8", errors="backslashreplace", closefd=False
    )
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (PRINTED, PRINTED))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    return descriptor

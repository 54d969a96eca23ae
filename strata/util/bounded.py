"""Parsers and patterns of a workload's author, run in a process of bounded time, memory and output.

None of them can then hold a cell, and with it the machine, for ever.  Two processes do that: a
worker, and the leader of its process group.  The leader ends the group as soon as the worker ends
or exceeds its time, and also where this process was stopped or killed meanwhile.
"""

import contextlib
import fcntl
import itertools
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator

from strata.util import progress, signals
from strata.util.data_types import Any, Fields
from strata.util.errors import UserError
from strata.util.timeouts import stretch

# The limits: seconds for each part of the work, bytes of memory, and bytes that the work may print.
SECONDS = 60
MEMORY = 2 << 30
PRINTED = 1 << 20
# How many characters are shown of the work's output, and of the reason why it failed.
SHOWN = 4000
REASON = 2000
# The worker's descriptor for its messages: lines of JSON with one key: part, value, done or failed.
MESSAGES = 3
# The worker's descriptor for its state: it works, or it sends a message.
STATE = 4
WORKS = b"+"
SENDS = b"-"

# A function that is called with the name of each part of the work before it begins.
NamePart = Callable[[str], None]


def run_bounded(work: Callable[[NamePart], Iterator[Any]]) -> Iterator[Any]:
    """Run `work` in another process, and yield each of its values as soon as it is known.

    work: called with a function that names its parts; its values must be such as JSON holds.
    Prints what `work` printed on standard error, and kills all processes of its group.
    Raises UserError, with the name of the part, where `work` raises any error, exceeds a limit or
    ends its process.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    messages, writing = os.pipe()
    printed, verdict = os.memfd_create("printed"), os.memfd_create("verdict")
    with signals.delay_signals():
        leader = os.fork()
        if leader == 0:
            _lead(work, writing, printed, verdict)
    os.close(writing)
    name, last = "it", {"part": "it"}
    try:
        for line in _lines(messages, leader):
            last = _decoded(line, name)
            name = last.get("part", name)
            if "value" in last:
                yield last["value"]
    finally:
        with signals.delay_signals():
            os.kill(leader, signal.SIGKILL)
            with contextlib.suppress(OSError):
                # There is no group yet where the leader had no time to found it.
                os.killpg(leader, signal.SIGKILL)
            os.waitpid(leader, 0)
            text, size = os.pread(printed, SHOWN, 0), os.fstat(printed).st_size
            status = os.pread(verdict, SHOWN, 0).decode() or str(-signal.SIGKILL)
            for file in (messages, printed, verdict):
                os.close(file)
        if text:
            progress.print_message(text.decode(errors="replace").rstrip("\n"))
    if size >= PRINTED:
        raise UserError(f"{name} was ended: it printed more than {PRINTED >> 20} MiB")
    if status == "late":
        raise UserError(f"{name} was ended: it came to no end within {stretch(SECONDS):g} s")
    if "failed" in last:
        raise UserError(last["failed"])
    if "done" not in last:
        raise UserError(f"{name} {_ending(int(status))}")


def _ending(status: int) -> str:
    """Return how the worker process ended before it sent all values, as the rest of a sentence.

    status: its exit status; minus the signal's number where a signal killed it.
    """
    if status < 0:
        return f"ended by signal {-status}; it may use {MEMORY >> 20} MiB of memory"
    return (
        f"ended with status {status} before its values were handed over: it may neither exit "
        "nor close descriptors that it did not open"
    )


def _lines(messages: int, leader: int) -> Iterator[bytes]:
    """Yield each line that the worker process sends, until the leader process has ended.

    messages: descriptor of the pipe from the worker.  leader: the leader's process ID.
    The leader's end decides, since the pipe stays open while any process that the work has started
    holds it.
    """
    ended = os.pidfd_open(leader)
    poll = select.poll()
    for file in (messages, ended):
        poll.register(file, select.POLLIN)
    partial: list[bytes] = []
    try:
        while messages in {file for file, _ in poll.poll()}:
            piece = os.read(messages, 1 << 16)
            if not piece:
                poll.unregister(messages)
            *whole, rest = piece.split(b"\n")
            if whole:
                yield b"".join([*partial, whole[0]])
                yield from whole[1:]
                partial = []
            partial.append(rest)
    finally:
        os.close(ended)


def _decoded(line: bytes, name: str) -> Fields:
    """Parse a line that the worker process sent, and return its message.

    name: the part of the work, for the error's message.
    Raises UserError where the line is no message: the work itself wrote to the worker's descriptor.
    """
    with contextlib.suppress(ValueError, RecursionError):
        message = json.loads(line)
        if isinstance(message, dict):
            return message
    raise UserError(
        f"{name} failed: it wrote to descriptor {MESSAGES}, which it did not open; "
        "let it write to standard output, or to files of its own"
    )


def _lead(
    work: Callable[[NamePart], Iterator[Any]], messages: int, printed: int, verdict: int
) -> None:
    """Lead a new process group: start the worker process in it, and kill the group at its end.

    messages, printed: descriptors for the worker's messages and its output.
    verdict: descriptor of the file to which the worker's exit status (minus the signal's number) is
    written, or "late" where a part exceeded its time.
    Never returns: the calling process is the leader, and is killed with its group.
    """
    try:
        os.setsid()
        # Of the parent's files it keeps none: locks are free once the parent has ended.
        kept = [2, *sorted((messages, printed, verdict)), os.sysconf("SC_OPEN_MAX")]
        for low, high in itertools.pairwise(kept):
            os.closerange(low + 1, high)
        read, activity = os.pipe()
        worker = os.fork()
        if worker == 0:
            _work(work, messages, printed, activity)
        os.close(activity)
        late = _is_late(worker, read, messages)
        os.kill(worker, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
        os.write(verdict, b"late" if late else str(status).encode())
    finally:
        with contextlib.suppress(OSError):
            os.killpg(os.getpid(), signal.SIGKILL)
        os._exit(1)


def _is_late(worker: int, activity: int, messages: int) -> bool:
    """Wait for the end of the worker, the parent or a part's time; return whether time ran out.

    worker: the worker's process ID.  activity: descriptor from which its states are read.
    messages: descriptor of the pipe to the parent, of which only errors are watched.
    The time does not run while the worker sends a message: a stopped parent reads none.
    """
    ended = os.pidfd_open(worker)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(activity, select.POLLIN)
    # An error is seen where nobody can read the messages any more.
    poll.register(messages, 0)
    deadline: float | None = time.monotonic() + stretch(SECONDS)
    while True:
        left = None if deadline is None else 1000 * max(0.0, deadline - time.monotonic())
        ready = {file for file, _ in poll.poll(left)}
        if ready != {activity}:
            return not ready
        state = os.read(activity, 1 << 16)
        if not state:
            # The work closed it: the part that runs is the last one.
            poll.unregister(activity)
        elif state.endswith(WORKS):
            deadline = time.monotonic() + stretch(SECONDS)
        elif state.endswith(SENDS):
            deadline = None


def _work(
    work: Callable[[NamePart], Iterator[Any]], messages: int, printed: int, activity: int
) -> None:
    """Run the work in the worker process, and send each part's name, each value, and how it ended.

    messages: descriptor of the pipe to the parent.  printed: descriptor of the file for all output.
    activity: descriptor to which the worker's states are written.
    Sets the process's streams, descriptors and resource limits.  Never returns: the process exits.
    """
    part, code, worker = "it", 1, os.getpid()

    def send(key: str, value: object) -> None:
        """Send a message to the parent process, and a state before and after it.

        The leader process stops the time of the work between the two states.
        """
        if os.getpid() != worker:
            # A process that the work has forked came here, too.
            os._exit(1)
        text = json.dumps({key: value}).encode() + b"\n"
        os.write(STATE, SENDS)
        while text:
            text = text[os.write(MESSAGES, text) :]
        os.write(STATE, WORKS)

    def at(name: str) -> None:
        """Set and send the name of the part of the work that begins."""
        nonlocal part
        part = name
        send("part", name)

    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for file in (1, 2):
            os.dup2(printed, file)
        kept = [fcntl.fcntl(file, fcntl.F_DUPFD, 10) for file in (messages, activity)]
        for file, number in zip(kept, (MESSAGES, STATE), strict=True):
            os.dup2(file, number, inheritable=False)
        os.closerange(STATE + 1, os.sysconf("SC_OPEN_MAX"))
        sys.stdout = sys.stderr = open(
            1, "w", encoding="utf-8", errors="backslashreplace", closefd=False
        )
        for kind, most in ((resource.RLIMIT_DATA, MEMORY), (resource.RLIMIT_FSIZE, PRINTED)):
            resource.setrlimit(kind, (most, most))
        at(part)
        for value in work(at):
            send("value", value)
        send("done", True)
        code = 0
    except UserError as error:
        send("failed", str(error)[:REASON])
    except MemoryError:
        send("failed", f"{part} was ended: it needs more than {MEMORY >> 20} MiB of memory")
    except BaseException as error:
        import traceback

        sys.stderr.write(traceback.format_exc()[:SHOWN])
        send("failed", f"{part} failed: {type(error).__name__}: {error}"[:REASON])
    finally:
        try:
            sys.stdout.flush()
        finally:
            os._exit(code)

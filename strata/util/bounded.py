"""Run the code of a workload's author in a child process with limits of time, memory and output.

A parser that never ends would otherwise keep a cell, and with it the lock of the machine, for ever.
"""

import contextlib
import json
import os
import resource
import select
import signal
import sys
from collections.abc import Callable, Iterator

from strata.util import progress, signals
from strata.util.data_types import Any
from strata.util.errors import UserError
from strata.util.timeouts import stretched

# The limits: seconds for each part of the work, bytes of memory, and bytes that the work may print.
SECONDS = 60
MEMORY = 2 << 30
PRINTED = 1 << 20
# After so many seconds more a child ends by itself, if its parent is gone.
SPARE = 5
# How many characters are shown of the child's output, and of the reason why it failed.
SHOWN = 4000
REASON = 2000

# A function that is called with the name of each part of the work before it begins.
At = Callable[[str], None]


def run(work: Callable[[At], Iterator[Any]]) -> Iterator[Any]:
    """Run `work` in a child process, and yield each of its values as soon as it is known.

    work: is called with a function that names its parts; its values must be such as JSON holds.
    Raises UserError with the name of the part where `work` raises anything, or a part exceeds a
    limit.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    reading, writing = os.pipe()
    printed = os.memfd_create("printed")
    with signals.undisturbed():
        child = os.fork()
        if child == 0:
            _work(work, writing, printed)
    os.close(writing)
    part = "it"
    is_late = False
    message = {"part": part}
    try:
        for line in _lines(reading):
            is_late = not line
            if is_late:
                break
            message = json.loads(line)
            part = message.get("part", part)
            if "value" in message:
                yield message["value"]
    finally:
        with signals.undisturbed():
            os.kill(child, signal.SIGKILL)
            with contextlib.suppress(OSError):
                # The processes that it started.  There is no group if it was killed at once.
                os.killpg(child, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            os.close(reading)
            text = os.pread(printed, SHOWN, 0)
            size = os.fstat(printed).st_size
            os.close(printed)
    if text:
        progress.shown(text.decode(errors="replace").rstrip("\n"))
    if size >= PRINTED:
        raise UserError(f"{part} was ended: it printed more than {PRINTED >> 20} MiB")
    if is_late:
        raise UserError(f"{part} was ended: it came to no end within {stretched(SECONDS):g} s")
    if "done" not in message:
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        ended = f"{part} ended {how}; it may use {MEMORY >> 20} MiB of memory"
        raise UserError(message.get("failed", ended))


def _lines(reading: int) -> Iterator[bytes]:
    """Yield the lines that a child writes into a pipe; an empty one where it is silent too long."""
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    beginning: list[bytes] = []
    while poll.poll(stretched(SECONDS) * 1000):
        piece = os.read(reading, 1 << 16)
        if not piece:
            return
        *lines, rest = piece.split(b"\n")
        if lines:
            yield b"".join([*beginning, lines[0]])
            yield from lines[1:]
            beginning = []
        beginning.append(rest)
    yield b""


def _work(work: Callable[[At], Iterator[Any]], writing: int, printed: int) -> None:
    """Be the child process: do the work, and send its parts, values and failure to the parent.

    writing: descriptor of the pipe; a message is a line of JSON with one key: part, value, done or
    failed.  printed: descriptor of the file that takes standard output and standard error.
    """
    part = "it"
    code = 1

    def send(key: str, value: object) -> None:
        text = json.dumps({key: value}).encode() + b"\n"
        while text:
            text = text[os.write(writing, text) :]

    def begin_part(name: str) -> None:
        nonlocal part
        part = name
        send("part", name)
        signal.setitimer(signal.ITIMER_REAL, stretched(SECONDS) + SPARE)

    try:
        os.setsid()
        # It keeps no file of the parent's open, so that the parent's locks are free when that ends.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for file in (1, 2):
            os.dup2(printed, file)
        writing = os.dup2(writing, 3, inheritable=False)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        sys.stdout = sys.stderr = open(
            1, "w", encoding="utf-8", errors="backslashreplace", closefd=False
        )
        for kind, limit in ((resource.RLIMIT_DATA, MEMORY), (resource.RLIMIT_FSIZE, PRINTED)):
            resource.setrlimit(kind, (limit, limit))
        begin_part(part)
        for value in work(begin_part):
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

"""Parsers and patterns of a workload's author, run in a child process of bounded time, memory and output.

Neither of them can then hold a cell, and with it the machine, for ever.
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

# Seconds for each part of the work, bytes of memory for all of it, and bytes that it may print.
SECONDS, MEMORY, PRINTED = 60, 2 << 30, 1 << 20
# Seconds by which a child that nobody waits for any more outlasts its time.
SPARE = 5
# What a person sees of what it printed, and of why it fails, in characters.
SHOWN, REASON = 4000, 2000

# Names the part that begins now, for the message where it comes to no end.
At = Callable[[str], None]


def run(work: Callable[[At], Iterator[Any]]) -> Iterator[Any]:
    """The values that `work` yields, as JSON holds them, in a child process; each as soon as it is there.

    work: is called with a function that it calls with a name before each part begins.
    Raises UserError where `work` does, where it raises anything else, and where a part exceeds a limit; with the
    name of the part.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    heard, told = os.pipe()
    printed = os.memfd_create("printed")
    with signals.undisturbed():
        child = os.fork()
        if child == 0:
            _work(work, told, printed)
    os.close(told)
    name, late, last = "it", False, {"at": "it"}
    try:
        for line in _lines(heard):
            if late := not line:
                break
            last = json.loads(line)
            name = last.get("at", name)
            if "is" in last:
                yield last["is"]
    finally:
        with signals.undisturbed():
            os.kill(child, signal.SIGKILL)
            with contextlib.suppress(OSError):
                # What it started, if it got as far as to lead a group.
                os.killpg(child, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            os.close(heard)
            text, size = os.pread(printed, SHOWN, 0), os.fstat(printed).st_size
            os.close(printed)
    if text:
        progress.shown(text.decode(errors="replace").rstrip("\n"))
    if size >= PRINTED:
        raise UserError(f"{name} was ended: it printed more than {PRINTED >> 20} MiB")
    if late:
        raise UserError(f"{name} was ended: it came to no end within {stretched(SECONDS):g} s")
    if "done" not in last:
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        ended = f"{name} ended {how}; it may use {MEMORY >> 20} MiB of memory"
        raise UserError(last.get("failed", ended))


def _lines(heard: int) -> Iterator[bytes]:
    """The lines of a child as they come; an empty one where it is silent for too long."""
    poll = select.poll()
    poll.register(heard, select.POLLIN)
    begun: list[bytes] = []
    while poll.poll(stretched(SECONDS) * 1000):
        piece = os.read(heard, 1 << 16)
        if not piece:
            return
        *whole, rest = piece.split(b"\n")
        if whole:
            yield b"".join([*begun, whole[0]])
            yield from whole[1:]
            begun = []
        begun.append(rest)
    yield b""


def _work(work: Callable[[At], Iterator[Any]], told: int, printed: int) -> None:
    """The child: says line by line what it is at, what it yields, and why it fails."""
    part, code = "it", 1

    def say(key: str, value: object) -> None:
        text = json.dumps({key: value}).encode() + b"\n"
        while text:
            text = text[os.write(told, text) :]

    def at(name: str) -> None:
        nonlocal part
        part = name
        say("at", name)
        signal.setitimer(signal.ITIMER_REAL, stretched(SECONDS) + SPARE)

    try:
        os.setsid()
        # Of the parent's files it keeps none: locks are free once the parent has ended.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for file in (1, 2):
            os.dup2(printed, file)
        told = os.dup2(told, 3, inheritable=False)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        sys.stdout = sys.stderr = open(
            1, "w", encoding="utf-8", errors="backslashreplace", closefd=False
        )
        for kind, most in ((resource.RLIMIT_DATA, MEMORY), (resource.RLIMIT_FSIZE, PRINTED)):
            resource.setrlimit(kind, (most, most))
        at(part)
        for value in work(at):
            say("is", value)
        say("done", True)
        code = 0
    except UserError as error:
        say("failed", str(error)[:REASON])
    except MemoryError:
        say("failed", f"{part} was ended: it needs more than {MEMORY >> 20} MiB of memory")
    except BaseException as error:
        import traceback

        sys.stderr.write(traceback.format_exc()[:SHOWN])
        say("failed", f"{part} failed: {type(error).__name__}: {error}"[:REASON])
    finally:
        try:
            sys.stdout.flush()
        finally:
            os._exit(code)

"""Signals that ask this process to end, and their delay while a child process starts."""

import contextlib
import signal
from collections.abc import Iterator

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# The signal that a thread of this process sends once the run has ended.  No caller uses or ignores
# this signal.
RUN_ENDED = signal.SIGUSR1


class Interrupted(BaseException):
    """A signal asked this process to end; the message names the signal.

    The exit status follows from that message (strata/__main__.py).
    """


# How many blocks of `delay_signals` are running, and the signal that came meanwhile.
_blocks = 0
_pending: Interrupted | None = None


def raise_on_signals() -> None:
    """Raise Interrupted at the first signal that asks this process to end, and ignore later ones.

    Sets the handlers of these signals; those that the caller ignores (``nohup``, a job in the
    background) stay ignored.  Only the main thread may call this.
    """
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _raise_interrupted)
    signal.signal(RUN_ENDED, _raise_interrupted)


def restore_child_signal() -> None:
    """Restore the default action of SIGCHLD: if a process ignores it, exit codes are lost.

    Does nothing outside of the main thread.
    """
    # Python refuses this in all threads but the first.
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def ignore_signals() -> None:
    """Ignore signals that ask this process to end, until it ends: clean-up is not interrupted.

    Sets handlers that do nothing, instead of SIG_IGN, which child processes would inherit.
    """
    for number in (*ENDING, RUN_ENDED):
        signal.signal(number, lambda number, frame: None)


def _raise_interrupted(number: int, frame: object) -> None:
    """Raise Interrupted, now or at the end of :func:`delay_signals`, and ignore later signals.

    This is the handler of the signals that end the process; Python decides its parameters.
    number: the signal.
    frame: not used.
    """
    global _pending
    ignore_signals()
    error = Interrupted(
        "the end of its run" if number == RUN_ENDED else signal.Signals(number).name
    )
    if not _blocks:
        raise error
    _pending = error


@contextlib.contextmanager
def delay_signals() -> Iterator[None]:
    """Delay the exception Interrupted until the end of the `with` block.

    If a child process starts in such a block, its caller always gets its process ID, and can end
    it.
    Blocks may be nested: only the end of the outermost block raises.  If the block itself raises,
    Interrupted replaces that exception.
    """
    global _blocks, _pending
    _blocks += 1
    try:
        yield
    finally:
        _blocks -= 1
        if _pending and not _blocks:
            error = _pending
            _pending = None
            raise error

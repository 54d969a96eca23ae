"""Signals that end this process, held back while a child starts that is not registered yet."""

import contextlib
import signal
from collections.abc import Iterator

ASKING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# By it a thread of this process says that the run has ended: nobody else's, and ignored by no caller.
ENDED = signal.SIGUSR1


class Interrupted(BaseException):
    """A signal, which it names, asked this process to end."""


_starting = 0
_asked: Interrupted | None = None


def heed() -> None:
    """From now on the first signal that asks this process to end raises Interrupted, and no other does anything.

    Signals that the caller ignored (``nohup``, a job in the background) stay ignored.
    """
    for number in ASKING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _on_signal)
    signal.signal(ENDED, _on_signal)


def hear_children() -> None:
    """Hear of the end of children, also where the caller ignored that: their exit codes would be lost."""
    with contextlib.suppress(ValueError):
        # Elsewhere than in the first thread it stays as it is.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def ignore() -> None:
    """From now on no such signal does anything; children hear them as ever."""
    for number in (*ASKING, ENDED):
        signal.signal(number, lambda number, frame: None)


def _on_signal(number: int, frame: object) -> None:
    global _asked
    ignore()
    error = Interrupted("the end of its run" if number == ENDED else signal.Signals(number).name)
    if not _starting:
        raise error
    _asked = error


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """A signal that comes inside is heard at the end: what starts there is known to who must end it."""
    global _starting, _asked
    _starting += 1
    try:
        yield
    finally:
        _starting -= 1
        if _asked and not _starting:
            error, _asked = _asked, None
            raise error

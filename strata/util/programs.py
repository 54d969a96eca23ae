"""R, git and Python where they make or check a result: each starts here, in the same environment whoever calls.

Of the caller's variables it holds PATH, which decides which R there is, the folder for temporary files, and those of
OpenBLAS, which on some processors choose a kernel that computes right.  HOME is an empty folder: no profile of R, git,
fontconfig, pandoc or LaTeX is read.
"""

import contextlib
import contextvars
import fcntl
import glob
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence

from strata.util import access
from strata.util.data_types import Any, Fields
from strata.util.errors import MachineError, UserError
from strata.util.files import remove_tree
from strata.util.process import capture

_FIXED = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "SOURCE_DATE_EPOCH": "0"}
_OF_GIT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    # Whatever a repository says of its remotes, none is asked.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
}
# R and LaTeX take this long at most.
_LONG = 3600
# The words before the command lines of R and Python: those of a sandbox.
_within: contextvars.ContextVar[tuple[str, ...]] = contextvars.ContextVar("within", default=())
# How the names of temporary folders begin.
_SCRATCH = "strata-scratch-"
# Python without its variables: with the code of one folder, and behind its own packages those that this one found.
_START = """
import runpy, sys
folder, packages, *sys.argv[1:] = sys.argv[1:]
sys.path.insert(0, folder)
sys.path += [path for path in packages.split("\\n") if path not in sys.path]
runpy.run_module("strata", run_name="__main__", alter_sys=True)
"""


@contextlib.contextmanager
def scratch(name: str, place: str | None = None) -> Iterator[str]:
    """A temporary folder, in another one if named, which is gone at the end.  Raises MachineError where none can be
    made."""
    sweep(place)
    lock = None
    try:
        while lock is None:
            folder = tempfile.mkdtemp(prefix=f"{_SCRATCH}{name}-", dir=place)
            # Not where somebody removes what nobody holds yet.
            lock = _hold(folder)
    except OSError as error:
        where = place or tempfile.gettempdir()
        reason = access.find_reason(error, where)
        raise MachineError(f"{where}: no temporary folder can be made there: {reason}") from None
    try:
        yield folder
    finally:
        with contextlib.suppress(UserError):
            remove_tree(folder)
        os.close(lock)


def _hold(folder: str) -> int | None:
    """The lock of a folder, which the kernel frees when this process ends, however it does; None where it is held."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.stat(folder)):
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(lock)
    return None


def sweep(place: str | None = None) -> list[str]:
    """Remove temporary folders of this user whose process has ended, in a folder or the usual one; their paths."""
    removed = []
    for path in glob.glob(f"{glob.escape(place or tempfile.gettempdir())}/{_SCRATCH}*"):
        with contextlib.suppress(OSError, UserError):
            lock = _hold(path) if os.stat(path).st_uid == os.geteuid() else None
            if lock is not None:
                remove_tree(path)
                os.close(lock)
                removed.append(path)
    return removed


@contextlib.contextmanager
def apart(**more: str) -> Iterator[Fields]:
    """How subprocess starts a program, ``{env, umask}``; `more` are variables of its own."""
    with scratch("home") as home:
        taken = {key: text for key, text in os.environ.items() if key.startswith("OPENBLAS_")}
        os.mkdir(temporary := os.path.join(home, "tmp"))
        place = {"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": temporary, "HOME": home}
        yield {"env": {**taken, **place, **_FIXED, **more}, "umask": 0o022}


@contextlib.contextmanager
def within(words: Sequence[str]) -> Iterator[None]:
    """R and Python start by a command that runs them in something, such as a sandbox."""
    before = _within.set(tuple(words))
    try:
        yield
    finally:
        _within.reset(before)


def run(
    argv: Sequence[str], timeout: float = 120, check: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a tool, and return what it printed.  Raises as :func:`strata.util.process.capture`."""
    with apart() as start:
        return capture(argv, timeout, check, **start)


def r(*words: str, folder: str = ".") -> str:
    """What R prints on standard output, run in a folder with a script or an expression and its arguments.

    Raises MachineError with R's words where it fails.
    """
    if not shutil.which("Rscript"):
        raise MachineError("Rscript is not installed: run `make setup-paper`")
    with apart() as start:
        done = capture(
            [*_within.get(), "Rscript", "--vanilla", *words],
            _LONG,
            check=False,
            cwd=folder,
            **start,
        )
    if done.returncode != 0:
        raise MachineError(f"{os.path.basename(words[0])}: {_words(done)}")
    return done.stdout


def python(folder: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the package `strata` that lies in a folder, there.

    Raises UserError with its words where it refuses what it was given (status 1), and MachineError where it fails.
    """
    packages = [
        path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")
    ]
    argv = [
        sys.executable,
        "-I",
        "-c",
        _START,
        os.path.abspath(folder),
        "\n".join(packages),
        *words,
    ]
    with apart() as start:
        done = capture([*_within.get(), *argv], _LONG, check=False, cwd=folder, **start)
    if done.returncode != 0:
        kind = UserError if done.returncode == 1 else MachineError
        raise kind(_words(done).removeprefix("strata: "))
    return done


def git(
    project: str, *words: str, check: bool = False, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run git in a folder, whoever owns it.  more: variables of its own.

    Raises MachineError where it cannot be started, or where it fails and `check` is set.
    """
    with for_git(project, **more) as start:
        done = capture(["git", "-C", project, *words], check=False, **start)
    if check and done.returncode != 0:
        raise MachineError(f"git failed: {_words(done)}")
    return done


@contextlib.contextmanager
def for_git(project: str, **more: str) -> Iterator[Fields]:
    """As :func:`apart`, for git in a folder: no settings but the repository's own, and none that would start a program
    or change bytes."""
    own = dict.fromkeys((os.path.abspath(project), os.path.realpath(project)))
    settings = [("safe.directory", path) for path in own]
    settings += [("core.fsmonitor", "false"), ("core.autocrlf", "false")]
    found = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, text) in enumerate(settings):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": text}
    with apart(**_OF_GIT, **found, **more) as start:
        yield start


def _words(done: subprocess.CompletedProcess[Any]) -> str:
    """What a program said that failed."""
    return (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"

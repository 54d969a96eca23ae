"""Run R, git and Python where they make or check results, in an environment that is always equal.

It holds three kinds of the caller's variables: PATH, which decides which R runs; TMPDIR; and those
of OpenBLAS, which on some processors choose a kernel that computes correctly.  HOME is an empty
folder, so that no profile of R, git, fontconfig, pandoc or LaTeX is read.
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
import time
from collections.abc import Iterator, Sequence

from strata.util import access, progress, timeouts
from strata.util.data_types import Any, Fields
from strata.util.errors import MachineError, UserError
from strata.util.files import remove_tree
from strata.util.process import capture

_FIXED = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "SOURCE_DATE_EPOCH": "0"}
_GIT_FIXED = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    # git connects to no remote of a repository, whatever its settings are.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
}
# Seconds that R or Python may take, unless `time_limit` bounds several of them together.
_LONG = 3600
# When the time of `time_limit` is over, by time.monotonic(); None outside of it.
_deadline: contextvars.ContextVar[float | None] = contextvars.ContextVar("deadline", default=None)
# The command that R and Python run in, such as that of a sandbox.
_wrapper: contextvars.ContextVar[tuple[str, ...]] = contextvars.ContextVar("wrapper", default=())
# The beginning of the names of temporary folders.
_SCRATCH = "strata-scratch-"
# Starts the package `strata` of one folder in an isolated Python (-I), which also finds the
# packages of this Python.
_START = """
import runpy, sys
folder, packages, *sys.argv[1:] = sys.argv[1:]
sys.path.insert(0, folder)
sys.path += [path for path in packages.split("\\n") if path not in sys.path]
runpy.run_module("strata", run_name="__main__", alter_sys=True)
"""


@contextlib.contextmanager
def temporary_folder(name: str, place: str | None = None) -> Iterator[str]:
    """Make a temporary folder for the block; it is locked, so that nobody sweeps it away.

    name: is part of its name.  place: the folder that holds it; None: the usual one.
    Raises MachineError where it cannot be made.
    """
    remove_abandoned_folders(place)
    lock = None
    try:
        while lock is None:
            folder = tempfile.mkdtemp(prefix=f"{_SCRATCH}{name}-", dir=place)
            # Another process may have swept it away before it was locked.
            lock = _lock(folder)
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


def _lock(folder: str) -> int | None:
    """Lock a folder, and return the descriptor that holds the lock.

    Returns None where another process holds it, or the folder is gone.
    """
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


def remove_abandoned_folders(place: str | None = None) -> list[str]:
    """Remove this user's temporary folders whose process has ended, and return their paths.

    place: the folder that holds them; None: the usual one.
    """
    removed = []
    for path in glob.glob(f"{glob.escape(place or tempfile.gettempdir())}/{_SCRATCH}*"):
        with contextlib.suppress(OSError, UserError):
            if os.stat(path).st_uid != os.geteuid():
                continue
            lock = _lock(path)
            if lock is not None:
                remove_tree(path)
                os.close(lock)
                removed.append(path)
    return removed


@contextlib.contextmanager
def clean_environment(**more: str) -> Iterator[Fields]:
    """Provide the clean environment of a program, as options of subprocess: ``{env, umask}``.

    more: variables that it has beside the fixed ones.
    """
    with temporary_folder("home") as home:
        variables = {key: text for key, text in os.environ.items() if key.startswith("OPENBLAS_")}
        variables["PATH"] = os.environ.get("PATH", os.defpath)
        variables["HOME"] = home
        variables["TMPDIR"] = os.path.join(home, "tmp")
        os.mkdir(variables["TMPDIR"])
        yield {"env": {**variables, **_FIXED, **more}, "umask": 0o022}


@contextlib.contextmanager
def wrap_programs(words: Sequence[str]) -> Iterator[None]:
    """Run R and Python within a command during the block, such as that of a sandbox.

    words: the command, to which their own command lines are appended.
    """
    before = _wrapper.set(tuple(words))
    try:
        yield
    finally:
        _wrapper.reset(before)


@contextlib.contextmanager
def time_limit(seconds: float, task: str) -> Iterator[None]:
    """Bound the time that R and Python may take in this block, all their starts together.

    seconds: the limit, which STRATA_PATIENCE multiplies.
    Raises UserError, which names `task` and how to raise the limit, where they take longer.
    """
    limit = timeouts.stretch(seconds)
    deadline = time.monotonic() + limit
    before = _deadline.set(deadline)
    try:
        yield
    except MachineError:
        if time.monotonic() < deadline:
            raise
        raised = f"{timeouts.VARIABLE}={2 * timeouts.read_patience()} doubles that limit"
        raise UserError(
            f"{task} did not end within {progress.format_duration(limit)}; {raised}"
        ) from None
    finally:
        _deadline.reset(before)


def _seconds_left() -> float:
    """The seconds, before STRATA_PATIENCE multiplies them, that a program may take now."""
    deadline = _deadline.get()
    if deadline is None:
        return _LONG
    return max(0, deadline - time.monotonic()) / timeouts.read_patience()


def run_tool(
    argv: Sequence[str], timeout: float = 120, check: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a tool in the clean environment, as :func:`strata.util.process.capture` does."""
    with clean_environment() as start:
        return capture(argv, timeout, check, **start)


def run_r(*words: str, folder: str = ".") -> str:
    """Run R in a folder, and return what it prints on standard output.

    words: a script, or options and an expression, with its arguments.
    Raises MachineError with R's message where it fails.
    """
    if not shutil.which("Rscript"):
        raise MachineError("Rscript is not installed: run `make setup-paper`")
    with clean_environment() as start:
        argv = [*_wrapper.get(), "Rscript", "--vanilla", *words]
        done = capture(argv, _seconds_left(), check=False, cwd=folder, **start)
    if done.returncode != 0:
        raise MachineError(f"{os.path.basename(words[0])}: {_message(done)}")
    return done.stdout


def run_python(folder: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Strata in a folder, by the code of the package `strata` in that folder.

    Raises UserError with its message where it refuses its input (status 1), MachineError where it
    fails.
    """
    names = ("site-packages", "dist-packages")
    packages = [path for path in sys.path if os.path.basename(path) in names]
    argv = [sys.executable, "-I", "-c", _START, os.path.abspath(folder), "\n".join(packages)]
    with clean_environment() as start:
        argv = [*_wrapper.get(), *argv, *words]
        done = capture(argv, _seconds_left(), check=False, cwd=folder, **start)
    if done.returncode != 0:
        error = UserError if done.returncode == 1 else MachineError
        raise error(_message(done).removeprefix("strata: "))
    return done


def run_git(
    project: str, *words: str, check: bool = False, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run git in a folder, whoever owns it.

    check: whether it must end with code 0.  more: variables of its environment.
    Raises MachineError where it cannot be started, or where it fails and `check` is set.
    """
    with git_environment(project, **more) as start:
        done = capture(["git", "-C", project, *words], check=False, **start)
    if check and done.returncode != 0:
        raise MachineError(f"git failed: {_message(done)}")
    return done


@contextlib.contextmanager
def git_environment(project: str, **more: str) -> Iterator[Fields]:
    """Provide the clean environment, as :func:`clean_environment` does, for git in a folder.

    git reads the settings of the repository alone, without those that would start a program or
    change the bytes of files.
    """
    names = dict.fromkeys((os.path.abspath(project), os.path.realpath(project)))
    settings = [("safe.directory", path) for path in names]
    settings += [("core.fsmonitor", "false"), ("core.autocrlf", "false")]
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, text) in enumerate(settings):
        variables[f"GIT_CONFIG_KEY_{number}"] = key
        variables[f"GIT_CONFIG_VALUE_{number}"] = text
    with clean_environment(**_GIT_FIXED, **variables, **more) as start:
        yield start


def _message(done: subprocess.CompletedProcess[Any]) -> str:
    """Return what a failed program printed, or its exit code."""
    return (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"

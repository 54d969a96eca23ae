"""Run R, git and Python where they make or check results, in an environment that is always equal.

The environment holds three kinds of the caller's variables: PATH, which decides which R runs;
TMPDIR; and those of OpenBLAS, which on some processors choose a kernel that computes correctly.
HOME is an empty folder, so that no profile of R, git, fontconfig, pandoc or LaTeX is read.
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
from strata.util.process import capture_output

_FIXED = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "SOURCE_DATE_EPOCH": "0"}
_GIT_FIXED = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    # git connects to no remote of a repository, whatever its settings are.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
}
# Seconds that R or Python may take, unless `limit_program_time` bounds several of them together.
_PROGRAM_SECONDS = 3600
# When the time of `limit_program_time` is up, by time.monotonic(); None outside of it.
_deadline: contextvars.ContextVar[float | None] = contextvars.ContextVar("deadline", default=None)
# A command such as that of a sandbox: the command lines of R and Python are appended to it.
_wrapper: contextvars.ContextVar[tuple[str, ...]] = contextvars.ContextVar("wrapper", default=())
# The beginning of the names of temporary folders, also of those that scripts/scratch.sh makes.
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
def create_temporary_folder(name: str, parent: str | None = None) -> Iterator[str]:
    """Create a temporary folder, yield its path, and remove the folder after the `with` block.

    The folder stays locked, which keeps :func:`remove_abandoned_folders` from removing it.
    Folders that killed processes left in the parent folder are removed first.
    name: a part of the folder's name.
    parent: the parent folder; None: the usual one (TMPDIR).
    If the folder cannot be removed, it is left without an error.
    Raises MachineError if the folder cannot be created.
    """
    remove_abandoned_folders(parent)
    lock = None
    try:
        while lock is None:
            folder = tempfile.mkdtemp(prefix=f"{_SCRATCH}{name}-", dir=parent)
            # Another process may have removed the folder before it was locked.
            lock = _lock_folder(folder)
    except OSError as error:
        parent = parent or tempfile.gettempdir()
        reason = access.explain_write_error(error, parent)
        raise MachineError(f"{parent}: no temporary folder can be made there: {reason}") from None
    try:
        yield folder
    finally:
        with contextlib.suppress(UserError):
            remove_tree(folder)
        os.close(lock)


def _lock_folder(folder: str) -> int | None:
    """Lock a folder, and return the descriptor that holds the lock; the caller closes it.

    Returns None if another process holds the lock, or the folder does not exist any more.
    Raises OSError if the folder cannot be opened for another reason.
    """
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Between the two calls the folder may have been removed, and made again by another process.
        if os.path.samestat(os.fstat(lock), os.stat(folder)):
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(lock)
    return None


def remove_abandoned_folders(parent: str | None = None) -> list[str]:
    """Remove this user's temporary folders whose process has ended, and return their paths.

    Folders of scripts/scratch.sh are removed, too.  A folder with a lock is in use, and stays.
    parent: the parent folder; None: the usual one (TMPDIR).
    A folder that cannot be removed is left without an error.
    """
    removed_paths = []
    for path in glob.glob(f"{glob.escape(parent or tempfile.gettempdir())}/{_SCRATCH}*"):
        with contextlib.suppress(OSError, UserError):
            if os.stat(path).st_uid != os.geteuid():
                continue
            lock = _lock_folder(path)
            if lock is not None:
                remove_tree(path)
                os.close(lock)
                removed_paths.append(path)
    return removed_paths


@contextlib.contextmanager
def create_clean_environment(**extra_variables: str) -> Iterator[Fields]:
    """Yield the clean environment for a program, as options of subprocess: ``{env, umask}``.

    HOME and TMPDIR are temporary folders, which exist during the `with` block only.
    extra_variables: additional environment variables, which override the fixed variables.
    Results rely on the fixed variables: other values can change the bytes of tables and papers.
    """
    with create_temporary_folder("home") as home:
        variables = {
            name: text for name, text in os.environ.items() if name.startswith("OPENBLAS_")
        }
        variables["PATH"] = os.environ.get("PATH", os.defpath)
        variables["HOME"] = home
        variables["TMPDIR"] = os.path.join(home, "tmp")
        os.mkdir(variables["TMPDIR"])
        yield {"env": {**variables, **_FIXED, **extra_variables}, "umask": 0o022}


@contextlib.contextmanager
def wrap_programs(arguments: Sequence[str]) -> Iterator[None]:
    """Run R and Python through a command, such as a sandbox, during the block.

    git and :func:`run_in_clean_environment` are not wrapped.
    arguments: the command; the command lines of R and Python are appended to it.
    """
    token = _wrapper.set(tuple(arguments))
    try:
        yield
    finally:
        _wrapper.reset(token)


@contextlib.contextmanager
def limit_program_time(seconds: float, task: str) -> Iterator[None]:
    """Limit the total time that R and Python may take during the `with` block.

    seconds: the limit, which STRATA_PATIENCE multiplies.
    task: the subject of the error's message, such as "the claim's test".
    Raises UserError, which says how to raise the limit, if R and Python exceed it.  Once the time
    is up, any MachineError of the block is replaced by that error.
    """
    limit = timeouts.scale_timeout(seconds)
    deadline = time.monotonic() + limit
    token = _deadline.set(deadline)
    try:
        yield
    except MachineError:
        if time.monotonic() < deadline:
            raise
        raise UserError(
            f"{task} did not end within {progress.format_duration(limit)}; "
            f"{timeouts.VARIABLE}={2 * timeouts.read_patience()} doubles that limit"
        ) from None
    finally:
        _deadline.reset(token)


def _compute_time_limit() -> float:
    """Return the seconds that R or Python may take now, before STRATA_PATIENCE multiplies them.

    Outside of :func:`limit_program_time`, the limit is :data:`_PROGRAM_SECONDS`.  The result is 0,
    never negative, once the time is up.
    """
    deadline = _deadline.get()
    if deadline is None:
        return _PROGRAM_SECONDS
    # `capture_output` multiplies its timeout; the deadline has been multiplied already.
    return max(0, deadline - time.monotonic()) / timeouts.read_patience()


def run_in_clean_environment(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command without the caller's variables, and return its exit code and output.

    argv: the program and its arguments.
    The command has the variables of :func:`create_clean_environment`.  A non-zero exit code is not
    an error: the caller must check `returncode`.
    Raises MachineError if the command cannot be started, or runs longer than the default time limit
    of :func:`strata.util.process.capture_output`.
    """
    with create_clean_environment() as options:
        return capture_output(argv, check=False, **options)


# The exit status with which analysis/script.R refuses its input, and the prefix of its message.
_REFUSED = 3
_REFUSAL = "refused: "


def run_r(*arguments: str, folder: str = ".") -> str:
    """Run R in the clean environment, and return its standard output.

    arguments: the arguments of Rscript: a script with its arguments, or options and an expression.
    folder: R's working directory.
    Raises UserError, with R's message, if the script refuses its input: analysis/script.R then ends
    with :data:`_REFUSED` and prints :data:`_REFUSAL`.  Raises MachineError if R is not installed,
    fails otherwise or exceeds its time.  Warnings of R are dropped if it succeeds.
    """
    if not shutil.which("Rscript"):
        raise MachineError("Rscript is not installed: run `make setup-paper`")
    with create_clean_environment() as options:
        argv = [*_wrapper.get(), "Rscript", "--vanilla", *arguments]
        result = capture_output(argv, _compute_time_limit(), check=False, cwd=folder, **options)
    _, mark, reason = result.stderr.partition(_REFUSAL)
    if result.returncode == _REFUSED and mark:
        raise UserError(reason.strip())
    if result.returncode != 0:
        raise MachineError(f"{os.path.basename(arguments[0])}: {_describe_failure(result)}")
    return result.stdout


def run_python(folder: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Strata with the code of the package `strata` in a folder.

    folder: holds that package, and is the working directory.
    arguments: the command, such as "tables", and its arguments.
    Returns the exit code, which is 0, and the output.
    Raises UserError with the command's message if it refuses its input (exit code 1), and
    MachineError if it fails otherwise.
    """
    folder_names = ("site-packages", "dist-packages")
    package_folders = [path for path in sys.path if os.path.basename(path) in folder_names]
    # The arguments of _START: the folder, and the folders of packages on a line each.
    start = [_START, os.path.abspath(folder), "\n".join(package_folders)]
    with create_clean_environment() as options:
        argv = [*_wrapper.get(), sys.executable, "-I", "-c", *start, *arguments]
        result = capture_output(argv, _compute_time_limit(), check=False, cwd=folder, **options)
    if result.returncode != 0:
        # strata/__main__.py ends with these exit codes.
        error_class = UserError if result.returncode == 1 else MachineError
        # The caller that prints this error adds the prefix again.
        raise error_class(_describe_failure(result).removeprefix("strata: "))
    return result


def run_git(
    project: str, *arguments: str, check: bool = False, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run git in a project's folder, and return its exit code and output.

    git accepts another user's folder, and never connects to a remote repository
    (:func:`create_git_environment`).
    project: the working directory.
    arguments: git's command and its arguments.
    check: whether an exit code other than 0 is an error; otherwise the caller must check it.
    variables: additional environment variables.
    Raises MachineError if git cannot be started, or fails under `check`.
    """
    with create_git_environment(project, **variables) as options:
        result = capture_output(["git", "-C", project, *arguments], check=False, **options)
    if check and result.returncode != 0:
        raise MachineError(f"git failed: {_describe_failure(result)}")
    return result


@contextlib.contextmanager
def create_git_environment(project: str, **extra_variables: str) -> Iterator[Fields]:
    """Yield the clean environment for git in a folder, as options of subprocess: ``{env, umask}``.

    git ignores the user's and the system's settings, accepts a folder of any owner, and neither
    starts a file system monitor nor converts line ends.
    project: the folder.
    extra_variables: additional variables.
    """
    # git may compare either form of the folder's path; equal forms are listed once.
    project_paths = dict.fromkeys((os.path.abspath(project), os.path.realpath(project)))
    settings = [("safe.directory", path) for path in project_paths]
    settings += [("core.fsmonitor", "false"), ("core.autocrlf", "false")]
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, text) in enumerate(settings):
        variables[f"GIT_CONFIG_KEY_{number}"] = key
        variables[f"GIT_CONFIG_VALUE_{number}"] = text
    with create_clean_environment(**_GIT_FIXED, **variables, **extra_variables) as options:
        yield options


def _describe_failure(result: subprocess.CompletedProcess[Any]) -> str:
    """Return the error output of a failed program; if empty, its output, or else its exit code.

    Without any output, the result is, for example, "exit code 2".
    """
    return (result.stderr or result.stdout).strip() or f"exit code {result.returncode}"

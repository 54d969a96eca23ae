"""A sandbox, made by bubblewrap, for an archive's own code, and the end of its processes.

Code in the sandbox has no network and sees no other process and no home.  It can read the system's
programs and one folder, and write that folder and a /tmp of its own.  It ends with this process.
Code of root runs as nobody, and no keys of the caller's session are in reach.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from strata.util import programs
from strata.util.errors import MachineError

# Programs, settings and caches of the system that R, pandoc and LaTeX read.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = ("alternatives", "fonts", "ld.so.cache", "localtime", "R", "texmf", "texlive")
_CACHES = ("/var/lib/texmf", "/var/cache/fontconfig")
_TOOLS = ("Rscript", "pandoc", "pdflatex")
# The user nobody, and its group.
_NOBODY = 65534
# PR_SET_CHILD_SUBREAPER of prctl(2).
_SET_CHILD_SUBREAPER = 36
# The program that starts the sandboxed command, which is its arguments.  A keyring of its own takes
# the caller's keys away (the system call keyctl, by its number on each architecture, with operation
# 1, KEYCTL_JOIN_SESSION_KEYRING), and root becomes nobody.
_DROP_RIGHTS = f"""
import ctypes, os, platform, sys
keyctl = {{"x86_64": 250, "aarch64": 219}}.get(platform.machine())
if keyctl:
    ctypes.CDLL(None).syscall(keyctl, 1, None)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({_NOBODY})
    os.setuid({_NOBODY})
os.execvp(sys.argv[1], sys.argv[1:])
"""
# Root needs no user namespace, where its processes would keep the rights of the host's root.
_NAMESPACES_OF_ROOT = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
_NAMESPACES_OF_ROOT += ["--unshare-cgroup-try", "--cap-drop", "ALL"]
_NAMESPACES_OF_ROOT += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
_NAMESPACES = ["--unshare-all", "--cap-drop", "ALL"]


def is_installed() -> bool:
    """Return whether bubblewrap is installed; the kernel may forbid a sandbox even so."""
    return shutil.which("bwrap") is not None


@contextlib.contextmanager
def run_sandboxed(folder: str) -> Iterator[None]:
    """Run the programs of R and Python that the block starts in a sandbox.

    folder: the only folder that they may write.  If this user is root, call
    :func:`change_owner_to_nobody` on it before.
    Within the block :func:`strata.util.programs.wrap_programs` puts bubblewrap before each command.
    Raises MachineError if this machine allows no sandbox.
    """
    prefix = _build_sandbox_argv(os.path.abspath(folder))
    result = programs.run_in_clean_environment([*prefix, "true"])
    if result.returncode != 0:
        raise MachineError(
            f"no sandbox can be made here ({result.stderr.strip()}): let bubblewrap make user "
            "namespaces (docs/archive.md), or use --sandbox no where you trust the archive: "
            "its code can then do all that you can"
        )
    with programs.wrap_programs(prefix):
        yield


def _build_sandbox_argv(folder: str) -> list[str]:
    """Return the arguments to put before a command so that it runs in the sandbox of a folder.

    folder: an absolute path; besides /tmp the only folder that the command may write.
    The order of the arguments must stay: bubblewrap carries out its options one after the other,
    and a later mount covers an earlier one.
    """
    is_root = os.geteuid() == 0
    readable = [
        *_SYSTEM,
        *(f"/etc/{name}" for name in _SETTINGS),
        *_CACHES,
        *_list_program_folders(),
    ]
    argv = ["bwrap", *(_NAMESPACES_OF_ROOT if is_root else _NAMESPACES)]
    argv += ["--die-with-parent", "--new-session"]
    argv += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chmod", "1777", "/tmp"]
    # Otherwise bubblewrap lets only its own user enter the folders above mounted ones.
    above = {str(parent) for path in (*readable, folder) for parent in Path(path).parents}
    for path in sorted(above - {"/", "/tmp", "/proc", "/dev"}):
        argv += ["--perms", "0755", "--dir", path]
    for path in readable:
        argv += ["--ro-bind-try", path, path]
    if is_root:
        # Without a user namespace root could write the host's kernel settings.
        argv += ["--ro-bind", "/proc/sys", "/proc/sys"]
    argv += ["--setenv", "HOME", "/tmp", "--setenv", "TMPDIR", "/tmp"]
    argv += ["--bind", folder, folder, "--chdir", folder, "--"]
    return [*argv, sys.executable, "-I", "-c", _DROP_RIGHTS]


def _list_program_folders() -> list[str]:
    """Return the paths of Python, R, pandoc and LaTeX that the sandbox may read, sorted.

    These are installation folders that are not in the folders of the system (`_SYSTEM`).  The home
    folder is never one of them: if a program is in ``~/bin`` or ``~/.local``, only its file is
    returned.
    """
    readable = {sys.prefix, sys.base_prefix}
    readable |= {path for path in sys.path if path.endswith(("/site-packages", "/dist-packages"))}
    home = os.path.expanduser("~")
    for tool in filter(None, map(shutil.which, _TOOLS)):
        readable.add(tool)
        # The folder above bin/, which must not be the home or one above it.
        prefix = os.path.dirname(os.path.dirname(os.path.realpath(tool)))
        if not home.startswith(prefix) and prefix != f"{home}/.local":
            readable.add(prefix)
    system = tuple(f"{folder}/" for folder in _SYSTEM)
    return sorted(path for path in readable if not f"{path}/".startswith(system))


@contextlib.contextmanager
def kill_processes_at_end() -> Iterator[None]:
    """Kill every process that was started in the block when the block ends, even a detached one.

    Within the block this process is a subreaper: orphans become its children.  The first process of
    a sandbox is one of them, and its end ends all others in the sandbox.
    Children from before the block are not killed.
    """
    libc = ctypes.CDLL(None)
    spared = _list_children()
    libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        while orphans := _list_children() - spared:
            for pid in orphans:
                try:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                except OSError:
                    # The process is root's, or something else has waited for it: without this line
                    # the loop would not end.
                    spared.add(pid)
        libc.prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _list_children() -> set[int]:
    """Return the process IDs of the children of this process."""
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return {int(pid) for pid in file.read().split()}


def change_owner_to_nobody(folder: str) -> None:
    """Give a folder and all files below it to the user nobody if this user is root.

    Code that root starts in the sandbox runs as nobody.  Links change their owner, and not the
    files to which they lead.  Nothing is done for other users.
    """
    if os.geteuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)
        for parent, folders, files in os.walk(folder):
            for name in (*folders, *files):
                path = os.path.join(parent, name)
                os.chown(path, _NOBODY, _NOBODY, follow_symlinks=False)


def copy_plain_files(folder: str, target: str) -> None:
    """Copy the regular files below a folder that sandboxed code wrote, as files of this user.

    target: the folder to write, created if missing.
    Links, which may lead elsewhere, pipes and other special files are left out.
    The processes of the code must have ended: they could replace a checked file by a link.
    """
    # Walking follows no links: linked folders are listed, and not entered.
    for parent, _, files in os.walk(folder):
        copy = os.path.join(target, os.path.relpath(parent, folder))
        os.makedirs(copy, exist_ok=True)
        for name in files:
            path = os.path.join(parent, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                shutil.copyfile(path, os.path.join(copy, name), follow_symlinks=False)

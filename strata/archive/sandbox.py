"""A sandbox for an archive's own code, by bubblewrap.

What runs in it has no network and sees no other process.  It can read the system's programs and one
folder, and write that folder alone; /tmp is its own, and it sees no home.  It ends with this process.
Root's code runs there as nobody; no keys of the caller's session are in reach.
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

# Programs, and of the settings and caches of the system those that R, pandoc and LaTeX read.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = ("alternatives", "fonts", "ld.so.cache", "localtime", "R", "texmf", "texlive")
_CACHES = ("/var/lib/texmf", "/var/cache/fontconfig")
_USED = ("Rscript", "pandoc", "pdflatex")
# PR_SET_CHILD_SUBREAPER of prctl(2).
_SET_CHILD_SUBREAPER = 36


def is_installed() -> bool:
    """Whether bubblewrap is."""
    return shutil.which("bwrap") is not None


def _elsewhere() -> list[str]:
    """Where Python, R, pandoc and LaTeX lie that are not the system's; never a whole home."""
    packages = (
        path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")
    )
    found, home = {sys.prefix, sys.base_prefix, *packages}, os.path.expanduser("~")
    for path in filter(None, map(shutil.which, _USED)):
        place = os.path.dirname(os.path.dirname(os.path.realpath(path)))
        found |= {path} if home.startswith(place) or place == f"{home}/.local" else {path, place}
    system = tuple(f"{place}/" for place in _SYSTEM)
    return sorted(path for path in found if not f"{path}/".startswith(system))


# What becomes of root's process before code of others starts in it: a user without rights, whose files
# and keys are nobody's.  Arguments: the command.
_START = """
import ctypes, os, platform, sys
number = {"x86_64": 250, "aarch64": 219}.get(platform.machine())
if number:
    ctypes.CDLL(None).syscall(number, 1, None)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
os.execvp(sys.argv[1], sys.argv[1:])
"""
# As root bubblewrap needs no user namespace, in which root would stay the host's own.
_ROOT = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
_ROOT += ["--unshare-cgroup-try", "--cap-drop", "ALL"]
_ROOT += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
_OTHERS = ["--unshare-all", "--cap-drop", "ALL"]


def _command(folder: str) -> list[str]:
    """The words before the command line of what runs in the sandbox, in a folder that is its own."""
    readable = [*_SYSTEM, *(f"/etc/{name}" for name in _SETTINGS), *_CACHES, *_elsewhere()]
    words = ["bwrap", *(_ROOT if os.geteuid() == 0 else _OTHERS)]
    words += ["--die-with-parent", "--new-session"]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chmod", "1777", "/tmp"]
    # Bubblewrap makes the folders above what it binds for its own user alone.
    above = {str(parent) for path in (*readable, folder) for parent in Path(path).parents}
    for path in sorted(above - {"/", "/tmp", "/proc", "/dev"}):
        words += ["--perms", "0755", "--dir", path]
    words += [word for path in readable for word in ("--ro-bind-try", path, path)]
    words += ["--ro-bind", "/proc/sys", "/proc/sys"] if os.geteuid() == 0 else []
    words += ["--setenv", "HOME", "/tmp", "--setenv", "TMPDIR", "/tmp"]
    words += ["--bind", folder, folder, "--chdir", folder, "--"]
    return [*words, sys.executable, "-I", "-c", _START]


@contextlib.contextmanager
def sandboxed(folder: str) -> Iterator[None]:
    """R and Python (`strata.util.programs`) start in a sandbox, in a folder that is there.

    The folder must be one that no other user can enter.  Raises MachineError where this machine
    lets no sandbox be made.
    """
    folder = os.path.abspath(folder)
    words = _command(folder)
    done = programs.run([*words, "true"])
    if done.returncode != 0:
        raise MachineError(
            f"no sandbox can be made here ({done.stderr.strip()}): let bubblewrap make user "
            "namespaces (docs/archive.md), or use --sandbox no where you trust the archive: "
            "its code can then do all that you can"
        )
    with programs.within(words):
        yield


@contextlib.contextmanager
def all_ended() -> Iterator[None]:
    """End every process that was started in this block, whatever it did to outlive its parent.

    Orphans become children of this process meanwhile, among them the first process of a sandbox,
    whose end is the end of all others in it.
    """
    libc = ctypes.CDLL(None)
    before = _children()
    libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        while orphans := _children() - before:
            for pid in orphans:
                try:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                except OSError:
                    # It is root's, or somebody else has waited for it.
                    before.add(pid)
        libc.prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _children() -> set[int]:
    """The ids of the processes whose parent is this one."""
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return {int(pid) for pid in file.read().split()}


def give_to_nobody(folder: str) -> None:
    """Give the files of a folder to the user whom code in the sandbox runs as."""
    if os.geteuid() == 0:
        for place, names, files in os.walk(folder):
            for path in (place, *(os.path.join(place, name) for name in (*names, *files))):
                os.chown(path, 65534, 65534, follow_symlinks=False)


def copy_plain_files(folder: str, target: str) -> None:
    """Copy the plain files of a folder, in which code of others ran, as files of this user's."""
    for place, names, files in os.walk(folder):
        into = os.path.join(target, os.path.relpath(place, folder))
        os.makedirs(into, exist_ok=True)
        # Links lead elsewhere, and a pipe has no end.
        names[:] = [name for name in names if not os.path.islink(os.path.join(place, name))]
        for name in files:
            path = os.path.join(place, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                shutil.copyfile(path, os.path.join(into, name), follow_symlinks=False)

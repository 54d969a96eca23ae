"""A sandbox for an archive's own code, by bubblewrap.

What runs in it has no network and sees no other process.  It can read the system's programs and one
folder, and write that folder alone; /tmp is its own, and it sees no home.  It ends with this process.
"""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator

from strata.util import programs
from strata.util.errors import MachineError

# Programs, and of the settings and caches of the system those that R, pandoc and LaTeX read.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = ("alternatives", "fonts", "ld.so.cache", "localtime", "R", "texmf", "texlive")
_CACHES = ("/var/lib/texmf", "/var/cache/fontconfig")
_USED = ("Rscript", "pandoc", "pdflatex")


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


def _command(folder: str) -> list[str]:
    """The words before the command line of what runs in the sandbox, in a folder that is its own."""
    folder = os.path.abspath(folder)
    readable = [*_SYSTEM, *(f"/etc/{name}" for name in _SETTINGS), *_CACHES, *_elsewhere()]
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    words += [word for path in readable for word in ("--ro-bind-try", path, path)]
    words += ["--setenv", "HOME", "/tmp", "--setenv", "TMPDIR", "/tmp"]
    return [*words, "--bind", folder, folder, "--chdir", folder, "--"]


@contextlib.contextmanager
def around(folder: str) -> Iterator[None]:
    """R and Python (`strata.util.programs`) start in a sandbox, in a folder that is there.

    Raises MachineError where this machine lets none be made.
    """
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

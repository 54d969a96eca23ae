"""What commands spend: CPU seconds of all their processes, seconds on the clock, memory."""

import ctypes
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
# What a person who types the command has not set, and what would change what it costs.
NOT_INHERITED = ("MAKE", "MFLAGS", "PYTHON", "RFM_", "SNAKEMAKE_", "STRATA_")
PATIENCE = 120.0


class Failed(Exception):
    """A measured command did not do what it was started for."""


@dataclass(frozen=True)
class Spent:
    """cpu, wall: seconds.  peak: bytes of memory that the largest of the processes held at once."""

    cpu: float
    wall: float
    peak: int
    printed: str = ""


def environment(home: Path) -> dict[str, str]:
    """The variables of measured commands, whose caches and temporary files are below `home`."""
    home.mkdir(parents=True, exist_ok=True)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(NOT_INHERITED)}
    places = {"HOME": home, "XDG_CACHE_HOME": home / "cache", "TMPDIR": home, "STRATA_HOME": home / "strata"}
    return {**kept, **{key: str(value) for key, value in places.items()}}


def _adopt(orphans: bool) -> None:
    """Whether processes whose parent ended become children of this one, so that what they spend is counted."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, int(orphans), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


class Running:
    """A command on its way.  One at a time: every child of this process counts as the command's."""

    def __init__(self, argv: list[str], folder: Path, variables: dict[str, str]) -> None:
        self.argv = argv
        self.output = tempfile.TemporaryFile()
        _adopt(True)
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            argv, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT
        )

    def end(self) -> None:
        """End the command, and wait for it: its folder is removed next."""
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def finish(self) -> Spent:
        """Wait for the command and for all that it started.  Raises Failed with its words where it failed."""
        try:
            _, status, usage = os.wait4(self.process.pid, 0)
        except BaseException:
            self.end()
            raise
        wall = time.monotonic() - self.begun
        self.process.returncode = os.waitstatus_to_exitcode(status)
        usages = [usage, *self._orphans()]
        _adopt(False)
        self.output.seek(0)
        printed = self.output.read().decode(errors="replace")
        self.output.close()
        if self.process.returncode != 0:
            raise Failed(f"{' '.join(self.argv)}: exit code {self.process.returncode}\n{printed[-3000:]}")
        cpu = sum(each.ru_utime + each.ru_stime for each in usages)
        return Spent(cpu, wall, max(each.ru_maxrss for each in usages) * 1024, printed)

    def _orphans(self) -> list:
        """What processes used that the command left behind and that end by themselves."""
        found = []
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                pid, _, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return found
            if pid:
                found.append(usage)
            else:
                time.sleep(0.01)
        raise Failed(f"{' '.join(self.argv)}: a process that it started does not end")


def run(argv: list[str], folder: Path, variables: dict[str, str]) -> Spent:
    """Run a command to its end.  Raises Failed."""
    return Running(argv, folder, variables).finish()

"""Whether anything of a tool is busy while its cell measures: here, while a cell sleeps."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from bench.spent import Failed, Running, environment
from bench.tools import Tool

SETTLES = 1.5
LOOKS = 8.0
# No other process of the machine sleeps for so long.
SLEEP = "/bin/sleep 11.0625"


@dataclass(frozen=True)
class Idle:
    """Over `seconds`: CPU seconds of all of a tool's processes but the cell's own, and how often they went to sleep."""

    tool: str
    seconds: float
    cpu: float
    wakeups: int
    processes: int

    @property
    def share(self) -> float:
        """CPU time as a share of one core."""
        return self.cpu / self.seconds


def descendants(root: int) -> dict[int, str]:
    """Process → command line, of all below a process."""
    parents, found = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    for process in parents:
        above = process
        while above in parents and above != root:
            above = parents[above]
        if above == root and process != root:
            try:
                found[process] = Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ").strip()
            except OSError:
                continue
    return found


def used(process: int) -> tuple[float, int]:
    """CPU seconds of a process so far, to the nanosecond, and how often it went to sleep."""
    seconds, sleeps = 0.0, 0
    for thread in Path(f"/proc/{process}/task").iterdir():
        seconds += int((thread / "schedstat").read_text().split()[0]) / 1e9
        lines = (thread / "status").read_text().splitlines()
        sleeps += next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches:"))
    return seconds, sleeps


def _look(asleep: str) -> dict[int, tuple[float, int]]:
    """What each process used so far that is not the cell's own; none where the cell does not sleep."""
    processes = descendants(os.getpid())
    if asleep not in processes.values():
        return {}
    return {process: used(process) for process, command in processes.items() if command != asleep}


def _ended(running: Running) -> bool:
    return os.waitid(os.P_PID, running.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def watch(tool: str, running: Running, asleep: str, looks: float = LOOKS, settles: float = SETTLES) -> Idle:
    """Look at what runs while its cell runs the command `asleep`, once it came to rest.  Raises Failed."""
    deadline = time.monotonic() + 600
    while not _look(asleep):
        if time.monotonic() > deadline or _ended(running):
            raise Failed(f"{' '.join(running.argv)}: `{asleep}` was not seen")
        time.sleep(0.05)
    time.sleep(settles)
    begun, before = time.monotonic(), _look(asleep)
    time.sleep(looks)
    after, seconds = _look(asleep), time.monotonic() - begun
    if not before or set(before) - set(after):
        raise Failed(f"{' '.join(running.argv)}: a process ended while `{asleep}` ran")
    cpu, sleeps = (sum(late[i] - before.get(key, (0, 0))[i] for key, late in after.items()) for i in (0, 1))
    return Idle(tool, seconds, cpu, int(sleeps), len(after))


def measure(tool: Tool, room: Path, cells: int) -> Idle:
    """What a tool uses while its last cell sleeps, after so many others have run."""
    folder = room / f"idle-{tool.name.replace(' ', '-')}"
    argv = tool.prepare(folder, cells, SLEEP)
    running = Running(argv, folder, environment(room / "home"))
    try:
        found = watch(tool.name, running, SLEEP)
    except BaseException:
        running.end()
        raise
    running.finish()
    return found

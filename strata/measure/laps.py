"""Which laps of a block count: those during which the machine itself was not disturbed.

A :class:`LapMonitor` takes a cheap reading after each run of a lap, while nothing is measured, and
judges the run by two thresholds that the configuration fixes: the CPU time that a hypervisor took,
and that of processes outside of all systems, their clients and their engines.  It sees no measured
value.  What happens inside a system's control groups or in its engine is the environment's own.
"""

import os
import time
from collections.abc import Collection, Iterable, Sequence

from strata.host import cgroups, observe
from strata.host.capacity import usable_processors
from strata.host.observe import NOT_AVAILABLE
from strata.measure import interference
from strata.util.data_types import Any, Fields

# At least this share of the laps of a block must count.
LEAST_SHARE = 0.5
_TICK = os.sysconf("SC_CLK_TCK")
# The files with the CPU time of a control group, in version 1 (nanoseconds) and in version 2.
_OLD, _NEW = "cpuacct.usage", "cpu.stat"


class _Counters:
    """Count the CPU time of foreign processes by files of the kernel that are opened once."""

    def __init__(self, systems: Iterable[str], daemons: Collection[str]) -> None:
        """Open the files: those of all control groups, and of all that is not foreign in them.

        systems, daemons: as of :class:`LapMonitor`.
        """
        self._add: list[int] = []
        self._subtract: list[int] = []
        self._processes: list[int] = []
        self._usage = _NEW
        tops = cgroups.hierarchies()
        if roots := [top for top in tops if os.path.exists(f"{top}/{_OLD}")]:
            self._usage = _OLD
            self._open(self._add, [f"{roots[0]}/{_OLD}"])
        else:
            # A root group does not count its processes apart from interrupts; its children do.
            folders = [entry.path for top in tops for entry in os.scandir(top) if entry.is_dir()]
            self._open(self._add, [f"{folder}/{_NEW}" for folder in folders])
        for name in systems:
            folders = cgroups.find_groups(name)
            self._open(self._subtract, [f"{folder}/{self._usage}" for folder in folders])
        inside = {process for name in systems for process in cgroups.list_processes(name)}
        self._open(self._processes, self._stat_files(inside, daemons))

    def _stat_files(self, inside: set[int], daemons: Collection[str]) -> list[str]:
        """Return the files of processes outside of the systems that are not foreign.

        They are the kernel's own threads, engines, and what this process has started.
        inside: the processes in the systems' control groups.
        """
        files: list[str] = []
        usages = interference.take_reading().processes or {}
        processes = {pid: usage for (pid, _), usage in usages.items()}
        for entry in filter(str.isdecimal, observe.list_folder("/proc")):
            pid = int(entry)
            known = pid in processes
            ours = not known or interference.is_ours(pid, processes, {os.getpid()}, daemons)
            if pid in inside or pid == os.getpid() or not ours:
                continue
            group = observe.read_file(f"/proc/{pid}/cgroup") or ""
            if self._usage == _OLD or group.rstrip() != "0::/":
                files.append(f"/proc/{pid}/stat")
        return files

    def _open(self, descriptors: list[int], files: Iterable[str]) -> None:
        """Open the files that exist."""
        for path in files:
            try:
                descriptors.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                continue

    def close(self) -> None:
        """Close the files."""
        for descriptor in [*self._add, *self._subtract, *self._processes]:
            os.close(descriptor)

    def foreign_seconds(self) -> float | None:
        """Return the CPU time of foreign processes, from an unknown start; None if not known."""
        if not self._add:
            return None
        seconds = sum(map(self._group_seconds, self._add))
        seconds -= sum(map(self._group_seconds, self._subtract))
        return seconds - sum(map(_process_seconds, self._processes)) - sum(os.times()[:4])

    def _group_seconds(self, descriptor: int) -> float:
        """Return the CPU time of a control group; 0 once it is gone."""
        text = _read(descriptor)
        if self._usage == _OLD:
            return 1e-9 * int(text or 0)
        fields = text.split()
        return 1e-6 * int(fields[1]) if fields[:1] == [b"usage_usec"] else 0.0


def _read(descriptor: int) -> bytes:
    """Return the beginning of an open file; empty where its process or group is gone."""
    try:
        return os.pread(descriptor, 1024, 0)
    except OSError:
        return b""


def _process_seconds(descriptor: int) -> float:
    """Return the CPU time of a process with that of its children; 0 once it has ended."""
    fields = _read(descriptor).rpartition(b")")[2].split()
    return sum(map(int, fields[11:15])) / _TICK


class LapMonitor:
    """Observe the runs of the laps of a block, and judge which laps count.

    thresholds: the shares `steal` and `busy` of the configuration; None is not judged.
    systems: the names of the systems' control groups.
    daemons: the names of processes that work for the systems.
    """

    def __init__(
        self, thresholds: Fields, systems: Iterable[str], daemons: Collection[str]
    ) -> None:
        self._thresholds = {key: thresholds.get(key) for key in ("steal", "busy")}
        self._counters = _Counters([*systems], daemons)
        self._laps: dict[int, list[Fields]] = {}
        self._judged: set[str] = set()
        self._last = self._reading()

    def _reading(self) -> tuple[float, tuple[int, ...], float | None]:
        """Return this moment, the ticks of the usable CPUs, and the time of foreign processes."""
        ticks = observe.cpu_times(usable_processors())
        return time.monotonic(), ticks, self._counters.foreign_seconds()

    def end_run(self, lap: int, environments: Sequence[str], way: str) -> None:
        """Judge what has been run since the last reading.

        environments: those whose runs went on, several for runs in slices.
        way: `slices` or `whole`.
        """
        (begun, ticks, foreign), self._last = self._last, self._reading()
        ended, late_ticks, late_foreign = self._last
        seconds = max(ended - begun, 1e-3)
        busy: Any = NOT_AVAILABLE
        if foreign is not None and late_foreign is not None:
            busy = round(max(0.0, late_foreign - foreign) / seconds, 4)
        steal = observe.time_shares(ticks, late_ticks)["steal_share"]
        shares = {"steal": steal, "busy": busy}
        self._judged |= {name for name, share in shares.items() if share != NOT_AVAILABLE}
        exceeded = interference.find_exceeded(seconds, shares, self._thresholds)
        run = {"environments": sorted(environments), "how": way, "seconds": round(seconds, 3)}
        self._laps.setdefault(lap, []).append({**run, **shares, "disturbed_by": exceeded})

    @property
    def judged(self) -> set[str]:
        """The thresholds by which runs could be judged on this machine."""
        return self._judged

    def close(self) -> list[Fields]:
        """Return ``[{lap, counts, runs}]``, and close all files.

        Where too few laps were undisturbed, all of them count: then the block is disturbed.
        """
        self._counters.close()
        calm = [lap for lap, runs in self._laps.items() if not _causes(runs)]
        enough = len(calm) >= LEAST_SHARE * len(self._laps)
        return [
            {"lap": lap, "counts": lap in calm or not enough, "runs": runs}
            for lap, runs in self._laps.items()
        ]


def _causes(runs: Iterable[Fields]) -> set[str]:
    """Return what disturbed the runs of a lap."""
    return {cause for run in runs for cause in run["disturbed_by"]}


def flags_of_laps(laps: list[Fields], thresholds: Fields) -> list[Fields]:
    """Return a flag for each cause by which too few laps of a block were undisturbed.

    laps: as of :meth:`LapMonitor.close`.
    """
    disturbed = [lap for lap in laps if _causes(lap["runs"])]
    if not any(lap["counts"] for lap in disturbed):
        return []
    flags = []
    for what in ("steal", "busy"):
        shares = [
            run[what] for lap in disturbed for run in lap["runs"] if what in run["disturbed_by"]
        ]
        if shares:
            flag = {"what": what, "when": "during", "value": max(shares)}
            flags.append({**flag, "threshold": thresholds[what]})
    return flags

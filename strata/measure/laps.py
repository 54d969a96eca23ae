"""What each run of a block cost, and which laps count: those that nothing else disturbed.

A :class:`LapMonitor` takes a cheap reading after each run of a lap, while nothing is measured.  It
says what the run was spent on, and judges it by two thresholds that the configuration fixes: the
CPU time that a hypervisor took, and that of processes outside of all systems, their clients and
their engines.  It sees no measured value.  What happens inside a system's control groups or in its
engine is the environment's own.
"""

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence

from strata.host import cgroups, observe
from strata.host.capacity import usable_processors
from strata.host.observe import NOT_AVAILABLE
from strata.measure import costs, interference
from strata.util.data_types import Any, Fields

# At least this share of the laps of a block must count.
LEAST_SHARE = 0.5
# The files with the CPU time of a control group, in version 1 (nanoseconds) and in version 2.
_OLD, _NEW = "cpuacct.usage", "cpu.stat"


class _Counters:
    """Count the CPU time of foreign processes by files of the kernel that are opened once."""

    def __init__(self, systems: Iterable[str], daemons: Collection[str]) -> None:
        """Open the files: those of all control groups, and of all that is not foreign in them.

        systems: the names of the systems' control groups.
        daemons: as of :class:`LapMonitor`.
        """
        self._usage = _NEW
        tops = cgroups.hierarchies()
        if roots := [top for top in tops if os.path.exists(f"{top}/{_OLD}")]:
            self._usage = _OLD
            folders = roots[:1]
        else:
            # A root group does not count its processes apart from interrupts; its children do.
            folders = [entry.path for top in tops for entry in os.scandir(top) if entry.is_dir()]
        self._opened: list[int] = []
        self._add = self._open([f"{folder}/{self._usage}" for folder in folders])
        groups = [folder for name in systems for folder in cgroups.find_groups(name)]
        self._subtract = self._open([f"{folder}/{self._usage}" for folder in groups])
        inside = {process for name in systems for process in cgroups.list_processes(name)}
        self._processes: list[int] = []
        self.helpers: list[int] = []
        self._open_processes(inside, daemons)

    def _open(self, paths: Collection[str]) -> list[int]:
        """Open the files that exist, and return their descriptors."""
        descriptors = [descriptor for _, descriptor in costs.open_files(paths)]
        self._opened += descriptors
        return descriptors

    def _open_processes(self, inside: set[int], daemons: Collection[str]) -> None:
        """Open the files of processes outside of the systems that are not foreign.

        They are the kernel's own threads, engines, and what this process has started.  All but the
        threads are helpers of the systems, and so are threads for a machine's network.
        inside: the processes in the systems' control groups.
        """
        usages = interference.take_reading().processes or {}
        processes = {pid: usage for (pid, _), usage in usages.items()}
        for entry in filter(str.isdecimal, observe.list_folder("/proc")):
            pid = int(entry)
            known = pid in processes
            ours = not known or interference.is_ours(pid, processes, {os.getpid()}, daemons)
            if pid in inside or pid == os.getpid() or not ours:
                continue
            group = observe.read_file(f"/proc/{pid}/cgroup") or ""
            counted = self._usage == _OLD or group.rstrip() != "0::/"
            helps = known or (observe.read_file(f"/proc/{pid}/comm") or "").startswith("vhost")
            descriptors = self._open([f"/proc/{pid}/stat"]) if counted or helps else []
            self._processes += descriptors if counted else []
            self.helpers += descriptors if helps else []

    def close(self) -> None:
        """Close the files."""
        for descriptor in self._opened:
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
        text = costs.read_descriptor(descriptor)
        if self._usage == _OLD:
            return 1e-9 * int(text or 0)
        fields = (text or "").split()
        return 1e-6 * int(fields[1]) if fields[:1] == ["usage_usec"] else 0.0


def _process_seconds(descriptor: int) -> float:
    """Return the CPU time of a process with that of its children; 0 once it has ended."""
    fields = (costs.read_descriptor(descriptor) or "").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / costs.TICK


class LapMonitor:
    """Observe the runs of the laps of a block: what each one costs, and which laps count.

    thresholds: the shares `steal` and `busy` of the configuration; None is not judged.
    spenders: the systems and their clients by environment.
    daemons: the names of processes that work for the systems.
    judges: whether laps are judged.
    costs: environment → a mapping of what was used for each of its runs, with `lap` and `how`.
    """

    def __init__(
        self,
        thresholds: Fields,
        spenders: Mapping[str, costs.Spender],
        daemons: Collection[str],
        judges: bool = True,
    ) -> None:
        self._thresholds = {key: thresholds.get(key) for key in ("steal", "busy")}
        systems = [group for spender in spenders.values() for group in spender.groups]
        self._counters = _Counters(systems, daemons)
        self._cost_counters = costs.CostCounters(spenders, self._counters.helpers)
        self._laps: dict[int, list[Fields]] = {}
        self._judged: set[str] = set()
        self.judges = judges
        self.costs: dict[str, list[Fields]] = {name: [] for name in spenders}
        self._last = self._reading()

    def _reading(self) -> tuple[float, tuple[int, ...], float | None, costs.Counts]:
        """Return this moment, the ticks of the usable CPUs, and what has been used until now.

        The third value is the time of foreign processes.
        """
        ticks = observe.cpu_times(usable_processors())
        foreign = self._counters.foreign_seconds() if self.judges else None
        return time.monotonic(), ticks, foreign, self._cost_counters.read(ticks, foreign)

    def end_run(self, lap: int, environments: Sequence[str], way: str) -> None:
        """Note what the run since the last reading was spent on, and judge it.

        environments: those whose runs went on, several for runs in slices.
        way: `slices` or `whole`.
        """
        (begun, ticks, foreign, counts), self._last = self._last, self._reading()
        ended, late_ticks, late_foreign, late_counts = self._last
        for name in environments:
            spent = costs.compare_counts(counts, late_counts, name, len(environments) == 1)
            self.costs[name].append({"lap": lap, "how": way, **spent})
        if not self.judges:
            return
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
        self._cost_counters.close()
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
    for quantity in ("steal", "busy"):
        shares = [
            run[quantity]
            for lap in disturbed
            for run in lap["runs"]
            if quantity in run["disturbed_by"]
        ]
        if shares:
            flag = {"what": quantity, "when": "during", "value": max(shares)}
            flags.append({**flag, "threshold": thresholds[quantity]})
    return flags

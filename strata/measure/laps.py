"""Observe the runs of a block: what each one cost, and which undisturbed laps count.

A :class:`LapMonitor` takes a cheap reading after each run of a lap, while nothing is measured.  It
computes the run's costs, and judges the run by two thresholds of the configuration.  They limit the
CPU time that a hypervisor took, and the CPU time of foreign processes.  Processes in a system's
control groups, its client and its engine are not foreign.  The monitor sees no measured value.
"""

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence

from strata.host import cgroups, observe
from strata.host.capacity import list_usable_cpus
from strata.host.observe import NOT_AVAILABLE
from strata.measure import costs, interference
from strata.util.data_types import Any, Fields

# If a smaller share of the laps of a block is undisturbed, the whole block is disturbed.
MIN_UNDISTURBED_SHARE = 0.5
# The files with the CPU time of a control group, in version 1 (nanoseconds) and in version 2
# (microseconds).
_USAGE_V1, _USAGE_V2 = "cpuacct.usage", "cpu.stat"


class _ForeignCounters:
    """Count the CPU time of foreign processes by files of the kernel that are opened once.

    helpers: the descriptors of the files /proc/PID/stat of processes outside of the systems that
    work for them, which :class:`strata.measure.costs.CostCounters` reads; :meth:`close` closes
    them.
    """

    def __init__(self, systems: Iterable[str], daemons: Collection[str]) -> None:
        """Open the files of all control groups, and of groups and processes that are not foreign.

        Later processes are not foreign only if they are in a group of a system.

        systems: the names of the systems' control groups, which must exist.
        daemons: the names of processes that work for the systems.
        """
        self._usage = _USAGE_V2
        hierarchies = cgroups.list_hierarchies()
        folders_v1 = [path for path in hierarchies if os.path.exists(f"{path}/{_USAGE_V1}")]
        if folders_v1:
            self._usage = _USAGE_V1
            folders = folders_v1[:1]
        else:
            # A root group counts interrupts, too; its children count only their processes.
            folders = [
                entry.path for path in hierarchies for entry in os.scandir(path) if entry.is_dir()
            ]
        self._descriptors: list[int] = []
        self._all_groups = self._open_files([f"{folder}/{self._usage}" for folder in folders])
        own_folders = [folder for name in systems for folder in cgroups.find_group_folders(name)]
        self._own_groups = self._open_files([f"{folder}/{self._usage}" for folder in own_folders])
        pids_in_systems = {pid for name in systems for pid in cgroups.list_group_processes(name)}
        # Processes that are not foreign, and are in `_all_groups` but not in `_own_groups`.
        self._own_processes: list[int] = []
        self.helpers: list[int] = []
        self._open_own_processes(pids_in_systems, daemons)

    def _open_files(self, paths: Collection[str]) -> list[int]:
        """Open the files that exist, and return their descriptors, which :meth:`close` closes."""
        descriptors = [descriptor for _, descriptor in costs.open_existing_files(paths)]
        self._descriptors += descriptors
        return descriptors

    def _open_own_processes(self, pids_in_systems: set[int], daemons: Collection[str]) -> None:
        """Open the files of processes that are outside of the systems, but not foreign.

        pids_in_systems: the IDs of the processes in the systems' control groups.
        daemons: the names of processes that work for the systems.
        The opened processes are the kernel's threads, daemons, and the processes that this process
        has started.  Daemons and started processes are also helpers of the systems, and so are the
        threads of vhost, which serve a virtual machine's network.
        Adds the descriptors to `_own_processes` and `helpers`.
        """
        usages = interference.take_reading().processes or {}
        processes = {pid: usage for (pid, _), usage in usages.items()}
        for entry in filter(str.isdecimal, observe.list_folder("/proc")):
            pid = int(entry)
            if pid in pids_in_systems or pid == os.getpid():
                continue
            # A reading has no threads of the kernel, nor processes that started after it.
            is_thread = pid not in processes
            if not is_thread and not interference.is_process_of_this_run(
                pid, processes, {os.getpid()}, daemons
            ):
                continue
            group = observe.read_file(f"/proc/{pid}/cgroup") or ""
            # In version 2, `_all_groups` does not include the root group, "0::/".
            is_counted = self._usage == _USAGE_V1 or group.rstrip() != "0::/"
            name = observe.read_file(f"/proc/{pid}/comm") or ""
            is_helper = not is_thread or name.startswith("vhost")
            if not is_counted and not is_helper:
                continue
            descriptors = self._open_files([f"/proc/{pid}/stat"])
            if is_counted:
                self._own_processes += descriptors
            if is_helper:
                self.helpers += descriptors

    def close(self) -> None:
        """Close all files that this object opened, those of the helpers included."""
        for descriptor in self._descriptors:
            os.close(descriptor)

    def read_foreign_seconds(self) -> float | None:
        """Return a count of the CPU time of foreign processes in seconds; None if it is not known.

        The count is the time of all control groups minus the time of groups and processes that are
        not foreign.  Only the difference of two counts has a meaning, since each file counts from
        the start of its group or process.
        """
        if not self._all_groups:
            return None
        seconds = sum(map(self._read_group_seconds, self._all_groups))
        seconds -= sum(map(self._read_group_seconds, self._own_groups))
        seconds -= sum(map(_read_process_seconds, self._own_processes))
        # The last term is the time of this process and of its children that have ended.
        return seconds - sum(os.times()[:4])

    def _read_group_seconds(self, descriptor: int) -> float:
        """Return the CPU time of a control group in seconds; 0 once the group is gone."""
        text = costs.read_kernel_file(descriptor)
        if self._usage == _USAGE_V1:
            return 1e-9 * int(text or 0)
        # The first line is "usage_usec MICROSECONDS".
        fields = (text or "").split()
        return 1e-6 * int(fields[1]) if fields[:1] == ["usage_usec"] else 0.0


def _read_process_seconds(descriptor: int) -> float:
    """Return the CPU time in seconds of a process and its ended children; 0 once it has ended."""
    # The fields of proc_pid_stat(5) after the process's name: utime, stime, cutime, cstime.
    fields = (costs.read_kernel_file(descriptor) or "").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / costs.TICK


class LapMonitor:
    """Observe the runs of the laps of a block: what each one costs, and which laps count.

    thresholds: the limits of the shares `steal` and `busy`; None is not judged.
    spenders: the systems and their clients by environment.
    daemons: the names of processes that work for the systems.
    judges: whether laps are judged.
    costs: environment → the costs of each of its runs, as
    :func:`strata.measure.costs.compute_run_costs` returns them, with `lap` and `how`.
    judged: the names of the thresholds that could be applied on this machine so far.

    The record has `laps` and `costs` with the same keys (schemas/record.schema.json), which
    analysis/costs.R and analysis/statistics.R read.
    """

    def __init__(
        self,
        thresholds: Fields,
        spenders: Mapping[str, costs.Spender],
        daemons: Collection[str],
        judges: bool = True,
    ) -> None:
        """Open the kernel's files, and take a first reading.

        The parameters are described at the class.  :meth:`close_and_judge_laps` closes the files.
        """
        self._thresholds = {key: thresholds.get(key) for key in ("steal", "busy")}
        systems = [group for spender in spenders.values() for group in spender.groups]
        self._counters = _ForeignCounters(systems, daemons)
        self._cost_counters = costs.CostCounters(spenders, self._counters.helpers)
        self._laps: dict[int, list[Fields]] = {}
        self.judged: set[str] = set()
        self.judges = judges
        self.costs: dict[str, list[Fields]] = {name: [] for name in spenders}
        self._last_reading = self._take_reading()

    def _take_reading(self) -> tuple[float, tuple[int, ...], float | None, costs.Counts]:
        """Return the current (time, ticks of the usable CPUs, foreign CPU seconds, counts).

        The time is in seconds of the monotonic clock.  The foreign seconds are None if they are not
        known, or if laps are not judged.
        """
        ticks = observe.read_cpu_times(list_usable_cpus())
        foreign_seconds = self._counters.read_foreign_seconds() if self.judges else None
        timestamp = time.monotonic()
        counts = self._cost_counters.read_counts(ticks, foreign_seconds)
        return timestamp, ticks, foreign_seconds, counts

    def end_run(self, lap: int, environments: Sequence[str], way: str) -> None:
        """Take a reading, add the costs of the run since the last reading, and judge the run.

        Call this right after each run: everything between two calls counts for the run.
        lap: the number of the run's lap, from 1.
        environments: the environments that took the run; several for a run in slices.
        way: how they took it, `slices` or `whole`.
        Adds to `costs`, and to `judged` if laps are judged.  Shares are rounded to four digits; a
        negative share of foreign processes counts as 0.
        """
        started, ticks_before, foreign_before, counts_before = self._last_reading
        self._last_reading = self._take_reading()
        ended, ticks_after, foreign_after, counts_after = self._last_reading
        is_alone = len(environments) == 1
        for name in environments:
            run_costs = costs.compute_run_costs(counts_before, counts_after, name, is_alone)
            self.costs[name].append({"lap": lap, "how": way, **run_costs})
        if not self.judges:
            return
        seconds = max(ended - started, interference.MIN_INTERVAL_SECONDS)
        busy: Any = NOT_AVAILABLE
        if foreign_before is not None and foreign_after is not None:
            busy = round(max(0.0, foreign_after - foreign_before) / seconds, 4)
        steal = observe.compute_cpu_time_shares(ticks_before, ticks_after)["steal_share"]
        shares = {"steal": steal, "busy": busy}
        self.judged |= {name for name, share in shares.items() if share != NOT_AVAILABLE}
        exceeded = interference.list_exceeded_thresholds(seconds, shares, self._thresholds)
        run = {"environments": sorted(environments), "how": way, "seconds": round(seconds, 3)}
        self._laps.setdefault(lap, []).append({**run, **shares, "disturbed_by": exceeded})

    def close_and_judge_laps(self) -> list[Fields]:
        """Close all files, and return which laps count: ``[{lap, counts, runs}]`` in their order.

        The list is empty if laps are not judged.  `runs` are the runs of all environments; each
        cell's record keeps only those of its environment.
        If too few laps were undisturbed (MIN_UNDISTURBED_SHARE), all of them count, and the block
        is disturbed (:func:`flag_disturbed_laps`).
        """
        self._counters.close()
        self._cost_counters.close()
        undisturbed_laps = [
            lap for lap, runs in self._laps.items() if not _list_disturbance_causes(runs)
        ]
        has_enough = len(undisturbed_laps) >= MIN_UNDISTURBED_SHARE * len(self._laps)
        laps = []
        for lap, runs in self._laps.items():
            counts = lap in undisturbed_laps or not has_enough
            laps.append({"lap": lap, "counts": counts, "runs": runs})
        return laps


def _list_disturbance_causes(runs: Iterable[Fields]) -> set[str]:
    """Return the names of the thresholds that the runs of a lap exceeded."""
    return {cause for run in runs for cause in run["disturbed_by"]}


def flag_disturbed_laps(laps: list[Fields], thresholds: Fields) -> list[Fields]:
    """Return ``[{what, when, value, threshold}]``, a flag for each cause of a disturbed block.

    laps: ``[{lap, counts, runs}]`` from :meth:`LapMonitor.close_and_judge_laps`.
    thresholds: quantity → its limit.
    The result is empty if enough laps were undisturbed.  `value` is the largest share of CPU time
    in a disturbed run.  The record's `interference` holds these flags together with those of
    :func:`strata.measure.interference.flag_exceeded_thresholds`, which have the same keys.
    """
    disturbed_laps = [lap for lap in laps if _list_disturbance_causes(lap["runs"])]
    # Disturbed laps count only in a disturbed block: too few of its laps were undisturbed.
    if not any(lap["counts"] for lap in disturbed_laps):
        return []
    runs = [run for lap in disturbed_laps for run in lap["runs"]]
    flags = []
    for quantity in ("steal", "busy"):
        shares = [run[quantity] for run in runs if quantity in run["disturbed_by"]]
        if shares:
            flag = {"what": quantity, "when": "during", "value": max(shares)}
            flags.append({**flag, "threshold": thresholds[quantity]})
    return flags

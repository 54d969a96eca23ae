"""Compute the costs of each run: of its system, its client, the helpers, and the machine.

The kernel's counts are read before and after each run, while nothing is measured, from files that
are opened once (:class:`strata.measure.laps.LapMonitor`).  A cost is "not available" if the kernel
does not count it, or if a run in slices shares it with other runs.
"""

import os
from collections import namedtuple
from collections.abc import Collection, Mapping, Sequence

from strata.host import cgroups, observe
from strata.host.observe import NOT_AVAILABLE
from strata.util.data_types import Fields

TICK = os.sysconf("SC_CLK_TCK")

# These are namedtuples, since importing typing would take a cell's time.
# A cell's system and client, whose costs are counted:
# groups: the names of the system's control groups.
# processes: the IDs of the host's processes of a system without a group, a virtual machine.
# command_seconds: the attribute `command_seconds` of :class:`strata.measure.steps.Steps`, which its
# steps change.
Spender = namedtuple("Spender", ["groups", "processes", "command_seconds"], defaults=[(), (), {}])
# The counts at one time.
# systems: environment → the usage of its system, as from `_read_system_usage`.
# command_seconds: environment → a copy of `command_seconds` of its spender.
# helpers: (user, system) CPU seconds of each process, always in the same order.
# machine: the counts of all CPUs that measurements use, as from `_count_machine_use`.
Counts = namedtuple("Counts", ["systems", "command_seconds", "helpers", "machine"])


def open_existing_files(paths: Collection[str]) -> list[tuple[str, int]]:
    """Open the files that exist, and return (name without folder, descriptor) of each.

    Files are opened for reading, in the given order.  A file that cannot be opened is left out: its
    process or group has ended, or the kernel does not have it.  The caller closes the descriptors.
    """
    files = []
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        files.append((path.rpartition("/")[2], descriptor))
    return files


def read_kernel_file(descriptor: int) -> str | None:
    """Return the content of an open file of the kernel; None if its process or group is gone.

    Every call reads the file from its beginning, and at most 8192 bytes of it.
    """
    try:
        # The files of processes and groups that are read here are shorter.
        return os.pread(descriptor, 8192, 0).decode(errors="replace")
    except OSError:
        return None


def parse_process_usage(text: str | None) -> dict[str, float]:
    """Return ``{cpu, user, system, major_faults}`` of a process without its children.

    text: the content of /proc/PID/stat; None if the process is gone, whose usage is empty.
    The times are in seconds.  :func:`strata.host.cgroups.parse_group_counters` returns the same
    keys for a group, so that both can be added.
    """
    # The index of a field after the process's name is its number in proc_pid_stat(5) minus 3.
    fields = (text or "").rpartition(")")[2].split()
    if not fields:
        return {}
    user, system = int(fields[11]) / TICK, int(fields[12]) / TICK
    return {"cpu": user + system, "user": user, "system": system, "major_faults": int(fields[9])}


class CostCounters:
    """Read the resource usage of a block's systems, their helpers and the machine."""

    def __init__(self, spenders: Mapping[str, Spender], helpers: Sequence[int]) -> None:
        """Open the files of the systems, which must be up.

        spenders: the system and client of each environment.
        helpers: the descriptors of the files /proc/PID/stat of processes outside of the systems
        that work for them; the caller opens and closes these.
        """
        self._spenders, self._helpers = spenders, helpers
        self._groups: dict[str, list[list[tuple[str, int]]]] = {}
        self._processes: dict[str, list[tuple[str, int]]] = {}
        for name, spender in spenders.items():
            folders = [cgroups.find_group_folders(group) for group in spender.groups]
            self._groups[name] = [
                open_existing_files(
                    [f"{folder}/{file}" for folder in group for file in cgroups.COUNTERS]
                )
                for group in folders
            ]
            self._processes[name] = open_existing_files(
                [f"/proc/{pid}/stat" for pid in spender.processes]
            )

    def close(self) -> None:
        """Close the files of the systems; the files of the helpers are the caller's."""
        for name, groups in self._groups.items():
            for files in [*groups, self._processes[name]]:
                for _, descriptor in files:
                    os.close(descriptor)

    def read_counts(self, ticks: Sequence[int], foreign: float | None) -> Counts:
        """Return the current counts of all systems, their helpers and the machine.

        ticks: the ticks of the CPUs that measurements use, as from
        :func:`strata.host.observe.read_cpu_times`.
        foreign: the seconds of CPU time of foreign processes; None if they are not known, and the
        count is then missing.
        """
        helpers = []
        for descriptor in self._helpers:
            # A helper that has ended has no usage; compute_run_costs counts its decrease as 0.
            usage = parse_process_usage(read_kernel_file(descriptor))
            helpers.append((usage.get("user", 0.0), usage.get("system", 0.0)))
        # Copies, since the steps go on adding to the mappings.
        command_seconds = {
            name: dict(spender.command_seconds) for name, spender in self._spenders.items()
        }
        systems = {name: self._read_system_usage(name) for name in self._spenders}
        machine = _count_machine_use(ticks)
        if foreign is not None:
            machine["foreign_seconds"] = foreign
        return Counts(systems, command_seconds, helpers, machine)

    def _read_system_usage(self, name: str) -> dict[str, float]:
        """Return the usage of an environment's system, the sum over its groups and processes.

        name: the name of the environment.
        The keys are listed at :func:`strata.host.cgroups.parse_group_counters`.  A count that one
        group or process does not show is missing in the result, since a partial sum would be too
        small.
        """
        usages = []
        for files in self._groups[name]:
            contents = []
            for file, descriptor in files:
                text = read_kernel_file(descriptor)
                if text is not None:
                    contents.append((file, text))
            usages.append(cgroups.parse_group_counters(contents))
        for _, descriptor in self._processes[name]:
            usages.append(parse_process_usage(read_kernel_file(descriptor)))
        common_keys = set(usages[0]).intersection(*usages) if usages else set()
        return {key: sum(usage[key] for usage in usages) for key in common_keys}


def _count_machine_use(ticks: Sequence[int]) -> dict[str, float]:
    """Return ``{busy_seconds, interrupt_seconds, context_switches}`` of the machine's CPUs.

    ticks: the ticks of the CPUs that measurements use, as from
    :func:`strata.host.observe.read_cpu_times`.
    The context switches are those of all CPUs.  A count that the kernel does not show is missing.
    """
    counts: dict[str, float] = {}
    # The order of the ticks is that of a line "cpu" in proc_stat(5).  The kernel shows no ticks, or
    # at least these seven.
    if len(ticks) > 6:
        user, nice, system, _, _, irq, softirq = ticks[:7]
        counts["busy_seconds"] = (user + nice + system + irq + softirq) / TICK
        counts["interrupt_seconds"] = (irq + softirq) / TICK
    if (switches := observe.read_context_switch_count()) is not None:
        counts["context_switches"] = switches
    return counts


# The counts of each party, in the order of the record.  schemas/record.schema.json and
# analysis/costs.R name them, too.
_TIMES = ("user_seconds", "system_seconds")
_KEYS = {
    "system": (*_TIMES, "throttled_seconds", "major_faults", "io_bytes", "io_operations"),
    "client": _TIMES,
    "helpers": _TIMES,
    "machine": ("busy_seconds", "foreign_seconds", "interrupt_seconds", "context_switches"),
}


def compute_run_costs(before: Counts, after: Counts, environment: str, is_alone: bool) -> Fields:
    """Return the costs of a run, ``{elapsed_seconds, system, client, helpers, machine}``.

    before: the counts before the run.
    after: the counts after the run.
    environment: the environment that took the run.
    is_alone: whether no other run went on; otherwise helpers and machine are "not available".
    Each party has the counts of :data:`_KEYS`; a count that is not known is "not available".  A
    count that decreased, since its process ended or it was reset, costs 0.  Numbers are rounded to
    six decimals.
    The record keeps the result in `costs`, and analysis/costs.R reads it.
    """
    system_counts = _subtract_counts(before.systems[environment], after.systems[environment])
    command_seconds = _subtract_counts(
        before.command_seconds[environment], after.command_seconds[environment]
    )
    counts: dict[str, dict[str, float]] = {
        "system": system_counts | cgroups.split_cpu_time(system_counts),
        "client": {key.removeprefix("client_"): count for key, count in command_seconds.items()},
        "helpers": {},
        "machine": {},
    }
    if is_alone:
        counts["helpers"] = _sum_helper_seconds(before, after)
        counts["machine"] = _subtract_counts(before.machine, after.machine)
    # The mapping always has this key, except in tests that count no commands.
    elapsed_seconds = command_seconds.get("elapsed_seconds", 0.0)
    costs: Fields = {"elapsed_seconds": round(elapsed_seconds, 6)}
    for party, keys in _KEYS.items():
        costs[party] = {key: _round_count(counts[party].get(key, NOT_AVAILABLE)) for key in keys}
    return costs


def _sum_helper_seconds(before: Counts, after: Counts) -> dict[str, float]:
    """Return ``{user_seconds, system_seconds}`` that all helpers used between two readings.

    A helper that ended meanwhile counts as 0.
    """
    totals = dict.fromkeys(_TIMES, 0.0)
    for seconds_before, seconds_after in zip(before.helpers, after.helpers, strict=True):
        for key, start, end in zip(_TIMES, seconds_before, seconds_after, strict=True):
            totals[key] += max(0.0, end - start)
    return totals


def _subtract_counts(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return the growth of each count that both readings have; 0 if it was reset in between."""
    return {key: max(0.0, after[key] - before[key]) for key in after if key in before}


def _round_count(count: float | str) -> float | int | str:
    """Return a count with at most six decimals; a whole number becomes an integer.

    The string "not available" is returned as it is.
    """
    if isinstance(count, str):
        return count
    return int(count) if count == int(count) else round(count, 6)

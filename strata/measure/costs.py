"""What each run is spent on: by its system, its client, the helpers of systems, and the machine.

The kernel's counts are read before and after each run, while nothing is measured, from files that
are opened once (:class:`strata.measure.laps.LapMonitor`).  What a kernel does not count, and what a
run in slices shares with others, is "not available".
"""

import os
from collections import namedtuple
from collections.abc import Collection, Mapping, Sequence

from strata.host import cgroups, observe
from strata.host.observe import NOT_AVAILABLE
from strata.util.data_types import Fields

TICK = os.sysconf("SC_CLK_TCK")

# No class of typing, whose import every cell would pay for.  Whose costs are counted:
# groups: the names of a system's control groups.
# processes: the IDs of the host's processes that are a system without a group (a machine's).
# spent: what the steps of its cell have spent so far, as of :attr:`strata.measure.steps.Steps`.
Spender = namedtuple("Spender", ["groups", "processes", "spent"], defaults=[(), (), {}])
# What was used until a moment: systems and spent by environment; helpers: (user, system) seconds of
# each process; machine: of all processors that measurements use.
Counts = namedtuple("Counts", ["systems", "spent", "helpers", "machine"])


def open_files(paths: Collection[str]) -> list[tuple[str, int]]:
    """Open those files that exist, and return the name of each, without folder, and descriptor."""
    opened = []
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        opened.append((path.rpartition("/")[2], descriptor))
    return opened


def read_descriptor(descriptor: int) -> str | None:
    """Return the beginning of an open file; None where its process or group is gone."""
    try:
        return os.pread(descriptor, 8192, 0).decode(errors="replace")
    except OSError:
        return None


def parse_process(text: str | None) -> dict[str, float]:
    """Return what a process has used, without its children, by its /proc/PID/stat.

    The keys are as of :func:`strata.host.cgroups.parse_counters`; empty where it is gone.
    """
    fields = (text or "").rpartition(")")[2].split()
    if not fields:
        return {}
    user, system = (int(fields[at]) / TICK for at in (11, 12))
    return {"cpu": user + system, "user": user, "system": system, "major_faults": int(fields[9])}


class CostCounters:
    """Read what the systems of a block, their helpers and the machine have used."""

    def __init__(self, spenders: Mapping[str, Spender], helpers: Sequence[int]) -> None:
        """Open the files of the systems.

        spenders: by environment.
        helpers: open files /proc/PID/stat of processes outside of the systems that work for them.
        """
        self._spenders, self._helpers = spenders, helpers
        self._groups: dict[str, list[list[tuple[str, int]]]] = {}
        self._processes: dict[str, list[tuple[str, int]]] = {}
        for name, spender in spenders.items():
            folders = [cgroups.find_groups(group) for group in spender.groups]
            self._groups[name] = [
                open_files([f"{folder}/{file}" for folder in group for file in cgroups.COUNTERS])
                for group in folders
            ]
            self._processes[name] = open_files([f"/proc/{pid}/stat" for pid in spender.processes])

    def close(self) -> None:
        """Close the files of the systems."""
        groups = [group for name in self._groups for group in self._groups[name]]
        for files in [*groups, *self._processes.values()]:
            for _, descriptor in files:
                os.close(descriptor)

    def read(self, ticks: Sequence[int], foreign: float | None) -> Counts:
        """Return what has been used until now.

        ticks: of the processors that measurements use, as of
        :func:`strata.host.observe.cpu_times`.
        foreign: the seconds of CPU time of foreign processes; None if they are not known.
        """
        helpers = []
        for descriptor in self._helpers:
            used = parse_process(read_descriptor(descriptor))
            helpers.append((used.get("user", 0.0), used.get("system", 0.0)))
        spent = {name: dict(spender.spent) for name, spender in self._spenders.items()}
        systems = {name: self._read_system(name) for name in self._spenders}
        machine = _count_machine(ticks)
        if foreign is not None:
            machine["foreign_seconds"] = foreign
        return Counts(systems, spent, helpers, machine)

    def _read_system(self, name: str) -> dict[str, float]:
        """Return what a system has used; a count that one of its parts lacks is missing."""
        counts = [
            cgroups.parse_counters(
                (file, text) for file, at in group if (text := read_descriptor(at)) is not None
            )
            for group in self._groups[name]
        ]
        counts += [parse_process(read_descriptor(at)) for _, at in self._processes[name]]
        common = set(counts[0]).intersection(*counts) if counts else ()
        return {key: sum(part[key] for part in counts) for key in common}


def _count_machine(ticks: Sequence[int]) -> dict[str, float]:
    """Return the busy seconds of the machine's processors, those of interrupts, and switches."""
    counts: dict[str, float] = {}
    if len(ticks) > 6:
        interrupts = sum(ticks[5:7])
        counts["busy_seconds"] = (sum(ticks[:3]) + interrupts) / TICK
        counts["interrupt_seconds"] = interrupts / TICK
    if (switches := observe.count_context_switches()) is not None:
        counts["context_switches"] = switches
    return counts


# The counts of each of the four, in the order of the record.
_TIMES = ("user_seconds", "system_seconds")
_KEYS = {
    "system": (*_TIMES, "throttled_seconds", "major_faults", "io_bytes", "io_operations"),
    "client": _TIMES,
    "helpers": _TIMES,
    "machine": ("busy_seconds", "foreign_seconds", "interrupt_seconds", "context_switches"),
}


def compare_counts(early: Counts, late: Counts, environment: str, alone: bool) -> Fields:
    """Return what a run was spent on, as the record holds it.

    environment: whose run it was.
    alone: whether no other run went on; helpers and machine are not counted otherwise.
    """
    used = _subtract(early.systems[environment], late.systems[environment])
    spent = _subtract(early.spent[environment], late.spent[environment])
    counts: dict[str, dict[str, float]] = {
        "system": used | cgroups.split_cpu_time(used),
        "client": {key.removeprefix("client_"): count for key, count in spent.items()},
        "helpers": {},
        "machine": {},
    }
    if alone:
        growths = [
            max(0.0, after - before)
            for pair in zip(early.helpers, late.helpers, strict=True)
            for before, after in zip(*pair, strict=True)
        ]
        counts["helpers"] = dict(zip(_TIMES, (sum(growths[::2]), sum(growths[1::2])), strict=True))
        counts["machine"] = _subtract(early.machine, late.machine)
    costs: Fields = {"elapsed_seconds": round(spent.get("elapsed_seconds", 0.0), 6)}
    for party, keys in _KEYS.items():
        costs[party] = {key: _rounded(counts[party].get(key, NOT_AVAILABLE)) for key in keys}
    return costs


def _subtract(early: Mapping[str, float], late: Mapping[str, float]) -> dict[str, float]:
    """Return by how much each count grew that both moments have; 0 if it was reset."""
    return {key: max(0.0, late[key] - early[key]) for key in late if key in early}


def _rounded(count: float | str) -> float | int | str:
    """Return a count with at most six decimals; a whole number as an integer."""
    if isinstance(count, str):
        return count
    return int(count) if count == int(count) else round(count, 6)

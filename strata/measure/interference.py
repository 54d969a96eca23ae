"""Whether the machine is quiet: what else used it is read before and after a cell, and never while it measures.

A :class:`Lookout` takes a reading at the cell's start, one before its first command and one after its last, and judges
the two times between them by the thresholds of the config (docs/method.md).
"""

import contextlib
import os
import subprocess
import time
from collections import defaultdict, deque, namedtuple
from collections.abc import Collection, Sequence

from strata.host import observe
from strata.host.capacity import processors
from strata.host.observe import NOT_AVAILABLE
from strata.util import paths, run
from strata.util.data_types import Any, Fields, Quiet
from strata.util.errors import CellFailed

# Shares of less CPU time than this say nothing: the kernel counts in hundredths of a second.
LEAST_SECONDS = 0.05
# A hypervisor takes memory back in bursts of about 1 GB that are two to three seconds apart.
LOOKS, LOOK_SECONDS, LONGEST_SECONDS = 7, 0.5, 20.0
# Two clocks that are read one after the other may differ by so much though neither was set.
CLOCK_SECONDS = 0.001
VMSTAT = "/proc/vmstat"
_KERNEL_THREAD = 0x00200000
_TICK = os.sysconf("SC_CLK_TCK")

# What a process has used: seconds of its own, and of children that it waited for; its name and its parent's id.
# (The classes of typing say more of their fields, but every cell would pay for its import.)
Usage = namedtuple("Usage", ["name", "parent", "own", "waited"])
# The counters of a moment, in seconds, ticks, and bytes; what cannot be read is None.
# processes: (id, start) → Usage.  clock: how far the clock of the day is ahead of `moment`.
Reading = namedtuple("Reading", ["moment", "ticks", "processes", "throttled", "swapped", "clock"])


def take() -> Reading:
    """A reading of this moment."""
    moment, clock = time.monotonic(), _clock()
    counted = (observe.cpu_times(processors()), _processes(), _throttled(), _swapped())
    return Reading(moment, *counted, clock)


def _clock() -> float:
    """How far the clock of the day is ahead of the monotonic one: the same until somebody sets it."""
    looks = []
    for _ in range(5):
        before, day, after = time.monotonic(), time.time(), time.monotonic()
        looks.append((after - before, day - before))
    # The one in which nothing came in between.
    return min(looks)[1]


def _processes() -> dict[tuple[int, str], Usage] | None:
    """Every process but the kernel's own threads, by its id and start.

    None where others are hidden from us.
    """
    found = {}
    for entry in filter(str.isdecimal, observe.listed("/proc")):
        first, _, last = (observe.read(f"/proc/{entry}/stat") or "").rpartition(")")
        fields = last.split()
        try:
            parent, flags, *ticks = (int(fields[at]) for at in (1, 6, 11, 12, 13, 14))
            key = int(entry), fields[19]
        except (ValueError, IndexError):
            # It has just ended, or the kernel says less of it.
            continue
        if not flags & _KERNEL_THREAD:
            # What the first process waits for are orphans, whose time is nobody's.
            waited = 0.0 if entry == "1" else sum(ticks[2:]) / _TICK
            own = sum(ticks[:2]) / _TICK
            found[key] = Usage(first.partition("(")[2], parent, own, waited)
    return found if any(pid == 1 for pid, _ in found) else None


def _throttled() -> int | None:
    """How often our processors say that heat throttled them; None where they do not."""
    folders = [f"{observe.CPU}/cpu{number}/thermal_throttle" for number in processors()]
    paths = [
        f"{folder}/{kind}_throttle_count" for folder in folders for kind in ("core", "package")
    ]
    counts = [count for path in paths if (count := observe.number(observe.read(path))) is not None]
    return sum(counts) if counts else None


def _swapped() -> int | None:
    """Bytes that were swapped in or out since the machine's start; None where nothing counts them."""
    lines = (observe.read(VMSTAT) or "").splitlines()
    counts = dict(line.split(" ", 1) for line in lines if " " in line)
    pages = [observe.number(counts.get(key)) for key in ("pswpin", "pswpout")]
    return None if None in pages else sum(filter(None, pages)) * os.sysconf("SC_PAGE_SIZE")


def used(early: Reading, late: Reading) -> dict[tuple[int, str], float] | None:
    """Seconds of CPU time that each process used between two readings, with the children that it waited for.

    One that was there at the first reading and has ended counts from then on.  No more is found than all processors
    of the machine together could do, for others may use those that measurements do not: a process
    that came and went while a reading was taken is in neither with its past.
    """
    if early.processes is None or late.processes is None:
        return None
    spent, waited = {}, {}
    for key, now in late.processes.items():
        was = early.processes.get(key, Usage(now.name, now.parent, 0.0, 0.0))
        spent[key], waited[key] = now.own - was.own, now.waited - was.waited
    keys = {key[0]: key for key in early.processes}
    for key, gone in early.processes.items():
        # The past of what has ended is in what the next above it that is still there has waited for since.
        above: tuple[int, str] | None = key
        while above is not None and above not in late.processes:
            above = keys.get(early.processes[above].parent)
        if above is not None and above != key:
            waited[above] -= gone.own + gone.waited
    spent = {key: own + max(0.0, waited[key]) for key, own in spent.items()}
    possible = max(late.moment - early.moment, 1e-3) * (os.cpu_count() or 1)
    factor = possible / max(sum(spent.values()), possible)
    return {key: seconds * factor for key, seconds in spent.items()}


def is_ours(
    pid: int, processes: dict[int, Usage], roots: set[int], daemons: Collection[str]
) -> bool:
    """Whether a process belongs to this run: below one of `roots`, of a system of ours, or a daemon that serves it."""
    above, seen = pid, set()
    # What was read one after the other may name a parent whose id is that of its own child by now.
    while above in processes and above not in seen:
        if above in roots:
            return True
        seen.add(above)
        above = processes[above].parent
    # The kernel cuts names after 15 characters; what some daemons call their threads follows a hyphen.
    if any(processes[pid].name.startswith(name[:15]) for name in daemons):
        return True
    files = observe.read_files([f"/proc/{pid}/cgroup", f"/proc/{pid}/cmdline"])
    groups, words = (files.get(f"/proc/{pid}/{name}", "") for name in ("cgroup", "cmdline"))
    marks = (paths.home(), paths.prefix())
    return any(name in groups for name in _groups_up()) or any(mark in words for mark in marks)


def _groups_up() -> set[str]:
    """Names in the paths of the control groups of this home's systems; other homes may have left some that run."""
    folder = paths.systems()
    systems = os.listdir(folder) if os.path.isdir(folder) else []
    containers = observe.read_files([os.path.join(folder, name, "container") for name in systems])
    return {*systems, *filter(None, containers.values())}


def others(
    early: Reading, late: Reading, daemons: Collection[str], measuring: bool
) -> list[Fields] | None:
    """``[{name, share}]`` of processes that are not ours, the busiest first; a share of 1 is all of one CPU.

    daemons: names of processes that work for whoever asks them, and now for us.  measuring: beside the system only
    this process is ours; while one is brought up, so is what this run does beside the cell.
    """
    spent = used(early, late)
    if spent is None:
        return None
    elapsed = max(late.moment - early.moment, 1e-3)
    roots = {os.getpid()} if measuring else {os.getpid(), run.owner()["pid"]}
    known = {pid: usage for (pid, _), usage in late.processes.items()}
    total: dict[str, float] = defaultdict(float)
    for (pid, _), seconds in spent.items():
        if seconds > 0 and not is_ours(pid, known, roots, daemons):
            total[observe.printable(known[pid].name)] += seconds
    busiest = sorted(total.items(), key=lambda item: -item[1])
    return [{"name": name, "share": round(seconds / elapsed, 4)} for name, seconds in busiest]


def facts(
    early: Reading, late: Reading, daemons: Collection[str], measuring: bool = False
) -> Fields:
    """What the record says of the time between two readings: shares of CPU time, swapping and throttling."""
    found = others(early, late, daemons, measuring)

    def more(name: str) -> Any:
        """By how much a counter grew; one that goes back was begun anew."""
        was, now = getattr(early, name), getattr(late, name)
        return NOT_AVAILABLE if was is None or now is None else max(0, now - was)

    return {
        **observe.shares(early.ticks, late.ticks),
        "others_share": NOT_AVAILABLE
        if found is None
        else round(sum(entry["share"] for entry in found), 4),
        "others": NOT_AVAILABLE if found is None else found[:5],
        "swapped_bytes": more("swapped"),
        "throttled": more("throttled"),
    }


def stalled(commands: list[Fields]) -> float:
    """For how many seconds a command of a cell stood still in one lap: those beyond twice its median of all laps.

    Half of a lap's time may be noise; a command that waits for a machine that stands still takes any.
    """
    laps: dict[int, list[float]] = {}
    for command in commands:
        if "lap" in command and command["exit"] is not None:
            laps.setdefault(command["lap"], []).append(command["seconds"])
    # Each lap has the same commands in the same order, but the last of a cell that cannot go on.
    took = zip(*laps.values(), strict=False) if len(laps) > 2 else []
    return max((max(each) - 2 * sorted(each)[len(each) // 2] for each in took), default=0.0)


def judge(when: str, seconds: float, seen: Fields, thresholds: Fields) -> list[Fields]:
    """``[{what, when, value, threshold}]`` of what crossed its threshold within so many seconds; for busy also `by`.

    seen: of :func:`facts`, with the load and temperature of :func:`strata.host.observe.moment`.
    """
    # The load of a cell itself is its own, and a lap that stood still is of one.
    values = {
        "load": seen["load1"] if when == "before" else NOT_AVAILABLE,
        "steal": seen["steal_share"],
        "busy": seen["others_share"],
        "swap": seen["swapped_bytes"],
        "temperature": seen["temperature_c"],
        "throttled": seen["throttled"],
        "stall": seen.get("stalled_seconds", NOT_AVAILABLE),
    }
    # A share of less CPU time than can be told is none.
    least = {"steal": LEAST_SECONDS / len(processors()), "busy": LEAST_SECONDS}
    flags = []
    for what, value in values.items():
        limit = thresholds.get(what)
        if (
            limit is not None
            and value != NOT_AVAILABLE
            and value > limit
            and value * seconds >= least.get(what, 0)
        ):
            by = {"by": seen["others"]} if what == "busy" else {}
            flags.append({"what": what, "when": when, "value": value, "threshold": limit, **by})
    return flags


def cause(flags: list[Fields]) -> str:
    """In a few words what disturbed a cell, by its flags, most."""
    busiest = [flag["by"][0] for flag in flags if flag.get("by")]
    if busiest:
        return f"{busiest[0]['name']} used {100 * busiest[0]['share']:.0f} % of a CPU"
    return (
        f"{flags[0]['what']} was {flags[0]['value']:g}, and {flags[0]['threshold']:g} is the most"
    )


def settle(limit: float | None) -> None:
    """Wait until a hypervisor has taken back what memory was freed, or for 20 s.

    Meanwhile it takes time from processors that are busy, and shows in nothing else: so ours are
    kept busy, until for some seconds it took no more than a share of `limit`.  A machine whose
    processors never lost time is not kept.
    """
    ours = processors()
    first = observe.cpu_times(ours)
    if limit is None or not any(first[7:8]):
        return
    begun, seen = time.monotonic(), deque([1.0], LOOKS)
    with contextlib.ExitStack() as busy:
        for _ in ours:
            spinning = ["setpriv", "--pdeathsig", "KILL", "sh", "-c", "while :; do :; done"]
            busy.callback(busy.enter_context(subprocess.Popen(spinning)).terminate)
        while max(seen) > limit and time.monotonic() - begun < LONGEST_SECONDS:
            time.sleep(LOOK_SECONDS)
            early, first = first, observe.cpu_times(ours)
            share = observe.shares(early, first)["steal_share"]
            seen.append(0.0 if share == NOT_AVAILABLE else share)


class Lookout:
    """The readings around the cells that are measured at the same time.

    `report` is what their records say under `quiet`, and `host` what they say of the host; both grow with the readings.
    """

    def __init__(self, settings: Quiet) -> None:
        """Begin to watch, at the cell's start."""
        self._reading = take()
        self.report: Fields = {**settings, "flags": []}
        self.host: Fields = {"static": None, "before": observe.moment(processors())}

    def ready(self, daemons: Collection[str]) -> None:
        """Look before the first command of the run; daemons: those that work for any environment of the experiment."""
        self.host["before"] |= self._since("before", self.host["before"], daemons)

    def end(self, daemons: Collection[str], commands: Sequence[list[Fields]]) -> None:
        """Look after the last command, in systems that these daemons work for; then `host` is whole.

        commands: those of each cell that was measured meanwhile.
        Raises CellFailed where the clock was set meanwhile.
        """
        after, before = observe.moment(processors()), self._reading.clock
        longest = max(0.0, *map(stalled, commands))
        during = self._since("during", after, daemons, stalled_seconds=round(longest, 3))
        self.host |= {"static": observe.host(processors()), "after": after, "during": during}
        # Runs that go on in slices, and xz, are timed by the clock that systems share.
        if abs(by := self._reading.clock - before) > CLOCK_SECONDS:
            raise CellFailed(
                f"the machine's clock was set by {by:+.3g} s during the run, or it slept: times of "
                "the run may be wrong, so nothing of it is kept"
            )

    def _since(self, when: str, moment: Fields, daemons: Collection[str], **more: float) -> Fields:
        """What was seen since the last reading; what of it, and of the moment, crossed its threshold is flagged."""
        early, self._reading = self._reading, take()
        seen = facts(early, self._reading, daemons, measuring=when == "during") | more
        seconds = max(self._reading.moment - early.moment, 1e-3)
        self.report["flags"] += judge(when, seconds, moment | seen, self.report["thresholds"])
        return seen

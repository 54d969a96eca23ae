"""Whether the machine is quiet: what else used it is read before and after a cell, and never while it measures.

A :class:`Lookout` takes a reading at the cell's start, one before its first command and one after its last, and judges
the two times between them by the thresholds of the config (docs/method.md).
"""

import os
import re
import sys
import time
from collections import Counter, namedtuple
from collections.abc import Callable, Collection, Sequence

from strata.base import places, run
from strata.base.errors import CellFailed
from strata.base.shapes import Fields, Quiet
from strata.host import observe
from strata.host.cgroups import GROUP, SLICE
from strata.host.observe import NOT_AVAILABLE

# How a flag says what was judged, and how it shows a value.
SAYS: dict[str, tuple[str, Callable[[float], str]]] = {
    "busy": ("other processes used", "{:.1%} of a CPU".format),
    "steal": ("a hypervisor took", "{:.1%} of the CPU time".format),
    "swap": ("swapping moved", lambda value: f"{value / 2**20:.1f} MiB"),
    "temperature": ("the temperature was", "{:.0f} °C".format),
    "throttled": ("the processor was throttled", "{:.0f} times".format),
    "stall": ("a lap took, beyond twice the usual,", "{:.1f} s".format),
    "load": ("the load average over one minute was", "{:.2f}".format),
}
# Shares of less CPU time than this say nothing: the kernel counts in hundredths of a second.
LEAST_SECONDS = 0.05
# While waiting: how long to look, and how long to sleep before the next look.
LOOK_SECONDS = 2.0
PAUSE_SECONDS = 8.0
_KERNEL_THREAD = 0x00200000
_TICK = os.sysconf("SC_CLK_TCK")

# What a process has used: seconds of its own, and of children that it waited for; its name and its parent's id.
# (The classes of typing say more of their fields, but every cell would pay for its import.)
Usage = namedtuple("Usage", ["name", "parent", "own", "waited"])
# The counters of a moment, in seconds, ticks, and bytes; what cannot be read is None.  processes: (id, start) → Usage.
# throttled: path → count.
Reading = namedtuple("Reading", ["moment", "ticks", "processes", "throttled", "swapped"])
# Seconds of processes, by their id and start.
Spent = dict[tuple[int, str], float]


def take() -> Reading:
    """A reading of this moment."""
    return Reading(time.monotonic(), observe.cpu_times(), _processes(), _throttled(), _swapped())


def _processes() -> dict[tuple[int, str], Usage] | None:
    """Every process but the kernel's own threads, by its id and start; None where others are hidden from us."""
    found = {}
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        first, _, last = _read(f"/proc/{entry}/stat").rpartition(b")")
        fields = last.split()
        if len(fields) < 20 or int(fields[6]) & _KERNEL_THREAD:
            continue
        # What the first process waits for are orphans, whose time is nobody's.
        waited = 0.0 if entry == "1" else (int(fields[13]) + int(fields[14])) / _TICK
        own = (int(fields[11]) + int(fields[12])) / _TICK
        name = first.partition(b"(")[2].decode(errors="replace")
        found[int(entry), fields[19].decode()] = Usage(name, int(fields[1]), own, waited)
    return found if any(pid == 1 for pid, _ in found) else None


def _read(path: str) -> bytes:
    """A short file of the kernel's, empty where it is gone; at a third of what `open` costs for each process."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _throttled() -> dict[str, int] | None:
    """The counters of thermal throttling by their path; None where there are none."""
    if not os.path.isdir(f"{observe.CPU}/cpu0/thermal_throttle"):
        return None
    import glob

    paths = glob.glob(f"{observe.CPU}/cpu[0-9]*/thermal_throttle/*_throttle_count")
    return {path: int(text) for path, text in observe.read_files(paths).items()} or None


def _swapped() -> int | None:
    """Bytes that were swapped in or out since the start of the machine."""
    text = observe.read_files(["/proc/vmstat"]).get("/proc/vmstat", "")
    counts = dict(line.split(" ", 1) for line in text.splitlines())
    pages = [counts[key] for key in ("pswpin", "pswpout") if key in counts]
    return sum(map(int, pages)) * os.sysconf("SC_PAGE_SIZE") if pages else None


def used(early: Reading, late: Reading) -> Spent | None:
    """Seconds of CPU time that each process used between two readings, with the children that it waited for.

    One that was there at the first reading and has ended counts from then on.  No more is found than all processors
    together could do: a process that came and went while a reading was taken is in neither with its past.
    """
    if early.processes is None or late.processes is None:
        return None
    own, waited = {}, {}
    for key, now in late.processes.items():
        was = early.processes.get(key, Usage(now.name, now.parent, 0.0, 0.0))
        own[key], waited[key] = now.own - was.own, max(0.0, now.waited - was.waited)
    keys = {key[0]: key for key in early.processes}
    for key, gone in early.processes.items():
        # The past of what has ended is in what somebody above it has waited for since.
        past, parent = gone.own + gone.waited, gone.parent
        while key not in late.processes and past > 0 and parent in keys:
            above = keys[parent]
            taken = min(past, waited.get(above, 0.0))
            if taken:
                waited[above], past = waited[above] - taken, past - taken
            parent = early.processes[above].parent
    possible = max(late.moment - early.moment, 1e-3) * (os.cpu_count() or 1)
    certain = _limited(own, possible)
    children = _limited(waited, possible - sum(certain.values()))
    return {key: certain[key] + children[key] for key in certain}


def _limited(seconds: Spent, most: float) -> Spent:
    """The same seconds, all made less alike where they are more than `most` together."""
    total = sum(seconds.values())
    factor = max(most, 0.0) / total if total > max(most, 0.0) else 1.0
    return {key: value * factor for key, value in seconds.items()}


def is_ours(pid: int, processes: dict[int, Usage], roots: set[int], daemons: Collection[str]) -> bool:
    """Whether a process belongs to this run: below one of `roots`, of a system of ours, or a daemon that serves it."""
    above, seen = pid, set()
    while above in processes and above not in seen:
        if above in roots:
            return True
        seen.add(above)
        above = processes[above].parent
    # The kernel cuts names after 15 characters; what some daemons call their threads follows a hyphen.
    if any(processes[pid].name.startswith(name[:15]) for name in daemons):
        return True
    files = observe.read_files([f"/proc/{pid}/cgroup", f"/proc/{pid}/cmdline"])
    groups = re.split(r"[/:\n]", files.get(f"/proc/{pid}/cgroup", ""))
    words = files.get(f"/proc/{pid}/cmdline", "")
    marks = (places.home(), f"strata-{places.home_mark()[:8]}")
    return GROUP in groups or SLICE in groups or any(mark in words for mark in marks)


def others(early: Reading, late: Reading, daemons: Collection[str], measuring: bool) -> list[Fields] | None:
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
    total: dict[str, float] = {}
    for (pid, start), seconds in spent.items():
        if seconds > 0 and not is_ours(pid, known, roots, daemons):
            name = "".join(letter if letter.isprintable() else "?" for letter in late.processes[pid, start].name)
            total[name] = total.get(name, 0.0) + seconds
    busiest = sorted(total.items(), key=lambda item: -item[1])
    return [{"name": name, "share": round(seconds / elapsed, 4)} for name, seconds in busiest]


def facts(early: Reading, late: Reading, daemons: Collection[str], measuring: bool = False) -> Fields:
    """What the record says of the time between two readings: ``{others_share, others, swapped_bytes, throttled}``."""
    found = others(early, late, daemons, measuring)
    swapped = None if early.swapped is None or late.swapped is None else late.swapped - early.swapped
    throttled = None
    if early.throttled is not None and late.throttled is not None:
        more = {path: late.throttled[path] - count for path, count in early.throttled.items() if path in late.throttled}
        cores = [count for path, count in more.items() if "core" in os.path.basename(path)]
        # A package's counter is shown by each of its CPUs.
        packages = [count for path, count in more.items() if "core" not in os.path.basename(path)]
        throttled = sum(cores) + max(packages, default=0)
    told = {
        "others_share": None if found is None else round(sum(entry["share"] for entry in found), 4),
        "others": None if found is None else found[:5],
        "swapped_bytes": swapped,
        "throttled": throttled,
    }
    return {key: NOT_AVAILABLE if value is None else value for key, value in told.items()}


def stalled(commands: list[Fields]) -> float:
    """For how many seconds a command of a cell stood still in one lap: those beyond twice its median of all laps.

    Half of a lap's time may be noise; a command that waits for a machine that stands still takes any.
    """
    took: dict[tuple[object, int], list[float]] = {}
    before: Counter[tuple[object, object]] = Counter()
    for command in commands:
        if command.get("lap") is not None and command["exit"] is not None:
            system = command.get("system")
            # The same command in all laps: each has as many before it.
            took.setdefault((system, before[command["lap"], system]), []).append(command["seconds"])
            before[command["lap"], system] += 1
    return max((max(each) - 2 * sorted(each)[len(each) // 2] for each in took.values() if len(each) > 2), default=0.0)


def judge(when: str, early: Reading, late: Reading, seen: Fields, thresholds: Fields) -> list[Fields]:
    """``[{what, when, value, threshold}]`` of what crossed its threshold; for busy also `by` whom.

    seen: of :func:`facts`, with the load and temperature of :func:`strata.host.observe.moment`.
    """
    elapsed = max(late.moment - early.moment, 1e-3)
    ticks = [after - before for before, after in zip(early.ticks, late.ticks, strict=True)][:8]
    stolen = ticks[7] / sum(ticks) if sum(ticks) > 0 and ticks[7] >= LEAST_SECONDS * _TICK else 0.0
    busy = seen["others_share"]
    if busy != NOT_AVAILABLE and busy * elapsed < LEAST_SECONDS:
        busy = 0.0
    values = {
        # The load of a cell itself is its own.
        "load": seen["load1"] if when == "before" else NOT_AVAILABLE,
        "steal": round(stolen, 5),
        "busy": busy,
        "swap": seen["swapped_bytes"],
        "temperature": seen["temperature_c"],
        "throttled": seen["throttled"],
        "stall": seen.get("stalled_seconds", NOT_AVAILABLE) if when == "during" else NOT_AVAILABLE,
    }
    flags = []
    for what, value in values.items():
        limit = thresholds.get(what)
        if limit is not None and value != NOT_AVAILABLE and value > limit:
            by = {"by": seen["others"]} if what == "busy" else {}
            flags.append({"what": what, "when": when, "value": value, "threshold": limit, **by})
    return flags


def sentence(flag: Fields) -> str:
    """A flag in words."""
    says, shown = SAYS[flag["what"]]
    by = ", ".join(f"{entry['name']} {100 * entry['share']:.1f}%" for entry in flag.get("by", []))
    limit = f"more than {shown(flag['threshold'])} (quiet.{flag['what']})"
    return f"{says} {shown(flag['value'])} {flag['when']} the cell, {limit}{f': {by}' if by else ''}"


def cause(flags: list[Fields]) -> str:
    """In a few words what disturbed a cell most; nothing where nothing did."""
    for flag in sorted(flags, key=lambda flag: flag["what"] != "busy"):
        if flag.get("by"):
            return f"{flag['by'][0]['name']} used {100 * flag['by'][0]['share']:.0f} % of a CPU"
        says, shown = SAYS[flag["what"]]
        return f"{says} {shown(flag['value'])}"
    return ""


class Lookout:
    """The readings around the cells that are measured at the same time.

    `report` is what their records say under `quiet`, and `host` what they say of the host; both grow with the readings.

    daemons: those that work for any environment of the experiment.
    """

    reading: Reading

    def __init__(
        self, settings: Quiet, daemons: Collection[str] = (), sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.action, self.patience = settings["action"], settings["wait_seconds"]
        self.report: Fields = {
            "action": self.action,
            "flags": [],
            "waited_seconds": 0.0,
            "thresholds": settings["thresholds"],
        }
        self._daemons, self._sleep = daemons, sleep
        self.host: Fields = {}

    def begin(self) -> None:
        """Begin to watch, at the cell's start; wait until the machine is quiet, where that is asked for.

        Raises CellFailed where the machine is not quiet and cells are refused then.
        """
        if self.action in ("wait", "refuse"):
            flags = self._look()
            if flags and self.action == "wait":
                flags = self._wait(flags)
            self._note(flags)
        self.reading = take()
        self.host = {"static": None, "before": observe.moment()}

    def ready(self) -> None:
        """Look before the first command of the run."""
        before = self.host["before"]
        before |= self._seen("before", before, self._daemons)

    def end(self, daemons: Collection[str], commands: Sequence[list[Fields]] = ()) -> None:
        """Look after the last command, in systems that these daemons work for; then `host` is whole.

        commands: those of each cell that was measured meanwhile.
        """
        after = observe.moment()
        longest = max([0.0, *map(stalled, commands)])
        during = self._seen("during", after, daemons, stalled_seconds=round(longest, 3))
        self.host |= {"static": observe.host(), "after": after, "during": during}

    def _seen(self, when: str, moment: Fields, daemons: Collection[str], **more: float) -> Fields:
        """What was seen since the last reading; what of it, and of the moment, crossed its threshold is noted."""
        early, self.reading = self.reading, take()
        seen = observe.shares(early.ticks, self.reading.ticks) | more
        seen |= facts(early, self.reading, daemons, measuring=when == "during")
        self._note(judge(when, early, self.reading, {**moment, **seen}, self.report["thresholds"]))
        return seen

    def _look(self) -> list[Fields]:
        """What disturbs now; sleeps meanwhile."""
        early = take()
        self._sleep(LOOK_SECONDS)
        late = take()
        return judge(
            "before", early, late, {**observe.moment(), **facts(early, late, self._daemons)}, self.report["thresholds"]
        )

    def _wait(self, flags: list[Fields]) -> list[Fields]:
        """Sleep until the machine is quiet or the time is over; what disturbs then."""
        reasons = "; ".join(sentence(flag) for flag in flags)
        print(f"quiet: waiting for at most {self.patience:g} s: {reasons}", file=sys.stderr, flush=True)
        begun = time.monotonic()
        while flags and (left := self.patience - (time.monotonic() - begun)) > 0:
            self._sleep(min(PAUSE_SECONDS, left))
            flags = self._look()
        self.report["waited_seconds"] = round(time.monotonic() - begun, 1)
        return flags

    def _note(self, flags: list[Fields]) -> None:
        """Keep flags, of several of one kind the worst.  Raises CellFailed where cells are refused for them."""
        kept = {(flag["what"], flag["when"]): flag for flag in self.report["flags"]}
        for flag in flags:
            known = kept.get((flag["what"], flag["when"]))
            if known is None or flag["value"] > known["value"]:
                kept[flag["what"], flag["when"]] = flag
        self.report["flags"] = list(kept.values())
        if flags and self.action == "refuse":
            reasons = "; ".join(sentence(flag) for flag in flags)
            raise CellFailed(f"the machine is not quiet: {reasons}")

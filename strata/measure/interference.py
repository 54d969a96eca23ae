"""Detect interference: other uses of the machine, read before and after a run, never in a lap.

An :class:`InterferenceMonitor` takes a reading at the cell's start, one before its first command
and one after its last, and judges the two times between them by the thresholds of the
configuration (docs/method.md).  The record has the result under `interference`.
"""

import contextlib
import os
import subprocess
import time
from collections import defaultdict, deque, namedtuple
from collections.abc import Collection

from strata.host import observe
from strata.host.capacity import list_usable_cpus
from strata.host.observe import NOT_AVAILABLE
from strata.util import paths, run
from strata.util.data_types import Any, Fields, Interference
from strata.util.errors import CellFailed

# Seconds of CPU time below which a share is not measurable: the kernel counts in hundredths of a
# second.
LEAST_SECONDS = 0.05
# A hypervisor takes memory back in bursts of about 1 GB that are two to three seconds apart.  The
# wait ends after READINGS readings in a row, READING_SECONDS apart, that show no burst, and at the
# latest after LONGEST_SECONDS.
READINGS, READING_SECONDS, LONGEST_SECONDS = 7, 0.5, 20.0
# By how many seconds the offset between two clocks may change although neither clock was set.
CLOCK_SECONDS = 0.001
VMSTAT = "/proc/vmstat"
# The kernel's flag PF_KTHREAD of a process.
_KERNEL_THREAD = 0x00200000
_TICK = os.sysconf("SC_CLK_TCK")

# These are namedtuples, since importing typing would take a cell's time.
# A process: its name, the ID of its parent, its own CPU time in seconds, and that of children that
# it waited for.
Usage = namedtuple("Usage", ["name", "parent", "own", "waited"])
# The clocks and counters of a moment, in seconds, ticks and bytes; None if one cannot be read.
# processes: (process ID, start time) → Usage.
# clock: how many seconds the clock of the day is ahead of `moment`, the monotonic clock.
Reading = namedtuple("Reading", ["moment", "ticks", "processes", "throttled", "swapped", "clock"])


def take_reading() -> Reading:
    """Return a reading of the clocks, and of the counters of all usable CPUs and all processes."""
    return Reading(
        time.monotonic(),
        clock=_measure_clock_offset(),
        ticks=observe.read_cpu_times(list_usable_cpus()),
        processes=_read_processes(),
        throttled=_count_throttlings(),
        swapped=_count_swapped_bytes(),
    )


def _measure_clock_offset() -> float:
    """Return how many seconds the clock of the day is ahead of the monotonic clock.

    The offset changes only when the clock of the day is set.
    """
    attempts = []
    # The thread may be interrupted between two clocks; hardly in all of five attempts.
    for _ in range(5):
        before, day, after = time.monotonic(), time.time(), time.monotonic()
        attempts.append((after - before, day - before))
    # The quickest attempt was the least disturbed.
    _, offset = min(attempts)
    return offset


def _read_processes() -> dict[tuple[int, str], Usage] | None:
    """Return the CPU time of every process except kernel threads; None if some are hidden.

    The keys are (process ID, start time): the kernel uses an ID again after a process has ended.
    """
    usages = {}
    for entry in filter(str.isdecimal, observe.list_folder("/proc")):
        # PID (NAME) and the other fields of proc_pid_stat(5); a name may contain ")", too.
        head, _, tail = (observe.read_file(f"/proc/{entry}/stat") or "").rpartition(")")
        # The index of a field is its number in the manual minus 3.
        fields = tail.split()
        try:
            parent, flags = int(fields[1]), int(fields[6])
            own_ticks = int(fields[11]) + int(fields[12])
            child_ticks = int(fields[13]) + int(fields[14])
            key = (int(entry), fields[19])
        except (ValueError, IndexError):
            # The process has just ended, or the kernel hides its fields.
            continue
        if flags & _KERNEL_THREAD:
            continue
        if entry == "1":
            # The first process waits for orphans, whose time belongs to none of its descendants.
            child_ticks = 0
        name = head.partition("(")[2]
        usages[key] = Usage(name, parent, own_ticks / _TICK, child_ticks / _TICK)
    # Where processes are hidden, so is the first one.
    return usages if any(pid == 1 for pid, _ in usages) else None


def _count_throttlings() -> int | None:
    """Return how often heat throttled the usable CPUs since the machine booted.

    A package's throttling counts once for each of its CPUs.  None if the kernel does not count it,
    as in most virtual machines.
    """
    counts = []
    for cpu in list_usable_cpus():
        for kind in ("core", "package"):
            folder = f"{observe.CPU_FOLDER}/cpu{cpu}/thermal_throttle"
            count = observe.parse_number(observe.read_file(f"{folder}/{kind}_throttle_count"))
            if count is not None:
                counts.append(count)
    return sum(counts) if counts else None


def _count_swapped_bytes() -> int | None:
    """Return the bytes swapped in or out since the machine booted; None if they are not counted."""
    lines = (observe.read_file(VMSTAT) or "").splitlines()
    counts = dict(line.split(" ", 1) for line in lines if " " in line)
    pages_in = observe.parse_number(counts.get("pswpin"))
    pages_out = observe.parse_number(counts.get("pswpout"))
    if pages_in is None or pages_out is None:
        return None
    return (pages_in + pages_out) * os.sysconf("SC_PAGE_SIZE")


def compute_cpu_seconds(early: Reading, late: Reading) -> dict[tuple[int, str], float] | None:
    """Return the CPU time, in seconds, that each process used between two readings.

    It includes the time of child processes that the process waited for.  The keys are those of
    `processes` of a reading.  None if processes are hidden in one of the readings.

    If a process ended meanwhile, only its time after the first reading counts.  A process that
    started and ended while a reading was taken may be in only one of the readings, with all its
    earlier time.  Therefore the sum is limited to the time of all CPUs of the machine.
    """
    if early.processes is None or late.processes is None:
        return None
    own_seconds = {}
    # The time of ended children that a process waited for.
    child_seconds = {}
    for key, usage in late.processes.items():
        before = early.processes.get(key, Usage(usage.name, usage.parent, 0.0, 0.0))
        own_seconds[key] = usage.own - before.own
        child_seconds[key] = usage.waited - before.waited
    keys_by_pid = {key[0]: key for key in early.processes}
    for key, ended in early.processes.items():
        # The earlier time of an ended process is in the waited time of its nearest ancestor that
        # still runs, and must not count.
        ancestor: tuple[int, str] | None = key
        while ancestor is not None and ancestor not in late.processes:
            ancestor = keys_by_pid.get(early.processes[ancestor].parent)
        if ancestor is not None and ancestor != key:
            child_seconds[ancestor] -= ended.own + ended.waited
    spent = {key: seconds + max(0.0, child_seconds[key]) for key, seconds in own_seconds.items()}
    # Two readings may have the same time.
    possible = max(late.moment - early.moment, 1e-3) * (os.cpu_count() or 1)
    factor = possible / max(sum(spent.values()), possible)
    return {key: seconds * factor for key, seconds in spent.items()}


def is_process_of_this_run(
    pid: int, processes: dict[int, Usage], roots: set[int], daemons: Collection[str]
) -> bool:
    """Return whether a process belongs to this run.

    It does if it descends from one of `roots`, is one of `daemons`, or is in a system of this home.
    pid: the ID of a process in `processes`.
    processes: the usage by process ID.
    roots: the IDs of processes of this run.
    daemons: the names of the daemons that serve the systems of this run.
    Reads /proc for a process that neither descends from `roots` nor is a daemon.
    """
    ancestor = pid
    visited = set()
    # Processes are read one after the other: a parent's ID may already belong to a descendant.
    while ancestor in processes and ancestor not in visited:
        if ancestor in roots:
            return True
        visited.add(ancestor)
        ancestor = processes[ancestor].parent
    # The kernel cuts names after 15 characters, and some daemons append a hyphen and a thread's
    # name.
    if any(processes[pid].name.startswith(name[:15]) for name in daemons):
        return True
    files = observe.read_files([f"/proc/{pid}/cgroup", f"/proc/{pid}/cmdline"])
    groups = files.get(f"/proc/{pid}/cgroup", "")
    command = files.get(f"/proc/{pid}/cmdline", "")
    if any(name in groups for name in _list_group_names()):
        return True
    # Layers put the home folder or its mark into the commands of what they start.
    return paths.get_home_folder() in command or paths.get_name_prefix() in command


def _list_group_names() -> set[str]:
    """Return the names that appear in the control group paths of this home's systems.

    They are the IDs of the systems and of their containers.  Systems of other homes may run at the
    same time; their names are left out.
    """
    folder = paths.get_systems_folder()
    systems = os.listdir(folder) if os.path.isdir(folder) else []
    # The layer of an engine writes its container's ID there (environments/common/engine.py).
    containers = observe.read_files([os.path.join(folder, name, "container") for name in systems])
    return {*systems, *filter(None, containers.values())}


def list_foreign_processes(
    early: Reading, late: Reading, daemons: Collection[str], measuring: bool
) -> list[Fields] | None:
    """Return ``[{name, share}]`` of the processes outside of this run, the busiest first.

    Processes of the same name are summed.  A share of 1 is one CPU in full use.  Returns None if
    some processes are hidden.
    daemons: the names of daemons that also serve other users, and count as part of this run.
    measuring: whether a run is measured.  Then this run's processes are the systems, this process
    and its descendants; otherwise also those of the Snakemake run.
    """
    spent = compute_cpu_seconds(early, late)
    if spent is None:
        return None
    elapsed = max(late.moment - early.moment, 1e-3)
    roots = {os.getpid()} if measuring else {os.getpid(), run.identify_run_process()["pid"]}
    processes = {pid: usage for (pid, _), usage in late.processes.items()}
    by_name: dict[str, float] = defaultdict(float)
    for (pid, _), seconds in spent.items():
        if seconds > 0 and not is_process_of_this_run(pid, processes, roots, daemons):
            by_name[observe.replace_unprintable(processes[pid].name)] += seconds
    busiest = sorted(by_name.items(), key=lambda item: -item[1])
    return [{"name": name, "share": round(seconds / elapsed, 4)} for name, seconds in busiest]


def compare_readings(
    early: Reading, late: Reading, daemons: Collection[str], measuring: bool = False
) -> Fields:
    """Return the facts about the time between two readings, as the record holds them.

    They are shares of CPU time, the five busiest foreign processes, the bytes swapped, and how
    often heat throttled the CPUs; any of them may be "not available".  The parameters are those of
    :func:`list_foreign_processes`.
    The keys are those of `observed.host` in the record; :func:`flag_exceeded_thresholds` and
    analysis/paper_data.R read them.
    """
    processes = list_foreign_processes(early, late, daemons, measuring)
    total_share = NOT_AVAILABLE
    if processes is not None:
        total_share = round(sum(process["share"] for process in processes), 4)
    return {
        **observe.compute_cpu_time_shares(early.ticks, late.ticks),
        "processes_share": total_share,
        "processes": NOT_AVAILABLE if processes is None else processes[:5],
        "swapped_bytes": _compute_counter_growth(early.swapped, late.swapped),
        "throttled": _compute_counter_growth(early.throttled, late.throttled),
    }


def _compute_counter_growth(before: int | None, after: int | None) -> Any:
    """Return by how much a counter grew; NOT_AVAILABLE if a value is None, 0 after a reset."""
    if before is None or after is None:
        return NOT_AVAILABLE
    return max(0, after - before)


def flag_exceeded_thresholds(
    when: str, seconds: float, facts: Fields, thresholds: Fields
) -> list[Fields]:
    """Return ``[{what, when, value, threshold}]`` of the values that exceed their thresholds.

    A flag for busy processes also has ``by``, their names and shares.  The flags are those of
    `interference` in the record: strata/results/decide.py repeats blocks by them, and the analysis
    shows them.
    when: "before" or "during" the run.
    seconds: the length of the time in which the values were observed.
    facts: the facts of :func:`compare_readings`, with the load and temperature of
    :func:`strata.host.observe.observe_current_load`.
    thresholds: the limit of each quantity; a quantity with the limit None is not judged.
    """
    # The keys are those of the thresholds in config.yaml (schemas/config.schema.json).
    values = {
        # During a run, the cell itself causes the load.
        "load": facts["load1"] if when == "before" else NOT_AVAILABLE,
        "steal": facts["steal_share"],
        "busy": facts["processes_share"],
        "swap": facts["swapped_bytes"],
        "temperature": facts["temperature_c"],
        "throttled": facts["throttled"],
    }
    flags = []
    for quantity in list_exceeded_thresholds(seconds, values, thresholds):
        flag = {
            "what": quantity,
            "when": when,
            "value": values[quantity],
            "threshold": thresholds[quantity],
        }
        if quantity == "busy":
            flag["by"] = facts["processes"]
        flags.append(flag)
    return flags


def list_exceeded_thresholds(seconds: float, values: Fields, thresholds: Fields) -> list[str]:
    """Return the names of the thresholds that are exceeded.

    values: the observed value of each quantity by its name.
    thresholds: the limit of each quantity by its name; a missing limit, or None, is not judged.
    seconds: the length of the time in which the values were observed.  A share is not judged if its
    CPU time is too short to be measured.
    """
    least_seconds = {"steal": LEAST_SECONDS / len(list_usable_cpus()), "busy": LEAST_SECONDS}
    exceeded = []
    for quantity, value in values.items():
        limit = thresholds.get(quantity)
        if limit is None or value == NOT_AVAILABLE or value <= limit:
            continue
        if value * seconds >= least_seconds.get(quantity, 0):
            exceeded.append(quantity)
    return exceeded


def describe_main_cause(flags: list[Fields]) -> str:
    """Return a phrase on the main cause of a disturbance.

    It names the busiest foreign process, or else the first flag.
    flags: as from :func:`flag_exceeded_thresholds`; at least one.
    strata/results/decide.py gives the phrase as the reason why a block is measured again.
    """
    for flag in flags:
        if flag.get("by"):
            busiest = flag["by"][0]
            return f"{busiest['name']} used {100 * busiest['share']:.0f} % of a CPU"
    flag = flags[0]
    return f"{flag['what']} was {flag['value']:g}, and {flag['threshold']:g} is the most"


def wait_for_memory_reclaim(limit: float | None) -> None:
    """Wait until a hypervisor has taken back memory that was freed, for LONGEST_SECONDS at most.

    While it takes memory back, the hypervisor steals CPU time, which only busy CPUs show.  This
    function therefore keeps the usable CPUs busy until the stolen share is at most `limit` for some
    seconds (READINGS times READING_SECONDS).
    limit: the largest share of stolen time.  Nothing is done if it is None, or if no hypervisor
    ever stole time from this machine.
    """
    cpus = list_usable_cpus()
    ticks = observe.read_cpu_times(cpus)
    # The eighth number, if the kernel has it, is the stolen time.
    if limit is None or not any(ticks[7:8]):
        return
    started = time.monotonic()
    shares = deque([1.0], READINGS)
    with contextlib.ExitStack() as loops:
        for _ in cpus:
            # The kernel kills a loop also if this process is killed.
            loop = ["setpriv", "--pdeathsig", "KILL", "sh", "-c", "while :; do :; done"]
            # At the end each loop is terminated first, and then waited for.
            loops.callback(loops.enter_context(subprocess.Popen(loop)).terminate)
        # The first share, 1, leaves the queue only after READINGS readings.
        while max(shares) > limit and time.monotonic() - started < LONGEST_SECONDS:
            time.sleep(READING_SECONDS)
            before, ticks = ticks, observe.read_cpu_times(cpus)
            share = observe.compute_cpu_time_shares(before, ticks)["steal_share"]
            shares.append(0.0 if share == NOT_AVAILABLE else share)


class InterferenceMonitor:
    """Take the readings around cells that are measured at the same time, and judge them.

    report: the value of `interference` in the records.
    host: the value of `observed.host` in the records.
    Each reading adds to both; they are complete after :meth:`take_reading_after_run`.
    """

    def __init__(self, settings: Interference) -> None:
        """Take the reading at the start of the cells.

        settings: the action and the thresholds of the plan's `interference`; not changed.
        """
        self._reading = take_reading()
        self.report: Fields = {**settings, "flags": []}
        self.host: Fields = {
            "static": None,
            "before": observe.observe_current_load(list_usable_cpus()),
        }

    def take_reading_before_run(self, daemons: Collection[str]) -> None:
        """Take the reading before the first command of the run, and add to `host` and `report`.

        daemons: the names of the daemons that serve any environment of the experiment: their
        start-up is not interference.
        """
        self.host["before"] |= self._judge_interval("before", self.host["before"], daemons)

    def take_reading_after_run(
        self, daemons: Collection[str], judged: Collection[str] = ()
    ) -> None:
        """Take the reading after the last command, and complete `host` and `report`.

        daemons: the names of the daemons that serve the environments of the cells.
        judged: the thresholds that laps were judged by (:attr:`LapMonitor.judged`).  They flag
        nothing here: :func:`strata.measure.laps.flag_disturbed_laps` applies them.
        Raises CellFailed if the machine's clock was set during the run.
        """
        after = observe.observe_current_load(list_usable_cpus())
        offset_before = self._reading.clock
        during = self._judge_interval("during", after, daemons, judged)
        self.host |= {
            "static": observe.observe_host(list_usable_cpus()),
            "after": after,
            "during": during,
        }
        # Slices and xz are timed by the clock of the day, which all systems share.
        change = self._reading.clock - offset_before
        if abs(change) > CLOCK_SECONDS:
            raise CellFailed(
                f"the machine's clock was set by {change:+.3g} s during the run, or it slept: "
                "times of the run may be wrong, so nothing of it is kept"
            )

    def _judge_interval(
        self, when: str, moment: Fields, daemons: Collection[str], judged: Collection[str] = ()
    ) -> Fields:
        """Take a reading, flag each disturbance since the last reading, and return the facts.

        when: "before" or "during" the run.
        moment: the facts of the host at this moment; load and temperature are judged by them.
        judged: the thresholds that flag nothing.
        Adds the flags to `report`.  The next call begins with the reading of this one.
        """
        early, self._reading = self._reading, take_reading()
        facts = compare_readings(early, self._reading, daemons, measuring=when == "during")
        seconds = max(self._reading.moment - early.moment, 1e-3)
        thresholds = self.report["thresholds"] | dict.fromkeys(judged)
        self.report["flags"] += flag_exceeded_thresholds(when, seconds, moment | facts, thresholds)
        return facts

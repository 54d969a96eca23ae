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
MIN_MEASURABLE_SECONDS = 0.05
# A hypervisor takes memory back in bursts of about 1 GB that are two to three seconds apart.  The
# wait ends after CALM_READINGS readings in a row without a burst, which cover more than the
# distance of two bursts, and at the latest after MAX_WAIT_SECONDS.
CALM_READINGS, SECONDS_BETWEEN_READINGS, MAX_WAIT_SECONDS = 7, 0.5, 20.0
# By how many seconds the offset between two clocks may change although neither clock was set.
MAX_CLOCK_CHANGE_SECONDS = 0.001
# Two readings may have the same time; the time between them then counts as this many seconds, so
# that shares can be computed.
MIN_INTERVAL_SECONDS = 1e-3
VMSTAT = "/proc/vmstat"
# The kernel's flag PF_KTHREAD of a process.
_KERNEL_THREAD = 0x00200000
_TICK = os.sysconf("SC_CLK_TCK")

# These are namedtuples, since importing typing would take a cell's time.
# A process: its name, the ID of its parent, its own CPU time in seconds, and that of children that
# it waited for.
Usage = namedtuple("Usage", ["name", "parent", "own", "waited"])
# The clocks and counters at one time; None if one cannot be read.
# timestamp: the seconds of the monotonic clock.
# ticks: the ticks of the usable CPUs, as from :func:`strata.host.observe.read_cpu_times`.
# processes: (process ID, start time) → Usage.
# throttled: how often heat throttled the CPUs since the machine booted.
# swapped: the bytes swapped in or out since the machine booted.
# clock: how many seconds the clock of the day is ahead of the monotonic clock.
Reading = namedtuple(
    "Reading", ["timestamp", "ticks", "processes", "throttled", "swapped", "clock"]
)


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

    The offset changes only when the clock of the day is set, or when the machine sleeps.
    """
    # (duration, offset) of each attempt.
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
    A process that ends while it is read, or whose fields the kernel hides, is left out.
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
    # Where the kernel hides the processes of others (hidepid of proc(5)), it hides process 1, too.
    return usages if any(pid == 1 for pid, _ in usages) else None


def _count_throttlings() -> int | None:
    """Return how often heat throttled the usable CPUs since the machine booted.

    A package's throttling counts once for each of its CPUs.  CPUs without a count are left out.
    Returns None if the kernel counts it for no CPU, as in most virtual machines.
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


def compute_cpu_seconds(before: Reading, after: Reading) -> dict[tuple[int, str], float] | None:
    """Return the CPU time, in seconds, that each process used between two readings.

    before: the first reading.
    after: the second reading.
    The keys are (process ID, start time) of each process in the second reading.  A process's time
    includes the time of child processes that it waited for.  Returns None if processes are hidden
    in one of the readings.
    If a process ended meanwhile, only its time after the first reading counts.  A process that
    started and ended while a reading was taken may be in only one of the readings, with all its
    earlier time.  If the sum therefore exceeds the time of all CPUs of the machine, all times are
    reduced by the same factor.  A negative difference of children's times counts as 0.
    """
    if before.processes is None or after.processes is None:
        return None
    own_seconds = {}
    # The time of ended children that a process waited for.
    child_seconds = {}
    for key, usage in after.processes.items():
        # A process that started meanwhile has used no time before.
        earlier_usage = before.processes.get(key, Usage(usage.name, usage.parent, 0.0, 0.0))
        own_seconds[key] = usage.own - earlier_usage.own
        child_seconds[key] = usage.waited - earlier_usage.waited
    keys_by_pid = {key[0]: key for key in before.processes}
    for key, usage in before.processes.items():
        # The time that an ended process used before the first reading is in the waited time of its
        # nearest ancestor that still runs, and must not count.
        ancestor: tuple[int, str] | None = key
        while ancestor is not None and ancestor not in after.processes:
            ancestor = keys_by_pid.get(before.processes[ancestor].parent)
        if ancestor is not None and ancestor != key:
            child_seconds[ancestor] -= usage.own + usage.waited
    cpu_seconds = {
        key: seconds + max(0.0, child_seconds[key]) for key, seconds in own_seconds.items()
    }
    interval_seconds = max(after.timestamp - before.timestamp, MIN_INTERVAL_SECONDS)
    max_seconds = interval_seconds * (os.cpu_count() or 1)
    # The factor is 1 unless the sum is too large.
    factor = max_seconds / max(sum(cpu_seconds.values()), max_seconds)
    return {key: seconds * factor for key, seconds in cpu_seconds.items()}


def is_process_of_this_run(
    pid: int, processes: dict[int, Usage], roots: set[int], daemons: Collection[str]
) -> bool:
    """Return whether a process belongs to this run.

    It does if it descends from one of `roots`, is one of `daemons`, or is in a system of this home.
    pid: the ID of a process in `processes`.
    processes: the usage by process ID.
    roots: the IDs of processes of this run.
    daemons: the names of the daemons that serve the systems of this run; a process whose name
    begins with the first 15 characters of such a name counts as this daemon.
    Reads /proc for a process that neither descends from `roots` nor is a daemon.  A process that
    has ended meanwhile then counts as foreign.
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
    before: Reading, after: Reading, daemons: Collection[str], measuring: bool
) -> list[Fields] | None:
    """Return ``[{name, share}]`` of the processes outside of this run, the busiest first.

    before: the reading at the beginning of the judged time.
    after: the reading at its end.
    daemons: the names of daemons that also serve other users, and count as part of this run.
    measuring: whether a run is measured.  Then this run's processes are the systems, this process
    and its descendants; otherwise also the processes of the Snakemake run.
    The shares of processes with the same name are summed, and rounded to four digits.  A share of 1
    is one CPU in full use.  Unprintable characters of names are replaced.  Returns None if some
    processes are hidden.
    """
    cpu_seconds = compute_cpu_seconds(before, after)
    if cpu_seconds is None:
        return None
    interval_seconds = max(after.timestamp - before.timestamp, MIN_INTERVAL_SECONDS)
    roots = {os.getpid()} if measuring else {os.getpid(), run.identify_run_process()["pid"]}
    processes = {pid: usage for (pid, _), usage in after.processes.items()}
    seconds_by_name: dict[str, float] = defaultdict(float)
    for (pid, _), seconds in cpu_seconds.items():
        if seconds > 0 and not is_process_of_this_run(pid, processes, roots, daemons):
            seconds_by_name[observe.replace_unprintable(processes[pid].name)] += seconds
    busiest_first = sorted(seconds_by_name.items(), key=lambda item: -item[1])
    return [
        {"name": name, "share": round(seconds / interval_seconds, 4)}
        for name, seconds in busiest_first
    ]


def compare_readings(
    before: Reading, after: Reading, daemons: Collection[str], measuring: bool = False
) -> Fields:
    """Return the facts about the time between two readings, as the record holds them.

    The facts are shares of CPU time, the five busiest foreign processes, the bytes swapped, and how
    often heat throttled the CPUs; any of them may be "not available".
    before: the reading at the beginning of the time.
    after: the reading at its end.
    daemons: the names of daemons that count as part of this run.
    measuring: whether a run is measured; see :func:`list_foreign_processes`.
    The record keeps the result in `observed.host`; :func:`flag_exceeded_thresholds` and
    analysis/paper_data.R read its keys.
    """
    processes = list_foreign_processes(before, after, daemons, measuring)
    total_share = NOT_AVAILABLE
    if processes is not None:
        total_share = round(sum(process["share"] for process in processes), 4)
    return {
        **observe.compute_cpu_time_shares(before.ticks, after.ticks),
        "processes_share": total_share,
        # Five names explain a disturbance; the record stays short.
        "processes": NOT_AVAILABLE if processes is None else processes[:5],
        "swapped_bytes": _compute_counter_growth(before.swapped, after.swapped),
        "throttled": _compute_counter_growth(before.throttled, after.throttled),
    }


def _compute_counter_growth(before: int | None, after: int | None) -> Any:
    """Return by how much a counter grew between two readings.

    Returns NOT_AVAILABLE if a reading has no count (None), and 0 if the counter was reset.
    """
    if before is None or after is None:
        return NOT_AVAILABLE
    return max(0, after - before)


def flag_exceeded_thresholds(
    when: str, seconds: float, facts: Fields, thresholds: Fields
) -> list[Fields]:
    """Return ``[{what, when, value, threshold}]`` of the values that exceed their thresholds.

    when: "before" or "during" the run.  The load is judged only before the run.
    seconds: the length of the time in which the values were observed.
    facts: the result of :func:`compare_readings`, with the load and temperature from
    :func:`strata.host.observe.observe_current_load`.
    thresholds: quantity → its limit; a quantity with the limit None is not judged.
    A flag for busy processes also has ``by``: ``[{name, share}]`` of these processes.
    Records store the flags as `interference`; strata/results/decide.py repeats blocks that have
    flags, and the analysis shows them.
    """
    # The names of the quantities are the keys of the thresholds in schemas/config.schema.json.
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

    seconds: the length of the time in which the values were observed.
    values: quantity → its observed value, or NOT_AVAILABLE.
    thresholds: quantity → its limit; a quantity without a limit, or with None, is not judged.
    A quantity without a value is not judged.  Nor is a share whose CPU time is too short to be
    measured (MIN_MEASURABLE_SECONDS).
    """
    # The share `steal` is of the time of all usable CPUs, and `busy` of one CPU.
    min_seconds = {
        "steal": MIN_MEASURABLE_SECONDS / len(list_usable_cpus()),
        "busy": MIN_MEASURABLE_SECONDS,
    }
    exceeded = []
    for quantity, value in values.items():
        limit = thresholds.get(quantity)
        if limit is None or value == NOT_AVAILABLE or value <= limit:
            continue
        # The other quantities are not shares, and have no smallest time.
        if value * seconds >= min_seconds.get(quantity, 0):
            exceeded.append(quantity)
    return exceeded


def describe_main_cause(flags: list[Fields]) -> str:
    """Return a phrase on the main cause of a disturbance, such as "cc1 used 87 % of a CPU".

    The phrase names the busiest foreign process; without one, the first flag, as in "steal was
    0.05, and 0.02 is the most".
    flags: ``[{what, when, value, threshold, by}]``, at least one, from
    :func:`flag_exceeded_thresholds`.
    strata/results/decide.py gives the phrase as the reason why a block is measured again.
    """
    for flag in flags:
        if flag.get("by"):
            busiest = flag["by"][0]
            return f"{busiest['name']} used {100 * busiest['share']:.0f} % of a CPU"
    flag = flags[0]
    return f"{flag['what']} was {flag['value']:g}, and {flag['threshold']:g} is the most"


def wait_for_memory_reclaim(limit: float | None) -> None:
    """Keep all usable CPUs busy until a hypervisor has taken back memory that was freed.

    While it takes memory back, the hypervisor steals CPU time, which only busy CPUs show.  The wait
    ends when the stolen share was at most `limit` in CALM_READINGS readings in a row, or after
    MAX_WAIT_SECONDS.
    limit: the largest share of stolen time, from 0 to 1.  Nothing is done if it is None, or if no
    hypervisor ever stole time from this machine.
    """
    cpus = list_usable_cpus()
    ticks = observe.read_cpu_times(cpus)
    # The eighth number, if the kernel has it, is the stolen time.
    if limit is None or not any(ticks[7:8]):
        return
    started = time.monotonic()
    shares = deque([1.0], CALM_READINGS)
    with contextlib.ExitStack() as loops:
        for _ in cpus:
            # The kernel kills a loop also if this process is killed.
            loop = ["setpriv", "--pdeathsig", "KILL", "sh", "-c", "while :; do :; done"]
            # At the end each loop is terminated first, and then waited for.
            loops.callback(loops.enter_context(subprocess.Popen(loop)).terminate)
        # The first share, 1, leaves the queue only after CALM_READINGS readings.
        while max(shares) > limit and time.monotonic() - started < MAX_WAIT_SECONDS:
            time.sleep(SECONDS_BETWEEN_READINGS)
            ticks_before = ticks
            ticks = observe.read_cpu_times(cpus)
            share = observe.compute_cpu_time_shares(ticks_before, ticks)["steal_share"]
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
        judged: the names of the thresholds that laps were judged by
        (:attr:`strata.measure.laps.LapMonitor.judged`).  They flag nothing here:
        :func:`strata.measure.laps.flag_disturbed_laps` applies them.
        Raises CellFailed if the machine's clock was set during the run.
        """
        after = observe.observe_current_load(list_usable_cpus())
        offset_before = self._reading.clock
        facts = self._judge_interval("during", after, daemons, judged)
        self.host |= {
            "static": observe.observe_host(list_usable_cpus()),
            "after": after,
            "during": facts,
        }
        # Slices and xz are timed by the clock of the day, which all systems share.
        change = self._reading.clock - offset_before
        if abs(change) > MAX_CLOCK_CHANGE_SECONDS:
            raise CellFailed(
                f"the machine's clock was set by {change:+.3g} s during the run, or it slept: "
                "times of the run may be wrong, so nothing of it is kept"
            )

    def _judge_interval(
        self, when: str, load: Fields, daemons: Collection[str], judged: Collection[str] = ()
    ) -> Fields:
        """Take a reading, flag each disturbance since the last reading, and return the facts.

        when: "before" or "during" the run.
        load: the current load and temperature, from
        :func:`strata.host.observe.observe_current_load`.
        daemons: the names of daemons that count as part of this run.
        judged: the names of the thresholds that flag nothing.
        Returns the facts that :func:`compare_readings` describes.
        Adds the flags to `report`.  The next call begins with the reading of this one.
        """
        before = self._reading
        self._reading = take_reading()
        facts = compare_readings(before, self._reading, daemons, measuring=when == "during")
        seconds = max(self._reading.timestamp - before.timestamp, MIN_INTERVAL_SECONDS)
        # A threshold of None is not judged.
        thresholds = self.report["thresholds"] | dict.fromkeys(judged)
        self.report["flags"] += flag_exceeded_thresholds(when, seconds, load | facts, thresholds)
        return facts

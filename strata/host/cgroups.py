"""Control groups: a native run gets the same place in the hierarchy as a container.

Docker puts a container into ``PARENT/ID``; a native run goes into a sibling of it, below the same
parent, in every hierarchy that Docker uses.  Otherwise the scheduler would share the CPU among
groups of unequal standing, and a comparison would measure that.
"""

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence

from strata.host import observe
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.process import as_root, capture

ROOT = "/sys/fs/cgroup"
SLICE = "strata.slice"
GROUP = "strata"
# A process that does nothing but keep a native system's group, which systemd would otherwise
# remove after the first command.
HOLDER = ["/usr/bin/sleep", "infinity"]
# The files that freeze a group, in version 1 and in version 2.
OLD, NEW = "freezer.state", "cgroup.freeze"
# The files with what a group has used, in version 1 and in version 2, and its peak of memory in 1.
_BYTES, _OPERATIONS = (
    f"blkio.throttle.io_{name}_recursive" for name in ("service_bytes", "serviced")
)
_CPU = ("cpuacct.usage", "cpuacct.usage_user", "cpuacct.usage_sys")
COUNTERS = (*_CPU, "cpu.stat", "memory.stat", "io.stat", _BYTES, _OPERATIONS)
_PEAK = "memory.max_usage_in_bytes"
# The files of a group with its memory and its limit, in version 1 and in version 2.
_MEMORY = (
    ("memory.usage_in_bytes", "memory.limit_in_bytes"),
    ("memory.current", "memory.max"),
)
# The files of versions 1 and 2 with the microseconds of unused quota that may be used later.
_BURSTS = ("cpu.cfs_burst_us", "cpu.max.burst")
# Arguments: the list of CPUs to which the groups are restricted (empty: all), and the groups.
# In version 1, a group runs no process before its CPUs and memory nodes are set.
MAKE = """
mask=$1
shift
for group; do
    mkdir -p "$group"
    for file in cpuset.cpus cpuset.mems; do
        for folder in "${group%/*}" "$group"; do
            if [ -e "$folder/$file" ] && [ -z "$(cat "$folder/$file")" ]; then
                cat "${folder%/*}/$file" >"$folder/$file"
            fi
        done
    done
    if [ -n "$mask" ] && [ -e "$group/cpuset.cpus" ]; then
        echo "$mask" >"$group/cpuset.cpus"
    fi
done
"""
JOIN = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs"; shift; done; shift; exec "$@"'


def is_unified() -> bool:
    """Return whether the machine has the unified control group hierarchy (version 2)."""
    return os.path.exists(f"{ROOT}/cgroup.controllers")


def are_hybrid() -> bool:
    """Return whether the host has controllers of control groups in both versions 1 and 2."""
    path = f"{ROOT}/unified/cgroup.controllers"
    return any(observe.read_files([path]).values())


def managed_by_systemd() -> bool:
    """Return whether systemd creates the control groups, which Docker then leaves to systemd."""
    return is_unified() and os.path.isdir("/run/systemd/system")


def driver_name() -> str:
    """Return the name of the control group driver, as container engines spell it."""
    return "systemd" if managed_by_systemd() else "cgroupfs"


def parent_option(driver: str) -> str:
    """Return the value of ``docker run --cgroup-parent``.

    driver: Docker's control group driver, as of :func:`driver_name`.
    Containers must get the parent group of native systems: see the module.
    """
    return SLICE if driver == "systemd" else f"/{GROUP}"


def hierarchies() -> list[str]:
    """Return the top folders of all control group hierarchies of the machine.

    Docker creates a group in each of them.
    """
    if is_unified():
        return [ROOT]
    folders = [os.path.join(ROOT, name) for name in sorted(os.listdir(ROOT))]
    return [
        folder
        for folder in folders
        if os.path.exists(f"{folder}/cgroup.procs") and not os.path.islink(folder)
    ]


def group_path(system_id: str) -> str:
    """Return the path of a native system's control group, relative to the top of each hierarchy."""
    return f"{SLICE}/{system_id}.scope" if managed_by_systemd() else f"{GROUP}/{system_id}"


def group_folders(system_id: str) -> list[str]:
    """Return the folders of a native system's control groups, whether or not they exist."""
    return [f"{top}/{group_path(system_id)}" for top in hierarchies()]


def create_groups(system_id: str, mask: str | None) -> None:
    """Create the control groups of a native system, as root.

    :func:`join_command` runs the system's commands in these groups.
    mask: a list such as ``0-1,3`` of the CPUs to which the groups are restricted; None: all.
    Where systemd manages the groups, a process that only sleeps is started to keep them.
    Raises UserError where a group cannot be created.
    """
    if not managed_by_systemd():
        capture(as_root(["sh", "-euc", MAKE, "strata", mask or "", *group_folders(system_id)]))
        return
    # Delegated, the scope has the controllers of a container's.  It lives as long as something runs
    # in it: as in a container, a program that does nothing stays there.
    options = [
        f"--slice={SLICE}",
        f"--unit={system_id}",
        "--property=Delegate=yes",
        "--property=TasksMax=infinity",
    ]
    if mask:
        options.append(f"--property=AllowedCPUs={mask}")
    stay = ["sh", "-euc", 'setsid "$@" </dev/null >/dev/null 2>&1 &', "strata", *HOLDER]
    capture(as_root(["systemd-run", "--scope", "--quiet", "--collect", *options, "--", *stay]))


def join_command(system_id: str) -> list[str]:
    """Return the command prefix by which root runs a command in a native system's groups."""
    return ["sh", "-euc", JOIN, "strata", *group_folders(system_id), "--"]


def find_groups(name: str) -> list[str]:
    """Return the existing folders of a native system's or a container's control groups.

    name: as of :meth:`strata.environments.common.layer.Layer.group`; "": none.
    """
    if not name:
        return []
    groups = [f"{GROUP}/{name}", f"{GROUP}/libpod-{name}"]
    groups += [f"{SLICE}/{unit}.scope" for unit in (name, f"docker-{name}", f"libpod-{name}")]
    folders = [os.path.join(top, group) for top in hierarchies() for group in groups]
    return [folder for folder in folders if os.path.isdir(folder)]


def _nested_folders(name: str) -> list[str]:
    """Return the folders of :func:`find_groups` and of all groups in them, inner ones first."""
    return [folder for group in find_groups(name) for folder, _, _ in os.walk(group, topdown=False)]


def list_processes(name: str) -> set[int]:
    """Return the IDs of the processes in a system's control groups, nested groups included."""
    files = observe.read_files([f"{folder}/cgroup.procs" for folder in _nested_folders(name)])
    return {int(line) for text in files.values() for line in text.split()}


def list_processes_and_parents(name: str) -> list[int]:
    """Return the sorted IDs of the processes in a container's control groups and of their parents.

    Process 1 is left out.
    """
    processes = list_processes(name)
    files = observe.read_files([f"/proc/{process}/stat" for process in processes])
    # The fields after the name, which may hold anything: the state, then the parent.
    fields = [text.rpartition(")")[2].split() for text in files.values()]
    parents = {int(values[1]) for values in fields if len(values) > 1}
    return sorted((processes | parents) - {0, 1})


def list_command_lines(name: str) -> list[str]:
    """Return the non-empty command lines of the processes in a system's control groups."""
    lines = [" ".join(text.replace("\0", " ").split()) for text in _command_lines(name).values()]
    return [line for line in lines if line]


def list_program_processes(name: str, program: str) -> list[int]:
    """Return the IDs of the processes in a system's control groups that run a program.

    program: the beginning of their command lines.
    """
    lines = _command_lines(name)
    return [int(path.split("/")[2]) for path, text in lines.items() if text.startswith(program)]


def _command_lines(name: str) -> dict[str, str]:
    """Return the text of /proc/ID/cmdline, by its path, for each process in a system's groups."""
    return observe.read_files(
        [f"/proc/{process}/cmdline" for process in sorted(list_processes(name))]
    )


def read_usage(names: Sequence[str]) -> Fields:
    """Return what systems' control groups have used so far, as logs hold it.

    names: as of :func:`find_groups`.
    The keys are ``observed`` (the word "group"), ``user_seconds`` and ``system_seconds`` of CPU
    time, ``peak_bytes``, the most memory at once, with the page cache of files that were read first
    there, and ``throttled``, the periods in which a quota of CPU time was used up; None where the
    kernel does not count it.  In version 1 the peak begins anew with every call, in version 2 with
    the group.
    """
    user: float | None = None
    system: float | None = None
    peak: int | None = None
    throttled: int | None = None
    for name in names:
        folders = find_groups(name)
        files = observe.read_files([f"{folder}/{file}" for folder in folders for file in COUNTERS])
        used = parse_counters((path.rpartition("/")[2], text) for path, text in files.items())
        if "user_seconds" in (spent := split_cpu_time(used)):
            user = (user or 0) + spent["user_seconds"]
            system = (system or 0) + spent["system_seconds"]
        if "throttled_periods" in used:
            throttled = (throttled or 0) + int(used["throttled_periods"])
        paths = [f"{folder}/{file}" for folder in folders for file in (_PEAK, "memory.peak")]
        for path, text in observe.read_files(paths).items():
            peak = (peak or 0) + int(text)
            if path.endswith(_PEAK):
                _write_word(path, "0")
    return {
        "observed": "group",
        "user_seconds": user,
        "system_seconds": system,
        "peak_bytes": peak,
        "throttled": throttled,
    }


def parse_counters(files: Iterable[tuple[str, str]]) -> dict[str, float]:
    """Return what one system has used so far, by the files of its control groups.

    files: (name of one of :data:`COUNTERS`, text) of each file that could be read.
    The keys are ``cpu`` (seconds), ``user`` and ``system`` (in one unknown unit each), and
    ``throttled_seconds``, ``throttled_periods``, ``major_faults``, ``io_bytes`` and
    ``io_operations``; one that the kernel does not count is missing.  Where both versions count
    CPU time, that of version 1 is taken.
    """
    texts: dict[str, str] = {}
    for file, text in files:
        texts[file] = f"{texts.get(file, '')}{text}\n"
    used: dict[str, float] = {}
    lines = f"{texts.get('cpu.stat', '')}{texts.get('memory.stat', '')}".splitlines()
    counts = {key: int(number) for key, number in (line.split() for line in lines if " " in line)}
    if all(file in texts for file in _CPU):
        total, user, system = (float(texts[file]) for file in _CPU)
        used = {"cpu": 1e-9 * total, "user": user, "system": system}
    elif "usage_usec" in counts:
        used = {kind: 1.0 * counts[f"{kind}_usec"] for kind in ("user", "system")}
        used["cpu"] = 1e-6 * counts["usage_usec"]
    keys = {"throttled_time": 1e-9, "throttled_usec": 1e-6, "pgmajfault": 1, "total_pgmajfault": 1}
    if "nr_throttled" in counts:
        used["throttled_periods"] = counts["nr_throttled"]
    for key, unit in keys.items():
        if key in counts:
            name = "throttled_seconds" if key.startswith("throttled") else "major_faults"
            used[name] = unit * counts[key]
    for name, old, new in (("io_bytes", _BYTES, "bytes"), ("io_operations", _OPERATIONS, "ios")):
        # Version 1 counts only for devices with limits, of which it then has lines.
        if ":" in texts.get(old, ""):
            used[name] = sum(map(int, re.findall(r"^Total (\d+)", texts[old], re.MULTILINE)))
        elif "io.stat" in texts:
            used[name] = sum(map(int, re.findall(rf" [rw]{new}=(\d+)", texts["io.stat"])))
    return used


def split_cpu_time(used: Mapping[str, float]) -> dict[str, float]:
    """Return ``user_seconds`` and ``system_seconds`` of a CPU time; empty if it is not known.

    used: as of :func:`parse_counters`, or the growth of each count.  The kernel counts the sum
    exactly, and in version 1 its two parts by ticks, by which the sum is split.
    """
    if "cpu" not in used:
        return {}
    ticks = used["user"] + used["system"]
    user = used["cpu"] * (used["user"] / ticks if ticks else 1)
    return {"user_seconds": user, "system_seconds": used["cpu"] - user}


def read_memory(names: Sequence[str]) -> Fields:
    """Return the memory that systems' control groups hold now, and the limit of the first of them.

    names: as of :func:`find_groups`.
    The keys are ``group_bytes``, for all of them together, page cache included, and
    ``limit_bytes``; None where the kernel does not count it, and without a limit.
    """
    used: list[int] = []
    limits: list[int] = []
    for folder in (folder for name in names for folder in find_groups(name)):
        for use, limit in _MEMORY:
            texts = observe.read_files([f"{folder}/{use}", f"{folder}/{limit}"])
            used += [int(text) for path, text in texts.items() if path.endswith(use)]
            text = texts.get(f"{folder}/{limit}", "max")
            # Version 1 has the largest number of pages instead of the word.
            if text.isdecimal() and int(text) < 2**62:
                limits.append(int(text))
    return {
        "group_bytes": sum(used) if used else None,
        "limit_bytes": limits[0] if limits else None,
    }


def set_burst(name: str, milliseconds: int) -> None:
    """Let a system use later as much of its quota of CPU time as it left unused before.

    name: as of :func:`find_groups`.  milliseconds: the most that is saved up.
    Raises UserError where the kernel has no file for it, as before Linux 5.14.
    """
    paths = [f"{folder}/{file}" for folder in find_groups(name) for file in _BURSTS]
    existing = [path for path in paths if os.path.exists(path)]
    if not existing:
        raise UserError("cpu-burst cannot be set: it needs Linux 5.14 or newer; leave it out")
    for path in existing:
        _write_word(path, str(1000 * milliseconds))


def remove_groups(name: str) -> None:
    """Kill every process in a system's control groups, and remove the groups.

    name: as of :func:`find_groups`, or the absolute path of a file that holds that name.
    Thaws the groups first.  Groups that do not exist are no error.
    Raises UserError where a group cannot be thawed, or, unless systemd manages the groups, cannot
    be removed because a process did not end within 10 s.
    """
    if os.path.isabs(name):
        name = observe.read_files([name]).get(name, "")
    # A frozen process does not end.
    freeze(freezable_folders(name), False)
    deadline = time.monotonic() + 10
    while (processes := list_processes(name)) and time.monotonic() < deadline:
        capture(as_root(["kill", "-KILL", *map(str, processes)]), check=False)
        time.sleep(0.02)
    # systemd removes its own within a second; other makers, such as LXC, leave theirs.
    systemd = managed_by_systemd()
    deadline = time.monotonic() + 1
    while systemd and _nested_folders(name) and time.monotonic() < deadline:
        time.sleep(0.02)
    if folders := _nested_folders(name):
        capture(as_root(["rmdir", "--", *folders]), check=not systemd)


def freezable_folders(name: str) -> list[str]:
    """Return the folders of :func:`find_groups` that can be frozen.

    They are those of version 1 if there are any, otherwise those of version 2.
    """
    groups = find_groups(name)
    for file in (OLD, NEW):
        if folders := [group for group in groups if os.path.exists(f"{group}/{file}")]:
            return folders
    return []


def freeze(folders: Sequence[str], frozen: bool = True, patience: float = 10.0) -> None:
    """Freeze or thaw all processes in control groups, and wait until that is done.

    folders: as of :func:`freezable_folders`.  frozen: whether to freeze; otherwise to thaw.
    patience: seconds to wait for each folder.
    Raises UserError where a folder takes longer.
    """
    for folder in folders:
        old = os.path.exists(f"{folder}/{OLD}")
        word = (("THAWED", "FROZEN") if old else ("0", "1"))[frozen]
        deadline = time.monotonic() + patience
        while not _is_frozen(folder, frozen):
            if time.monotonic() > deadline:
                verb = "frozen" if frozen else "thawed"
                raise UserError(f"{folder}: the programs in this group could not be {verb}")
            _write_word(f"{folder}/{OLD if old else NEW}", word)
            # A process within a system call freezes once that returns.
            retry = time.monotonic() + 0.05
            while not _is_frozen(folder, frozen) and time.monotonic() < retry:
                time.sleep(0.0002)


def _is_frozen(folder: str, frozen: bool) -> bool:
    """Return whether a whole control group is frozen (or thawed); true for a removed group."""
    files = observe.read_files([f"{folder}/{OLD}", f"{folder}/cgroup.events"])
    states = ("FROZEN", "frozen 1") if frozen else ("THAWED", "frozen 0")
    return not files or any(state in text for text in files.values() for state in states)


def _write_word(path: str, word: str) -> None:
    """Write a word to a control group's file, as root where this user may not."""
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(word)
    except PermissionError:
        capture(as_root(["sh", "-euc", 'echo "$1" >"$2"', "strata", word, path]))

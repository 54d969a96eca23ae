"""Create, observe, freeze and remove the control groups of systems.

A native run gets the same place in the hierarchy as a container. Docker puts a container into
``PARENT/ID``; a native run goes into a sibling of it, below the same parent, in every hierarchy
that Docker uses. Otherwise the scheduler would share the CPU among groups of unequal standing, and
a comparison would measure that.
"""

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence

from strata.host import observe
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.process import capture_output, wrap_as_root

ROOT = "/sys/fs/cgroup"
SLICE = "strata.slice"
GROUP = "strata"
# A process that does nothing but keep a native system's group, which systemd would otherwise
# remove after the first command.
HOLDER = ["/usr/bin/sleep", "infinity"]
# The files that freeze a group, in version 1 and in version 2.
FREEZER_V1 = "freezer.state"
FREEZER_V2 = "cgroup.freeze"
# Seconds to wait until a group is frozen or thawed, until its killed processes have ended, and
# until systemd has removed it.
FREEZE_PATIENCE = 10.0
KILL_PATIENCE = 10.0
SYSTEMD_PATIENCE = 1.0
# Files of version 1 about a group's input and output, CPU time, and peak of memory.
_IO_BYTES_V1 = "blkio.throttle.io_service_bytes_recursive"
_IO_OPERATIONS_V1 = "blkio.throttle.io_serviced_recursive"
_CPU_V1 = ("cpuacct.usage", "cpuacct.usage_user", "cpuacct.usage_sys")
_PEAK_V1 = "memory.max_usage_in_bytes"
# The files of both versions that parse_group_counters() reads.
COUNTERS = (*_CPU_V1, "cpu.stat", "memory.stat", "io.stat", _IO_BYTES_V1, _IO_OPERATIONS_V1)
# The files of a group with its memory and its limit, in version 1 and in version 2.
_MEMORY_AND_LIMIT = (
    ("memory.usage_in_bytes", "memory.limit_in_bytes"),
    ("memory.current", "memory.max"),
)
# The files of versions 1 and 2 with the microseconds of unused quota that may be used later.
_BURST_FILES = ("cpu.cfs_burst_us", "cpu.max.burst")
# Arguments: the list of CPUs that the groups are restricted to (empty: all), and the groups.
# In version 1, a group runs no process before its CPUs and memory nodes are set.
MAKE_GROUPS = """
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
# Arguments: the groups that the shell joins, "--", and the command that then replaces it.
JOIN = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs"; shift; done; shift; exec "$@"'


def is_unified() -> bool:
    """Return whether the machine has the unified control group hierarchy (version 2)."""
    return os.path.exists(f"{ROOT}/cgroup.controllers")


def is_hybrid() -> bool:
    """Return whether the host has controllers of control groups in both versions 1 and 2."""
    # Version 2's controllers are listed there; the list is empty where version 1 has all.
    return bool(observe.read_file(f"{ROOT}/unified/cgroup.controllers"))


def is_managed_by_systemd() -> bool:
    """Return whether systemd creates the control groups, which Docker then leaves to systemd."""
    return is_unified() and os.path.isdir("/run/systemd/system")


def get_driver_name() -> str:
    """Return the name of this host's control group driver, as container engines spell it.

    The name is "systemd" or "cgroupfs".  Podman is started with it; Docker's daemon may be
    configured with the other driver.
    """
    return "systemd" if is_managed_by_systemd() else "cgroupfs"


def get_parent_group(driver: str) -> str:
    """Return the value of ``docker run --cgroup-parent``: the parent group of native systems.

    Containers must get that parent: under another parent, they would get another share of the CPU.
    :func:`find_group_folders` looks for their groups below it.
    driver: the engine's control group driver, "systemd" or "cgroupfs".
    """
    return SLICE if driver == "systemd" else f"/{GROUP}"


def list_hierarchies() -> list[str]:
    """Return the top folders of all control group hierarchies of the machine.

    Docker creates a group in each of them.
    """
    if is_unified():
        return [ROOT]
    folders = [os.path.join(ROOT, name) for name in sorted(os.listdir(ROOT))]
    hierarchies = [folder for folder in folders if os.path.exists(f"{folder}/cgroup.procs")]
    # A link, such as cpu, is another name of a hierarchy.
    return [folder for folder in hierarchies if not os.path.islink(folder)]


def get_group_path(system_id: str) -> str:
    """Return the path of a native system's control group, relative to the top of each hierarchy.

    :func:`find_group_folders` must find a group with this path.
    """
    return f"{SLICE}/{system_id}.scope" if is_managed_by_systemd() else f"{GROUP}/{system_id}"


def list_group_folders(system_id: str) -> list[str]:
    """Return the folders of a native system's control groups, one for each hierarchy.

    The folders need not exist.
    """
    return [f"{top}/{get_group_path(system_id)}" for top in list_hierarchies()]


def create_groups(system_id: str, mask: str | None) -> None:
    """Create the control groups of a native system, as root.

    system_id: the system's ID.
    mask: a list such as ``0-1,3`` of the CPUs that the groups are restricted to; None: all.
    The caller notes the groups in the journal first.  :func:`build_join_command` runs the system's
    commands in them, and :func:`remove_groups` removes them.
    If systemd manages the groups, a process that only sleeps is started to keep them, and a second
    call fails.  Otherwise, a second call changes nothing.
    Raises UserError if a group cannot be created.
    """
    if not is_managed_by_systemd():
        folders = list_group_folders(system_id)
        capture_output(wrap_as_root(["sh", "-euc", MAKE_GROUPS, "strata", mask or "", *folders]))
        return
    # Delegation gives the scope the same controllers as a container's.  systemd removes a scope
    # when no program runs in it, so a program that only sleeps stays in it, as in a container.
    options = [
        f"--slice={SLICE}",
        f"--unit={system_id}",
        "--property=Delegate=yes",
        "--property=TasksMax=infinity",
    ]
    if mask:
        options.append(f"--property=AllowedCPUs={mask}")
    start_holder = ["sh", "-euc", 'setsid "$@" </dev/null >/dev/null 2>&1 &', "strata", *HOLDER]
    systemd_run = ["systemd-run", "--scope", "--quiet", "--collect", *options, "--"]
    capture_output(wrap_as_root([*systemd_run, *start_holder]))


def build_join_command(system_id: str) -> list[str]:
    """Return the command prefix by which root runs a command in a native system's control groups.

    :func:`create_groups` must have created the groups.  The command's children stay in them.
    """
    return ["sh", "-euc", JOIN, "strata", *list_group_folders(system_id), "--"]


def find_group_folders(name: str) -> list[str]:
    """Return the existing folders of a native system's or a container's control groups.

    name: as a layer's `find_cgroup` returns it: the ID of the system or of the container; "" gives
    no folders.
    """
    if not name:
        return []
    # Podman's groups are named libpod-ID, and Docker's docker-ID under systemd.
    groups = [f"{GROUP}/{name}", f"{GROUP}/libpod-{name}"]
    groups += [f"{SLICE}/{unit}.scope" for unit in (name, f"docker-{name}", f"libpod-{name}")]
    folders = [os.path.join(top, group) for top in list_hierarchies() for group in groups]
    return [folder for folder in folders if os.path.isdir(folder)]


def _list_nested_folders(name: str) -> list[str]:
    """Return the folders of a system's control groups and of all groups in them, inner ones first.

    name: the ID of the system or container.
    """
    folders: list[str] = []
    for group in find_group_folders(name):
        folders += [folder for folder, _, _ in os.walk(group, topdown=False)]
    return folders


def list_group_processes(name: str) -> set[int]:
    """Return the IDs of the processes in a system's control groups, nested groups included.

    name: the ID of the system or container; "" or a system without groups gives an empty set.
    """
    files = observe.read_files([f"{folder}/cgroup.procs" for folder in _list_nested_folders(name)])
    return set(map(int, " ".join(files.values()).split()))


def list_group_processes_and_parents(name: str) -> list[int]:
    """Return the sorted IDs of the processes in a container's control groups and of their parents.

    name: the ID of the container; "" gives an empty list.
    A parent is a process of the engine, such as containerd-shim.  Process 1 is left out, and so is
    0, the parent of a process whose real parent is in another PID namespace.
    """
    pids = list_group_processes(name)
    parent_pids = set()
    for pid in pids:
        text = observe.read_file(f"/proc/{pid}/stat") or ""
        # The fields after the name, which may hold anything: the state, then the parent.
        fields = text.rpartition(")")[2].split()
        # A process that has ended meanwhile has no fields, and is kept in the result.
        if len(fields) > 1:
            parent_pids.add(int(fields[1]))
    return sorted((pids | parent_pids) - {0, 1})


def list_command_lines(name: str) -> list[str]:
    """Return the non-empty command lines of the processes in a system's control groups.

    name: the ID of the system or container.
    The arguments are separated by spaces, and the lines are in the order of the process IDs.
    """
    lines = [
        " ".join(text.replace("\0", " ").split()) for text in _read_command_lines(name).values()
    ]
    return [line for line in lines if line]


def list_program_processes(name: str, program: str) -> list[int]:
    """Return the IDs of the processes in a system's control groups that run a program, sorted.

    name: the ID of the system or container.
    program: the beginning of their command lines, as the process itself writes it: a program may
    have replaced its path by another name.
    """
    command_lines = _read_command_lines(name)
    return [pid for pid, text in command_lines.items() if text.startswith(program)]


def _read_command_lines(name: str) -> dict[int, str]:
    """Return process ID → text of /proc/ID/cmdline for the processes in a system's groups.

    name: the ID of the system or container.
    The text has a null character after each argument; kernel threads and zombies have none.
    Processes are in the order of their IDs; those that have ended meanwhile are left out.
    """
    command_lines = {}
    for pid in sorted(list_group_processes(name)):
        text = observe.read_file(f"/proc/{pid}/cmdline")
        if text is not None:
            command_lines[pid] = text
    return command_lines


def read_and_reset_group_usage(names: Sequence[str]) -> Fields:
    """Return the CPU time and the peak memory of systems' control groups, and reset the peak.

    names: the IDs of the systems or containers.
    Returns sums over all groups:
    ``observed``: the word "group";
    ``user_seconds`` and ``system_seconds``: CPU time since the groups were created;
    ``peak_bytes``: the most memory at once, including the page cache of files that the group was
    the first to read.  With several groups, the sum of their peaks is an upper bound, since they
    may have had their peaks at different times;
    ``throttled``: the number of periods in which a quota of CPU time was used up.
    A value is None if the kernel counts it for none of the groups.
    Only version 1 of control groups resets the peak; version 2 counts it since the group's
    creation.  Logs hold the result: workloads/command/parse.py and workloads/quota/parse.py read
    its keys.
    Raises OSError or UserError if the peak cannot be reset.
    """
    user_seconds: float | None = None
    system_seconds: float | None = None
    peak_bytes: int | None = None
    throttled_periods: int | None = None
    for name in names:
        folders = find_group_folders(name)
        files = observe.read_files([f"{folder}/{file}" for folder in folders for file in COUNTERS])
        counters = parse_group_counters(
            (path.rpartition("/")[2], text) for path, text in files.items()
        )
        cpu_time = split_cpu_time(counters)
        if cpu_time:
            user_seconds = (user_seconds or 0) + cpu_time["user_seconds"]
            system_seconds = (system_seconds or 0) + cpu_time["system_seconds"]
        if "throttled_periods" in counters:
            throttled_periods = (throttled_periods or 0) + int(counters["throttled_periods"])
        paths = [f"{folder}/{file}" for folder in folders for file in (_PEAK_V1, "memory.peak")]
        for path, text in observe.read_files(paths).items():
            peak_bytes = (peak_bytes or 0) + int(text)
            if path.endswith(_PEAK_V1):
                # Writing resets version 1's peak.
                _write_group_file(path, "0")
    return {
        "observed": "group",
        "user_seconds": user_seconds,
        "system_seconds": system_seconds,
        "peak_bytes": peak_bytes,
        "throttled": throttled_periods,
    }


def parse_group_counters(files: Iterable[tuple[str, str]]) -> dict[str, float]:
    """Return the CPU time, faults, input and output of one system, from its control groups' files.

    files: (name of one of :data:`COUNTERS`, text) of each file that could be read.  Both versions
    of control groups have a file cpu.stat; its texts are joined.
    Returns, without the counts that the kernel does not keep:
    ``cpu``: CPU time in seconds;
    ``user`` and ``system``: its two parts in one unit, which depends on the version
    (:func:`split_cpu_time` converts them);
    ``throttled_seconds``, ``throttled_periods``, ``major_faults``, ``io_bytes``, ``io_operations``.
    If both versions count CPU time, that of version 1 is taken.
    Raises ValueError if a counter is not a number, which no kernel writes.
    strata/measure/costs.py reads the keys, and through it analysis/costs.R.
    """
    text_by_file: dict[str, str] = {}
    for file, text in files:
        text_by_file[file] = f"{text_by_file.get(file, '')}{text}\n"
    # The lines "KEY NUMBER" of both files, whose keys are different.
    stat_counts: dict[str, int] = {}
    for stat_file in ("cpu.stat", "memory.stat"):
        for line in text_by_file.get(stat_file, "").splitlines():
            if " " in line:
                key, number = line.split()
                stat_counts[key] = int(number)
    counters: dict[str, float] = {}
    if all(file in text_by_file for file in _CPU_V1):
        total_nanoseconds, user, system = (float(text_by_file[file]) for file in _CPU_V1)
        counters = {"cpu": 1e-9 * total_nanoseconds, "user": user, "system": system}
    elif "usage_usec" in stat_counts:
        counters = {
            "cpu": 1e-6 * stat_counts["usage_usec"],
            "user": float(stat_counts["user_usec"]),
            "system": float(stat_counts["system_usec"]),
        }
    # If both keys of a name exist, the later one counts: version 1's total includes nested groups.
    for key, name, unit in (
        ("nr_throttled", "throttled_periods", 1),
        ("throttled_time", "throttled_seconds", 1e-9),
        ("throttled_usec", "throttled_seconds", 1e-6),
        ("pgmajfault", "major_faults", 1),
        ("total_pgmajfault", "major_faults", 1),
    ):
        if key in stat_counts:
            counters[name] = unit * stat_counts[key]
    for name, file_v1, key_v2 in (
        ("io_bytes", _IO_BYTES_V1, "bytes"),
        ("io_operations", _IO_OPERATIONS_V1, "ios"),
    ):
        text_v1 = text_by_file.get(file_v1, "")
        # Version 1 counts only for devices with limits, and has lines "MAJOR:MINOR …" only for
        # them.  Without any, its total of 0 would hide version 2's counts.
        if ":" in text_v1:
            counters[name] = sum(map(int, re.findall(r"(?m)^Total (\d+)", text_v1)))
        elif "io.stat" in text_by_file:
            device_counts = re.findall(rf" [rw]{key_v2}=(\d+)", text_by_file["io.stat"])
            counters[name] = sum(map(int, device_counts))
    return counters


def split_cpu_time(counters: Mapping[str, float]) -> dict[str, float]:
    """Return a CPU time as ``{user_seconds, system_seconds}``; empty if it is not known.

    counters: the result of :func:`parse_group_counters`, or its growth between two calls: ``cpu``
    in seconds, and ``user`` and ``system`` in a common unit.  No value may be negative.
    The kernel counts the sum exactly, but version 1 of control groups counts the two parts only in
    ticks.  So the exact sum is divided in the ratio of the parts.  If both parts are 0, the whole
    sum, which is below one tick, is counted as the user's.
    """
    if "cpu" not in counters:
        return {}
    parts_sum = counters["user"] + counters["system"]
    user_share = counters["user"] / parts_sum if parts_sum else 1
    user_seconds = counters["cpu"] * user_share
    return {"user_seconds": user_seconds, "system_seconds": counters["cpu"] - user_seconds}


def read_group_memory(names: Sequence[str]) -> Fields:
    """Return the memory that systems' control groups hold now, and the first group's limit.

    names: the IDs of the systems or containers.
    Returns ``group_bytes``, the sum over all groups, including page cache (None if the kernel does
    not count it), and ``limit_bytes``, the limit of the first group that has one (None without).
    workloads/density/parse.py reads the keys.
    """
    memory_bytes: list[int] = []
    limit_bytes: list[int] = []
    folders = [folder for name in names for folder in find_group_folders(name)]
    for folder in folders:
        for memory_file, limit_file in _MEMORY_AND_LIMIT:
            memory = observe.read_file(f"{folder}/{memory_file}")
            if memory is not None:
                memory_bytes.append(int(memory))
            limit = observe.read_file(f"{folder}/{limit_file}") or "max"
            # Without a limit, version 2 has the word max, and version 1 the bytes of the largest
            # number of pages, nearly 2^63.
            if limit.isdecimal() and int(limit) < 2**62:
                limit_bytes.append(int(limit))
    return {
        "group_bytes": sum(memory_bytes) if memory_bytes else None,
        "limit_bytes": limit_bytes[0] if limit_bytes else None,
    }


def set_cpu_burst(name: str, milliseconds: int) -> None:
    """Allow a system to accumulate unused CPU quota, and to use it in later periods.

    name: the ID of the system or container.
    milliseconds: the most CPU time that can be accumulated.
    Raises UserError if the kernel has no file for it, as before Linux 5.14, or if the system has no
    control group.  Raises OSError or UserError if the kernel refuses the value.
    """
    paths = [f"{folder}/{file}" for folder in find_group_folders(name) for file in _BURST_FILES]
    burst_paths = [path for path in paths if os.path.exists(path)]
    if not burst_paths:
        raise UserError("cpu-burst cannot be set: it needs Linux 5.14 or newer; leave it out")
    for path in burst_paths:
        # The kernel counts in microseconds.
        _write_group_file(path, str(1000 * milliseconds))


def remove_groups(name: str) -> None:
    """Kill every process in a system's control groups, and remove the groups.

    name: the ID of the system or container, or the absolute path of a file that holds the ID.
    Thaws the groups first, since a frozen process does not end.  Missing groups are not an error.
    Raises UserError if a group cannot be thawed.  Raises UserError, too, if a group cannot be
    removed because a process did not end within :data:`KILL_PATIENCE`; but if systemd manages the
    groups, such a group is left without an error.
    """
    if os.path.isabs(name):
        name = observe.read_file(name) or ""
    set_groups_frozen(find_freezable_folders(name), False)
    deadline = time.monotonic() + KILL_PATIENCE
    while (pids := list_group_processes(name)) and time.monotonic() < deadline:
        # check=False: a process may end by itself before it is killed.
        capture_output(wrap_as_root(["kill", "-KILL", *map(str, pids)]), check=False)
        time.sleep(0.02)
    # systemd removes the groups that it made, so that removing them here may fail; other makers,
    # such as LXC, leave theirs.
    is_systemd = is_managed_by_systemd()
    deadline = time.monotonic() + SYSTEMD_PATIENCE
    while is_systemd and _list_nested_folders(name) and time.monotonic() < deadline:
        time.sleep(0.02)
    if folders := _list_nested_folders(name):
        capture_output(wrap_as_root(["rmdir", "--", *folders]), check=not is_systemd)


def find_freezable_folders(name: str) -> list[str]:
    """Return the folders by which a system's control groups can be frozen.

    name: the ID of the system or container.
    The folders belong to version 1 of control groups if it has any, otherwise to version 2.  The
    list is for :func:`set_groups_frozen`; a caller may keep it while the groups exist.
    """
    groups = find_group_folders(name)
    for file in (FREEZER_V1, FREEZER_V2):
        if folders := [group for group in groups if os.path.exists(f"{group}/{file}")]:
            return folders
    return []


def set_groups_frozen(folders: Sequence[str], frozen: bool = True) -> None:
    """Freeze or thaw all processes in control groups, and wait until that is done.

    folders: the result of :func:`find_freezable_folders`.
    frozen: True freezes, False thaws.
    Raises UserError if a folder takes longer than :data:`FREEZE_PATIENCE`.
    """
    for folder in folders:
        path = f"{folder}/{FREEZER_V1}"
        state = "FROZEN" if frozen else "THAWED"
        if not os.path.exists(path):
            path = f"{folder}/{FREEZER_V2}"
            state = "1" if frozen else "0"
        deadline = time.monotonic() + FREEZE_PATIENCE
        while not _has_freezer_state(folder, frozen):
            if time.monotonic() > deadline:
                verb = "frozen" if frozen else "thawed"
                raise UserError(f"{folder}: the programs in this group could not be {verb}")
            _write_group_file(path, state)
            # A process freezes only when its current system call returns.  The state is checked
            # every 0.2 ms, since the measurement waits for it, and is written again after 50 ms.
            retry_time = time.monotonic() + 0.05
            while not _has_freezer_state(folder, frozen) and time.monotonic() < retry_time:
                time.sleep(0.0002)


def _has_freezer_state(folder: str, frozen: bool) -> bool:
    """Return whether a control group is completely frozen, or thawed; true for a removed group.

    folder: a folder of :func:`find_freezable_folders`.
    frozen: True checks for frozen, False for thawed.
    A group that is still freezing is in neither state in version 1, and thawed in version 2.
    """
    files = observe.read_files([f"{folder}/{FREEZER_V1}", f"{folder}/cgroup.events"])
    if not files:
        return True
    text = "\n".join(files.values())
    state_v1, state_v2 = ("FROZEN", "frozen 1") if frozen else ("THAWED", "frozen 0")
    return state_v1 in text or state_v2 in text


def _write_group_file(path: str, value: str) -> None:
    """Write a value to a control group's file, as root if this user may not.

    Raises OSError if the kernel refuses the value or the file is gone; UserError if root fails.
    """
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(value)
    except PermissionError:
        capture_output(wrap_as_root(["sh", "-euc", 'echo "$1" >"$2"', "strata", value, path]))

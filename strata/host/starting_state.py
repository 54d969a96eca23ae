"""Declare, set and compare the state in which measured programs and their daemons start.

A child process inherits priority, limits, masks and the like, so that those of the caller would
reach every program.  :func:`apply_declared_state` gives a process the declared state
(:data:`DECLARED_STATE`), :func:`parse_process_state` parses the output of
:func:`build_state_command` in a system, and :func:`compare_states` compares two states.

As a program (``starting_state.py COMMAND…``, for scripts, without the rest of Strata) it runs a
command in that state and outside of the caller's control groups.
"""

import contextlib
import glob
import os
import re
import resource
import signal
import struct
import subprocess
import sys

KIB = 1024
# Soft and hard limit of each resource alike; None: no limit.  Where the kernel's defaults hold,
# they are low enough to be set without the right to raise limits.
LIMITS = {
    "core": 0,
    "cpu": None,
    "data": None,
    "fsize": None,
    "locks": None,
    "memlock": 8192 * KIB,
    "msgqueue": 819200,
    "nice": 0,
    "nofile": 16384,
    "nproc": 16384,
    "rss": None,
    "rtprio": 0,
    "rttime": None,
    "sigpending": 3072,
    "stack": 8192 * KIB,
}
# The kernel's numbers of limits that Python has no name for (RLIMIT_LOCKS).
_LIMIT_NUMBERS = {"locks": 10}
# Name of a limit in /proc/PID/limits → its name here.
_LIMIT_NAMES = {
    "Max cpu time": "cpu",
    "Max file size": "fsize",
    "Max data size": "data",
    "Max stack size": "stack",
    "Max core file size": "core",
    "Max resident set": "rss",
    "Max processes": "nproc",
    "Max open files": "nofile",
    "Max locked memory": "memlock",
    "Max address space": "as",
    "Max file locks": "locks",
    "Max pending signals": "sigpending",
    "Max msgqueue size": "msgqueue",
    "Max nice priority": "nice",
    "Max realtime priority": "rtprio",
    "Max realtime timeout": "rttime",
}
# Signals 32 and 33 are the C library's own, which ignores them in programs started by posix_spawn.
_LIBRARY_SIGNALS = 0b11 << 31
UMASK = 0o022
NICE = 0
OOM_SCORE = 0
# Nanoseconds: the kernel's default.
TIMER_SLACK = 50_000
# The personality that a program of 32 bits always has.
_PERSONALITY_32_BITS = 0x00800000
# Name of a state, its file in /proc/PID, and the pattern of its key there: the scheduler's slice of
# time, and whether equal pages are merged.
_KEYED_STATES = (
    ("time slice", "sched", r"se\.slice"),
    ("merged pages", "ksm_stat", "ksm_merge_any"),
)
# The kernel's number of a scheduling policy → its name.
POLICIES = {
    "0": "other",
    "1": "fifo",
    "2": "round robin",
    "3": "batch",
    "5": "idle",
    "6": "deadline",
    "7": "ext",
}

# Prints the state of the process whose ID is the first argument (self: of a program that starts
# there), and the files of the other arguments, in the form that
# strata.host.observe.split_printed_files parses.  No file of the kernel has the I/O class; the
# memory policy is in the first line of a long file.
_PRINT_STATE = """
exec 2>/dev/null
of=/proc/$1; process=${1#self}; shift
echo "==> $of/ioprio <=="; ionice ${process:+-p "$process"}
echo "==> $of/numa_maps <=="; head -n 1 "$of/numa_maps"
exec tail -v -n +1 "$of/status" "$of/limits" "$of/stat" "$of/oom_score_adj" "$of/timerslack_ns" \
    "$of/personality" "$of/sched" "$of/ksm_stat" "$@"
"""
# The files with the state that only a process itself can change.
_OWN_FILES = ("status", "personality", "numa_maps", "sched", "ksm_stat")
# Name of a state → its field in /proc/PID/status.
_STATUS_FIELDS = {
    "umask": "Umask",
    "processors": "Cpus_allowed_list",
    "memory nodes": "Mems_allowed_list",
    "blocked signals": "SigBlk",
    "ignored signals": "SigIgn",
    "user": "Uid",
    "group": "Gid",
    "groups": "Groups",
    "capabilities": "CapEff",
    "ambient capabilities": "CapAmb",
    "no new privileges": "NoNewPrivs",
    "seccomp": "Seccomp",
    "speculation": "Speculation_Store_Bypass",
    "indirect branches": "SpeculationIndirectBranch",
    "huge pages": "THP_enabled",
}


def build_state_command(*files: str, process: int | str = "self") -> list[str]:
    """Return the command that prints the state of a process, and the content of some more files.

    process: its process ID; "self": the state in which a program starts where the command runs.
    files: absolute paths; those that do not exist are left out.
    :func:`strata.host.observe.split_printed_files` divides the output into files, which
    :func:`parse_process_state` parses.
    """
    return ["sh", "-c", _PRINT_STATE, "strata", str(process), *files]


def parse_process_state(files: dict[str, str]) -> dict[str, str]:
    """Return name → value of a process's state, without the values that a system does not show.

    files: path → content, as :func:`build_state_command` prints them; other paths than those in
    /proc/PID are ignored.
    Values are strings as the kernel writes them; a limit whose soft and hard value differ is
    "SOFT:HARD".  A file in an unexpected form gives no value.
    Records hold these names, and layers declare their differences from native by them.
    """
    # Name of a file in the process's folder → its text.
    text_by_file = {
        path.rpartition("/")[2]: files[path].strip()
        for path in files
        if re.match("/proc/(self|[0-9]+)/", path)
    }
    state = _parse_status(text_by_file.get("status", ""))
    # The fields after the process's name, which may hold anything: proc(5) numbers them from 3.
    stat_fields = text_by_file.get("stat", "").rpartition(")")[2].split()
    if len(stat_fields) > 41 - 3:
        policy = stat_fields[41 - 3]
        state["nice"] = stat_fields[19 - 3]
        state["real-time priority"] = stat_fields[40 - 3]
        # A policy that a newer kernel has added keeps its number.
        state["scheduling"] = POLICIES.get(policy, policy)
    if io_class := text_by_file.get("ioprio"):
        # "none: prio 0" and "none: prio 4" are one class.
        state["I/O class"] = io_class.partition(":")[0] if "none" in io_class else io_class
    # The first line of numa_maps: an address, and the policy of the memory there.
    numa_columns = text_by_file.get("numa_maps", "").split()
    if len(numa_columns) > 1:
        state["memory policy"] = numa_columns[1]
    state |= _parse_limits(text_by_file.get("limits", ""))
    for file in ("oom_score_adj", "timerslack_ns"):
        if text_by_file.get(file):
            state[file.replace("_", " ")] = text_by_file[file].split()[0]
    personality = text_by_file.get("personality", "")
    if re.fullmatch("[0-9a-f]{8}", personality):
        state["personality"] = f"{int(personality, 16) & ~_PERSONALITY_32_BITS:08x}"
    for name, file, key_pattern in _KEYED_STATES:
        if match := re.search(rf"(?m)^{key_pattern}\s*:?\s*(\S+)$", text_by_file.get(file, "")):
            state[name] = match[1]
    return state


def _parse_limits(text: str) -> dict[str, str]:
    """Return "limit NAME" → value of the limits in :data:`_LIMIT_NAMES`, such as "limit nofile".

    text: the text of /proc/PID/limits; each line is "Max NAME", soft limit, hard limit and unit.
    The value is "SOFT:HARD" if the soft and the hard limit differ.
    """
    limits = {}
    for line in text.splitlines():
        match = re.fullmatch(r"(Max [a-z ]+?) {2,}(\w+) +(\w+)( +\w+)?\s*", line)
        if match and match[1] in _LIMIT_NAMES:
            soft, hard = match[2], match[3]
            limits[f"limit {_LIMIT_NAMES[match[1]]}"] = soft if soft == hard else f"{soft}:{hard}"
    return limits


def _parse_status(text: str) -> dict[str, str]:
    """Return name → value of the parts of a state in :data:`_STATUS_FIELDS`.

    text: the text of /proc/PID/status.
    Signal sets have 16 hexadecimal digits, without the C library's own signals; an empty field is
    left out.
    """
    fields = dict(re.findall(r"(?m)^(\w+):[ \t]*(.*?)[ \t]*$", text))
    state = {
        name: " ".join(fields[field].split())
        for name, field in _STATUS_FIELDS.items()
        if fields.get(field)
    }
    for name in ("blocked signals", "ignored signals"):
        if re.fullmatch("[0-9a-f]{1,16}", state.get(name, "")):
            state[name] = f"{int(state[name], 16) & ~_LIBRARY_SIGNALS:016x}"
    return state


def compare_states(observed: dict[str, str], native: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return name → (native value, observed value) for each value that differs.

    observed: the state of a system, as :func:`parse_process_state` returns it.
    native: the state that is expected, in the same form.
    Names that only one of them has are skipped.
    """
    differences = {}
    for name, native_value in native.items():
        if name in observed and observed[name] != native_value:
            differences[name] = (native_value, observed[name])
    return differences


# The declared state, as parse_process_state() returns it.
DECLARED_STATE = {
    "limit as": "unlimited",
    "umask": f"{UMASK:04o}",
    "nice": str(NICE),
    "scheduling": "other",
    "real-time priority": "0",
    "I/O class": "none",
    "memory policy": "default",
    "oom score adj": str(OOM_SCORE),
    "timerslack ns": str(TIMER_SLACK),
    "personality": "00000000",
    "blocked signals": "0" * 16,
    "ignored signals": "0" * 16,
    "huge pages": "1",
    "no new privileges": "0",
    "merged pages": "no",
}
for _name, _limit in LIMITS.items():
    DECLARED_STATE[f"limit {_name}"] = "unlimited" if _limit is None else str(_limit)
# The values that a process resets by system calls of its own.
_OWN_VALUES = ("personality", "memory policy", "huge pages", "merged pages")
# The state that decides how a sandbox or a virtual machine runs, which is a process of the host.
# The timer slack is left out, since QEMU sets its own.
HOST_PROCESS_STATE = (
    "processors", "memory nodes", "memory policy", "nice", "real-time priority", "scheduling",
    "I/O class",
)  # fmt: skip


def find_undeclared_values(state: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return name → (declared value, value in `state`) for each value that is not as declared.

    state: as :func:`parse_process_state` returns it; values that it lacks are skipped.
    """
    return compare_states(state, DECLARED_STATE)


def build_container_limit_options() -> list[str]:
    """Return the options of Docker and Podman that set the declared limits in a container.

    A container does not inherit them: the engine's daemon has limits of its own.
    """
    options = []
    for name, limit in LIMITS.items():
        value = -1 if limit is None else limit
        options += ["--ulimit", f"{name}={value}:{value}"]
    return options


def build_prlimit_options() -> list[str]:
    """Return the options of the program ``prlimit`` that set the declared limits.

    A virtual machine's ssh sessions get the limits by them.
    """
    return [f"--{name}={'unlimited' if limit is None else limit}" for name, limit in LIMITS.items()]


def apply_declared_state(processors: set[int]) -> None:
    """Give this process the state :data:`DECLARED_STATE`, which every child process then inherits.

    processors: the numbers of the CPUs that the process is restricted to.
    Signals that the caller ignored stay ignored here, but not in child processes.
    Raises nothing if root's rights are missing: values that need them stay as they are, and
    :func:`find_undeclared_values` must be called to find them.
    """
    _set_state_of_this_process(processors)
    set_process_state(os.getpid())
    if os.geteuid() != 0:
        # Only root may raise limits and priority: this file does that as a program run by sudo.
        program = [sys.executable, "-S", os.path.abspath(__file__)]
        _run_quietly(["sudo", "-n", "--", *program, "--process", str(os.getpid())])


def _run_quietly(argv: list[str]) -> None:
    """Run a command without input; ignore its output, its failure, and whether it is installed."""
    with contextlib.suppress(OSError):
        subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def _set_state_of_this_process(processors: set[int]) -> None:
    """Set the parts of this process's state that need no root, or that no other process can set.

    They are the umask, CPU affinity, signals, root's groups, and :data:`_OWN_VALUES`.
    processors: the numbers of the CPUs that the process is restricted to.
    Errors are ignored: a part that could not be set stays as it is.
    """
    os.umask(UMASK)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, processors)
    _replace_ignored_signals()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if os.geteuid() == 0:
        # Root keeps none of the groups of the caller's login.
        with contextlib.suppress(OSError):
            os.setgroups([0])
    state = parse_process_state(
        {f"/proc/self/{name}": _read_process_file(name) for name in _OWN_FILES}
    )
    declared_state = {name: DECLARED_STATE[name] for name in _OWN_VALUES}
    # The time slice should be that of process 1, the machine's first process.
    declared_state |= parse_process_state({"/proc/self/sched": _read_process_file("sched", "1")})
    if compare_states(state, declared_state):
        _reset_kernel_settings()


def _replace_ignored_signals() -> None:
    """Give each signal that the caller of this process ignored a handler that does nothing.

    The handler has the effect of SIG_IGN here, but programs that this process starts do not inherit
    it.  SIGCHLD gets its default action: if it is ignored, exit codes of children are lost.
    SIGPIPE and SIGXFSZ stay as they are, since Python itself ignores them.
    Errors are ignored, as outside of the main thread.
    """
    for number in signal.valid_signals():
        is_ignored_by_python = number in (signal.SIGPIPE, signal.SIGXFSZ)
        if signal.getsignal(number) == signal.SIG_IGN and not is_ignored_by_python:
            handler = signal.SIG_DFL if number == signal.SIGCHLD else _ignore_signal
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, handler)


def _reset_kernel_settings() -> None:
    """Reset this process's personality, memory policy, huge and merged pages, and time slice.

    Errors of these system calls are ignored.
    """
    import ctypes

    libc = ctypes.CDLL(None)
    libc.personality(0)
    # PR_SET_THP_DISABLE and PR_SET_MEMORY_MERGE, both off.
    libc.prctl(41, 0, 0, 0, 0)
    libc.prctl(67, 0, 0, 0, 0)
    # The numbers of set_mempolicy and sched_setattr on x86-64, and in the generic table.
    set_mempolicy, sched_setattr = (238, 314) if os.uname().machine == "x86_64" else (237, 274)
    libc.syscall(set_mempolicy, 0, None, 0)
    # struct sched_attr: size, policy (SCHED_OTHER), flags, nice, priority, and three times, of
    # which the first is the slice (0: the kernel's).
    attributes = struct.pack("=2IQiI3Q", 48, 0, 0, NICE, 0, 0, 0, 0)
    libc.syscall(sched_setattr, 0, attributes, 0)


def _ignore_signal(number: int, frame: object) -> None:
    """Do nothing: the handler of a signal that the caller ignored."""


def set_process_state(pid: int) -> None:
    """Set a process's limits, scheduling, priority, timer slack, I/O class and out-of-memory score.

    Values that this user may not set stay as they are.
    pid: the process ID; only root can set all values of another process.
    """
    for name, limit in LIMITS.items():
        number = _LIMIT_NUMBERS.get(name, getattr(resource, f"RLIMIT_{name.upper()}", None))
        value = resource.RLIM_INFINITY if limit is None else limit
        if number is not None:
            _set_limit(pid, number, value)
    # LIMITS lacks the limit of address space, which Docker cannot set.
    _set_limit(pid, resource.RLIMIT_AS, resource.RLIM_INFINITY)
    # The policy first: some policies have no nice.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, NICE)
    for name, value in (("oom_score_adj", OOM_SCORE), ("timerslack_ns", TIMER_SLACK)):
        path = f"/proc/{pid}/{name}"
        with contextlib.suppress(OSError), open(path, "r+", encoding="ascii") as file:
            # Writing may need a right, even if the value stays the same.
            if file.read().strip() != str(value):
                file.write(str(value))
    _run_quietly(["ionice", "--class", "none", "--pid", str(pid)])


def _set_limit(pid: int, number: int, value: int) -> None:
    """Set a process's soft and hard limit to a value, or to the hard limit if it cannot be raised.

    pid: the process ID.
    number: the kernel's number of the resource.
    value: the limit; resource.RLIM_INFINITY for none.
    Errors are ignored: the limits then stay as they are.
    """
    with contextlib.suppress(OSError, ValueError):
        soft, hard = resource.prlimit(pid, number)
        if (soft, hard) == (value, value):
            return
        try:
            resource.prlimit(pid, number, (value, value))
        except (PermissionError, ValueError):
            resource.prlimit(pid, number, (hard, hard))


def _read_process_file(name: str, process: str = "self") -> str:
    """Return the text of /proc/PROCESS/NAME, or "" if the file cannot be read.

    name: the name of the file.
    process: a process ID as digits; "self": this process.
    """
    path = f"/proc/{process}/{name}"
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
    return ""


def list_online_cpus() -> set[int]:
    """Return the numbers of the machine's online CPUs.

    If the kernel's list cannot be read, the CPUs are numbered from 0 to their count.
    """
    # Parsed here, since this module also runs without the rest of Strata.
    path = "/sys/devices/system/cpu/online"
    with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
        cpus: set[int] = set()
        for cpu_range in file.read().strip().split(","):
            first, _, last = cpu_range.partition("-")
            cpus |= {*range(int(first), int(last or first) + 1)}
        return cpus
    return set(range(os.cpu_count() or 1))


def _leave_control_groups() -> None:
    """Move this process from its control groups to the top group of each hierarchy.

    Does nothing if systemd manages the groups.  The process stays in a group that this user may not
    leave.
    """
    if os.path.isdir("/run/systemd/system"):
        return
    # In version 1 the folders below the top are hierarchies, in version 2 groups.
    is_unified = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
    pattern = "cgroup.procs" if is_unified else "*/cgroup.procs"
    for path in glob.glob(f"/sys/fs/cgroup/{pattern}"):
        with contextlib.suppress(OSError), open(path, "w", encoding="ascii") as file:
            file.write(str(os.getpid()))


def main(argv: list[str]) -> None:
    """Replace this process with a command in the declared state.

    argv: the command; or ``--process PID``, which sets the state of that process and returns.
    scripts/daemons.sh starts daemons by this program, and :func:`apply_declared_state` runs it as
    root with ``--process``.
    Raises OSError if the command cannot be started.
    """
    if argv[:1] == ["--process"]:
        set_process_state(int(argv[1]))
        return
    _leave_control_groups()
    _set_state_of_this_process(list_online_cpus())
    set_process_state(os.getpid())
    # A program inherits no handler, and Python ignored these.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main(sys.argv[1:])

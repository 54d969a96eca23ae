"""The state in which measured programs and the daemons that run them start, whoever started Strata.

A process hands its priority, limits, masks and the like on to its children.  :func:`declare` gives a process the state
of :data:`LIMITS` and its siblings, :func:`understand` reads a state from what :func:`look` prints inside a system, and
:func:`differences` compares two.

As a program (``starting_state.py COMMAND…``, for scripts, without the rest of Strata) it runs a command in that state
and outside of the caller's control groups.
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
# Soft and hard limit of each resource alike; None: no limit.  They are low enough to be had without the right to raise
# limits where the kernel's defaults hold.
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
# The number of a limit that Python has no name for.
_NUMBERS = {"locks": 10}
# How /proc/PID/limits calls them.
_NAMES = {
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
# Signals 32 and 33 are the C library's own, which leaves them ignored in what it starts by posix_spawn.
_OF_THE_LIBRARY = 0b11 << 31
UMASK, NICE, OOM_SCORE, TIMER_SLACK = 0o022, 0, 0, 50_000
# What a program of 32 bits has of itself.
_OF_32_BITS = 0x00800000
# State by its line in a file: the scheduler's slice of time, and whether the kernel merges equal pages.
_LINES = (("time slice", "sched", r"se\.slice"), ("merged pages", "ksm_stat", "ksm_merge_any"))
POLICIES = {
    "0": "other",
    "1": "fifo",
    "2": "round robin",
    "3": "batch",
    "5": "idle",
    "6": "deadline",
    "7": "ext",
}

# Prints the state of the process with the id of the first argument (self: of a program that starts there), and the
# files of the others, in the form that :func:`strata.host.observe.split` reads.  The I/O class is in no file of the
# kernel's, and the memory policy in the first line of a long one.
_LOOK = """
exec 2>/dev/null
of=/proc/$1; process=${1#self}; shift
echo "==> $of/ioprio <=="; ionice ${process:+-p "$process"}
echo "==> $of/numa_maps <=="; head -n 1 "$of/numa_maps"
exec tail -v -n +1 "$of/status" "$of/limits" "$of/stat" "$of/oom_score_adj" "$of/timerslack_ns" "$of/personality" \
    "$of/sched" "$of/ksm_stat" "$@"
"""
# The files that show what a process can only change of itself.
_SELF = ("status", "personality", "numa_maps", "sched", "ksm_stat")
# State by its field in /proc/PID/status.
_STATUS = {
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


def look(*files: str, process: int | str = "self") -> list[str]:
    """The command that prints the state of a program that starts, or of a process, and some files.

    :func:`strata.host.observe.split` takes apart what it prints, and :func:`understand` reads the state of that.
    """
    return ["sh", "-c", _LOOK, "strata", str(process), *files]


def understand(files: dict[str, str]) -> dict[str, str]:
    """A state by name, of path → content that :func:`look` printed.  What a system does not show is left out."""
    text = {
        path.rpartition("/")[2]: files[path].strip()
        for path in files
        if re.match("/proc/(self|[0-9]+)/", path)
    }
    status = dict(re.findall(r"(?m)^(\w+):[ \t]*(.*?)[ \t]*$", text.get("status", "")))
    found = {
        name: " ".join(status[field].split())
        for name, field in _STATUS.items()
        if status.get(field)
    }
    for name in ("blocked signals", "ignored signals"):
        if re.fullmatch("[0-9a-f]{1,16}", found.get(name, "")):
            found[name] = f"{int(found[name], 16) & ~_OF_THE_LIBRARY:016x}"
    # The fields behind the name, which may hold anything: 16 and on are priority, nice …
    fields = text.get("stat", "").rpartition(")")[2].split()
    if len(fields) > 38:
        found |= {"nice": fields[16], "real-time priority": fields[37]}
        found["scheduling"] = POLICIES.get(fields[38], fields[38])
    if text.get("ioprio"):
        # "none: prio 0" and "none: prio 4" are one class.
        found["I/O class"] = (
            text["ioprio"].partition(":")[0] if "none" in text["ioprio"] else text["ioprio"]
        )
    policy = text.get("numa_maps", "").split()
    if len(policy) > 1:
        found["memory policy"] = policy[1]
    for line in text.get("limits", "").splitlines():
        words = re.fullmatch(r"(Max [a-z ]+?) {2,}(\w+) +(\w+)( +\w+)?\s*", line)
        if words and words[1] in _NAMES:
            found[f"limit {_NAMES[words[1]]}"] = (
                words[2] if words[2] == words[3] else f"{words[2]}:{words[3]}"
            )
    for name in ("oom_score_adj", "timerslack_ns"):
        if text.get(name):
            found[name.replace("_", " ")] = text[name].split()[0]
    if re.fullmatch("[0-9a-f]{8}", text.get("personality", "")):
        found["personality"] = f"{int(text['personality'], 16) & ~_OF_32_BITS:08x}"
    for name, field, form in _LINES:
        if shown := re.search(rf"(?m)^{form}\s*:?\s*(\S+)$", text.get(field, "")):
            found[name] = shown[1]
    return found


def differences(here: dict[str, str], native: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Name → (native's value, the value here) of what both show and is not the same."""
    return {
        name: (native[name], here[name])
        for name in native
        if name in here and here[name] != native[name]
    }


# Of a process of the host that is a sandbox or a machine, what decides how it runs.  (QEMU sets its own timer slack.)
OF_THE_HOST = (
    "processors", "memory nodes", "memory policy", "nice", "real-time priority", "scheduling", "I/O class",
)  # fmt: skip


def undeclared(state: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Name → (the declared value, the value here) of what is not as it is declared."""
    wanted = {
        f"limit {name}": "unlimited" if most is None else str(most) for name, most in LIMITS.items()
    }
    wanted |= {
        "limit as": "unlimited",
        "umask": f"{UMASK:04o}",
        "nice": str(NICE),
        "scheduling": "other",
    }
    wanted |= {"real-time priority": "0", "I/O class": "none", "memory policy": "default"}
    wanted |= {
        "oom score adj": str(OOM_SCORE),
        "timerslack ns": str(TIMER_SLACK),
        "personality": "00000000",
    }
    wanted |= {"blocked signals": "0" * 16, "ignored signals": "0" * 16, "huge pages": "1"}
    wanted |= {"no new privileges": "0", "merged pages": "no"}
    return differences(state, wanted)


def limit_words() -> list[str]:
    """The words that give a container of Docker or Podman these limits."""
    values = {name: -1 if most is None else most for name, most in LIMITS.items()}
    return [word for name, most in values.items() for word in ("--ulimit", f"{name}={most}:{most}")]


def prlimit_words() -> list[str]:
    """The options of ``prlimit`` that set these limits."""
    return [f"--{name}={'unlimited' if most is None else most}" for name, most in LIMITS.items()]


def declare(processors: set[int]) -> None:
    """Give this process, and so all that it starts from now on, the declared state on these processors.

    Signals that the caller ignored stay so here and are not ignored by what starts.  What needs root and is not
    to be had is left as it is: :func:`undeclared` shows it.
    """
    _own(processors)
    of_process(os.getpid())
    if os.geteuid() != 0:
        # Anybody may lower limits.  sudo runs this file to raise them, and to give back priority.
        command = [
            "sudo",
            "-n",
            "--",
            sys.executable,
            "-S",
            os.path.abspath(__file__),
            "--process",
            str(os.getpid()),
        ]
        with contextlib.suppress(OSError):
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def _own(processors: set[int]) -> None:
    """What a process can only change itself, or may change without being root."""
    os.umask(UMASK)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, processors)
    for number in signal.valid_signals():
        # A handler is the caller's wish kept here, and gone in a program that is started.
        if signal.getsignal(number) == signal.SIG_IGN and number not in (
            signal.SIGPIPE,
            signal.SIGXFSZ,
        ):
            kept = signal.SIG_DFL if number == signal.SIGCHLD else _nothing
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, kept)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            os.setgroups([0])
    own = understand({f"/proc/self/{name}": _content(name) for name in _SELF})
    # A slice of its own is another than that of the machine's first process.
    first = understand({"/proc/self/sched": _content("sched", "1")})
    usual = {
        "personality": "00000000",
        "memory policy": "default",
        "huge pages": "1",
        "merged pages": "no",
        **first,
    }
    if differences(own, usual):
        import ctypes

        libc = ctypes.CDLL(None)
        libc.personality(0)
        # PR_SET_THP_DISABLE and PR_SET_MEMORY_MERGE; the numbers of set_mempolicy and sched_setattr on x86-64, and in
        # the generic table.  The attributes: size, usual policy, no flags, nice, priority, and no slice of its own.
        libc.prctl(41, 0, 0, 0, 0)
        libc.prctl(67, 0, 0, 0, 0)
        policy, attributes = (238, 314) if os.uname().machine == "x86_64" else (237, 274)
        libc.syscall(policy, 0, None, 0)
        libc.syscall(attributes, 0, struct.pack("=2IQiI3Q", 48, 0, 0, NICE, 0, 0, 0, 0), 0)


def _nothing(number: int, frame: object) -> None:
    """A signal that the caller ignored."""


def of_process(pid: int) -> None:
    """Set limits, priority, classes and the out-of-memory score of a process, as far as this user may."""
    for name, most in LIMITS.items():
        number = _NUMBERS.get(name, getattr(resource, f"RLIMIT_{name.upper()}", None))
        value = resource.RLIM_INFINITY if most is None else most
        if number is not None:
            _limit(pid, number, value)
    _limit(pid, resource.RLIMIT_AS, resource.RLIM_INFINITY)
    # The policy first: under some of them there is no nice.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, NICE)
    for name, value in (("oom_score_adj", OOM_SCORE), ("timerslack_ns", TIMER_SLACK)):
        with (
            contextlib.suppress(OSError),
            open(f"/proc/{pid}/{name}", "r+", encoding="ascii") as file,
        ):
            if file.read().strip() != str(value):
                file.write(str(value))
    with contextlib.suppress(OSError):
        words = ["ionice", "--class", "none", "--pid", str(pid)]
        subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def _limit(pid: int, number: int, value: int) -> None:
    """Set a limit, as near as may be where the hard one is lower and cannot be raised."""
    with contextlib.suppress(OSError, ValueError):
        soft, hard = resource.prlimit(pid, number)
        if (soft, hard) == (value, value):
            return
        try:
            resource.prlimit(pid, number, (value, value))
        except (PermissionError, ValueError):
            resource.prlimit(pid, number, (hard, hard))


def _content(name: str, process: str = "self") -> str:
    with (
        contextlib.suppress(OSError),
        open(f"/proc/{process}/{name}", encoding="utf-8", errors="replace") as file,
    ):
        return file.read()
    return ""


def online() -> set[int]:
    """The processors of the machine that are switched on."""
    with (
        contextlib.suppress(OSError, ValueError),
        open("/sys/devices/system/cpu/online", encoding="ascii") as file,
    ):
        ends = [part.partition("-") for part in file.read().strip().split(",")]
        return {
            number
            for first, _, last in ends
            for number in range(int(first), int(last or first) + 1)
        }
    return set(range(os.cpu_count() or 1))


def _leave_groups() -> None:
    """Leave the caller's control groups for the top of each hierarchy, where there is no service manager to mind."""
    if os.path.isdir("/run/systemd/system"):
        return
    # In version 2 the folders below the top are groups, not hierarchies.
    unified = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
    for path in glob.glob(f"/sys/fs/cgroup/{'' if unified else '*/'}cgroup.procs"):
        with contextlib.suppress(OSError), open(path, "w", encoding="ascii") as file:
            file.write(str(os.getpid()))


def main(words: list[str]) -> None:
    """Run a command in the declared state, or (``--process PID``) set what root may of a process."""
    if words[:1] == ["--process"]:
        of_process(int(words[1]))
        return
    _leave_groups()
    _own(online())
    of_process(os.getpid())
    # A program inherits no handler, and Python ignored these.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(words[0], words)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Calls: the time of each kind of call, in nanoseconds."""

from kit.checks import number, require, require_close, require_equal, require_parameters
from kit.logs import Object, Value, read, value

CALLS = ["getpid", "pipe", "forkexec", "stat", "mmap"]
MEMORY = ["touch", "again", "mapped", "touch-huge", "again-huge", "mapped-huge"]


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the time of each kind of call; calls.c prints the log's objects.

    Memory that was asked for on huge pages is left out where the kernel put none there.
    """
    log = read(lines, f" tool( call){{{len(CALLS + MEMORY)}}}")
    [header], calls = log.objects["tool"], log.objects["call"]
    require_equal("the program", header["tool"], "strata-calls")
    require_parameters(header, parameters, "seconds")
    require_equal("the calls", sorted(x["call"] for x in calls), sorted(CALLS + MEMORY))
    shown = [line for line in lines if "/proc/self/status:Seccomp:" in line]
    require(len(shown) == 1, "the log does not say once whether system calls are filtered")
    values = []
    for name in CALLS + MEMORY:
        [call] = [x for x in calls if x["call"] == name]
        time, seconds = number(call, "ns"), number(call, "seconds")
        require_close("time × count", time * number(call, "count"), 1e9 * seconds)
        if not (name.endswith("-huge") and call["huge_page_bytes"] == 0):
            values.append(value("time", "ns", time, call=name))
    return values

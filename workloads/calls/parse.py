"""Calls: the time of each kind of call, in nanoseconds."""

from kit.checks import get_number, require, require_close, require_equal, require_parameters
from kit.logs import Object, Value, build_value, read_objects

# The names of system calls, and of accesses to a page of memory, as calls.c prints them.
CALLS = ["getpid", "pipe", "forkexec", "stat", "mmap"]
MEMORY = ["touch", "again", "mapped", "touch-huge", "again-huge", "mapped-huge"]


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the mean time of each kind of call (ns), in the order of `CALLS` and `MEMORY`.

    An access to huge pages is left out if the kernel gave the program none.
    workload.yaml declares the metric `time`; the factor `call` is the name that calls.c prints.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    # calls.c prints the objects.
    log = read_objects(lines, f" tool( call){{{len(CALLS + MEMORY)}}}")
    [header] = log.objects["tool"]
    require_equal("the program", header["tool"], "strata-calls")
    require_parameters(header, parameters, "seconds")
    calls = {call["call"]: call for call in log.objects["call"]}
    require_equal("the calls", sorted(calls), sorted(CALLS + MEMORY))
    # A step of workload.yaml prints this line; the cell's record and the paper show its value.
    filter_lines = [line for line in lines if "/proc/self/status:Seccomp:" in line]
    has_filter_line = len(filter_lines) == 1
    require(has_filter_line, "the log does not say once whether system calls are filtered")
    values = []
    for name in CALLS + MEMORY:
        call = calls[name]
        nanoseconds = get_number(call, "ns")
        total_nanoseconds = 1e9 * get_number(call, "seconds")
        require_close("time × count", nanoseconds * get_number(call, "count"), total_nanoseconds)
        is_without_huge_pages = name.endswith("-huge") and call["huge_page_bytes"] == 0
        if not is_without_huge_pages:
            values.append(build_value("time", "ns", nanoseconds, call=name))
    return values

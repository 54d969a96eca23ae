"""Read the results of MySQL: outputs of sysbench, and of dstat on the host."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from strata.reanalysis.reading import (
    Factors,
    Readings,
    Refusal,
    Value,
    parse_number,
    split_at_pattern,
)

# A run of sysbench is found in dstat's samples, which are one a second, as a series of at least
# LEAST_SECONDS samples, each with at least BUSY_USER per cent of user time.
LEAST_SECONDS, BUSY_USER = 20, 2
# The numbers that sysbench prints after a test, by the names that refusals use.
PATTERNS = {
    "threads": r"^Number of threads: *(\d+)",
    "transactions": r"^ *transactions: +(\d+)",
    "total time": r"^ *total time: +([\d.]+)s",
    "mean latency": r"^ *avg: +([\d.]+)ms",
    "95th percentile": r"^ *approx\. +95 percentile: +([\d.]+)ms",
    "execution time": r"^ *execution time \(avg/stddev\): +([\d.]+)",
}


def read_sysbench(lines: Sequence[str]) -> Readings:
    """Yield the throughput (tx/s) and latencies (ms) of each complete read-only test of sysbench.

    Yields a refusal for each test that was cut off or also wrote.
    The throughput must be the first value of a test, since the caller takes the factors of runs
    from it.
    """
    for block in split_at_pattern(lines, r"^sysbench [\d.]+:"):
        numbers = {name: block.find_number(pattern) or 0 for name, pattern in PATTERNS.items()}
        if missing := [name for name, number in numbers.items() if not number]:
            reason = f"an output that was cut off; without {', '.join(missing)}"
            yield Refusal(block.first, reason)
        elif block.find_number(r"^ *write: +(\d+)"):
            yield Refusal(block.first, "a test that is not read-only")
        else:
            factors: Factors = {"threads": round(numbers["threads"])}
            rate = numbers["transactions"] / numbers["total time"]
            line = block.find_line_number(PATTERNS["transactions"])
            yield Value("throughput", "tx/s", factors, rate, line)
            for metric, name in (("latency", "mean latency"), ("latency_p95", "95th percentile")):
                line = block.find_line_number(PATTERNS[name])
                yield Value(metric, "ms", factors, numbers[name], line)


class BusySecond(NamedTuple):
    """A sample of dstat that shows a busy host: its line in the file, and the idle share (%)."""

    line: int
    idle: float


def read_dstat(lines: Sequence[str], outputs: list[list[Factors]]) -> Readings:
    """Yield the host's mean CPU usage (%) of each run that a file of dstat shows.

    outputs: for each of sysbench's files, the factors of its runs in their order.  The runs that
    dstat shows get these factors one after the other.  If all files list the same runs, dstat may
    show that list more often than there are files.
    A run is a series of at least LEAST_SECONDS busy seconds.  Its first and last second are left
    out of the mean.
    Yields a refusal for each incomplete line, and one refusal instead of all values if the number
    of runs does not match.
    """
    if not any(line.replace('"', "").startswith("usr,sys,idl") for line in lines):
        yield Refusal(1, "no header of dstat with usr, sys and idl in this file")
        return
    runs: list[list[BusySecond]] = []
    busy: list[BusySecond] = []
    # The added empty line ends a run that lasts until the file's end.
    for number, line in enumerate([*lines, ""], 1):
        shares = [parse_number(cell) for cell in line.split(",")[:3]]
        is_sample = len(shares) == 3 and None not in shares
        # Lines of a header begin with a quote; others without a sample have commas at most.
        if not is_sample and not re.match(r'"|,*$', line):
            yield Refusal(number, "a line that is neither a header nor a whole sample of dstat")
        # The shares are those of user, system and idle time.
        if is_sample and (shares[0] or 0) >= BUSY_USER:
            busy.append(BusySecond(number, shares[2] or 0))
            continue
        if len(busy) >= LEAST_SECONDS:
            runs.append(busy)
        busy = []
    settings = [factors for output in outputs for factors in output]
    is_same_list = outputs and outputs[0] and all(output == outputs[0] for output in outputs)
    if is_same_list and len(runs) % len(outputs[0]) == 0:
        settings = outputs[0] * (len(runs) // len(outputs[0]))
    if len(runs) != len(settings):
        reason = f"dstat shows {len(runs)} runs, and sysbench's outputs have {len(settings)}"
        yield Refusal(1, reason)
        return
    for factors, run in zip(settings, runs, strict=True):
        idle = [second.idle for second in run[1:-1]]
        yield Value("cpu", "%", factors, 100 - sum(idle) / len(idle), run[0].line)

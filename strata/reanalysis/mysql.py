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
# MIN_RUN_SECONDS samples, each with at least MIN_USER_PERCENT of user time.  Shorter series are
# other activity of the host.
MIN_RUN_SECONDS = 20
MIN_USER_PERCENT = 2
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

    lines: the lines of a file with the outputs of one or more tests.
    Yields a refusal for each test that was cut off or also wrote.
    The throughput must be the first value of a test: strata/reanalysis/tidy.py takes the factors of
    runs from it.
    """
    for block in split_at_pattern(lines, r"^sysbench [\d.]+:"):
        # A number that is missing counts as 0, which no complete test prints.
        numbers = {name: block.find_number(pattern) or 0 for name, pattern in PATTERNS.items()}
        missing_names = [name for name, number in numbers.items() if not number]
        if missing_names:
            reason = f"an output that was cut off; without {', '.join(missing_names)}"
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

    lines: the lines of the file.
    outputs: for each of sysbench's files, the factors of its runs in their order.
    Yields a refusal for each incomplete line, and one refusal instead of all values if the number
    of runs does not match.
    The first and last second of a run, which it may have filled only in part, are left out.
    """
    if not any(line.replace('"', "").startswith("usr,sys,idl") for line in lines):
        yield Refusal(1, "no header of dstat with usr, sys and idl in this file")
        return
    runs: list[list[BusySecond]] = []
    busy_seconds: list[BusySecond] = []
    # The added empty line ends a run that lasts until the file's end.
    for line_number, line in enumerate([*lines, ""], 1):
        sample = _parse_sample(line)
        # Lines of a header begin with a quote; others without a sample have commas at most.
        if sample is None and not re.match(r'"|,*$', line):
            yield Refusal(
                line_number, "a line that is neither a header nor a whole sample of dstat"
            )
        if sample is not None and sample.user >= MIN_USER_PERCENT:
            busy_seconds.append(BusySecond(line_number, sample.idle))
            continue
        if len(busy_seconds) >= MIN_RUN_SECONDS:
            runs.append(busy_seconds)
        busy_seconds = []
    run_factors = _list_run_factors(outputs, len(runs))
    if len(runs) != len(run_factors):
        reason = f"dstat shows {len(runs)} runs, and sysbench's outputs have {len(run_factors)}"
        yield Refusal(1, reason)
        return
    for factors, run in zip(run_factors, runs, strict=True):
        idle_shares = [second.idle for second in run[1:-1]]
        mean_idle = sum(idle_shares) / len(idle_shares)
        yield Value("cpu", "%", factors, 100 - mean_idle, run[0].line)


class Sample(NamedTuple):
    """A sample of dstat: the shares (%) of user and of idle time."""

    user: float
    idle: float


def _parse_sample(line: str) -> Sample | None:
    """Return the sample in a line of dstat's file; None for a header or an incomplete line.

    line: comma-separated cells, of which the first three are user, system and idle time.
    """
    shares = [parse_number(cell) for cell in line.split(",")[:3]]
    if len(shares) < 3:
        return None
    user, system, idle = shares
    if user is None or system is None or idle is None:
        return None
    return Sample(user, idle)


def _list_run_factors(outputs: list[list[Factors]], run_count: int) -> list[Factors]:
    """Return the factors of the runs in dstat's file, in their order.

    outputs: for each of sysbench's files, the factors of its runs.
    run_count: the number of runs that dstat shows.
    The factors are those of all outputs, one after the other.  If all outputs are equal, dstat may
    show their list more often or less often than there are files.  The caller checks the number.
    """
    if outputs and outputs[0] and all(output == outputs[0] for output in outputs):
        list_count, other_runs = divmod(run_count, len(outputs[0]))
        if other_runs == 0:
            return outputs[0] * list_count
    return [factors for output in outputs for factors in output]

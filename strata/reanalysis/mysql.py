"""Read the results of MySQL: outputs of sysbench, and of dstat on the host."""

import re
from collections.abc import Iterator, Sequence

from strata.reanalysis.reading import Factors, Refusal, Value, find_blocks, parse_number

# By these a run of sysbench is found in dstat's samples, one a second: at least so many samples in
# succession, each with at least this share (%) of user time.
LEAST_SECONDS, BUSY_USER = 20, 2
FIELDS = {
    "threads": r"^Number of threads: *(\d+)",
    "transactions": r"^ *transactions: +(\d+)",
    "total time": r"^ *total time: +([\d.]+)s",
    "mean latency": r"^ *avg: +([\d.]+)ms",
    "95th percentile": r"^ *approx\. +95 percentile: +([\d.]+)ms",
    "execution time": r"^ *execution time \(avg/stddev\): +([\d.]+)",
}


def read_sysbench(lines: Sequence[str]) -> Iterator[Value | Refusal]:
    """Yield the throughput (tx/s) and latencies (ms) of each complete read-only test of sysbench.

    Yields a refusal for each test that was cut off or also wrote.
    Within a test the throughput comes first: the caller takes the factors of runs from it.
    """
    for block in find_blocks(lines, r"^sysbench [\d.]+:"):
        numbers = {name: block.find_number(pattern) or 0 for name, pattern in FIELDS.items()}
        if missing := [name for name, number in numbers.items() if not number]:
            reason = f"an output that was cut off; without {', '.join(missing)}"
            yield Refusal(block.first, reason)
        elif block.find_number(r"^ *write: +(\d+)"):
            yield Refusal(block.first, "a test that is not read-only")
        else:
            factors: Factors = {"threads": round(numbers["threads"])}
            rate = numbers["transactions"] / numbers["total time"]
            line = block.find_line(FIELDS["transactions"])
            yield Value("throughput", "tx/s", factors, rate, line)
            for metric, name in (("latency", "mean latency"), ("latency_p95", "95th percentile")):
                line = block.find_line(FIELDS[name])
                yield Value(metric, "ms", factors, numbers[name], line)


def read_dstat(lines: Sequence[str], outputs: list[list[Factors]]) -> Iterator[Value | Refusal]:
    """Yield the host's mean CPU usage (%) of each run that a file of dstat shows.

    outputs: for each of sysbench's files, the factors of its runs in their order, by which the runs
    here are told apart.  Files of equal runs may stand for more repetitions than there are files.
    The first and the last second of a run are left out of its mean.
    Yields one refusal instead of values if dstat shows another number of runs, and one for each
    line that is incomplete.
    """
    if not any(line.replace('"', "").startswith("usr,sys,idl") for line in lines):
        yield Refusal(1, "no header of dstat with usr, sys and idl in this file")
        return
    runs: list[list[tuple[int, float]]] = []
    # The line and idle share of each second since the host became busy.
    seconds: list[tuple[int, float]] = []
    for number, line in enumerate([*lines, ""], 1):
        shares = [parse_number(cell) for cell in line.split(",")[:3]]
        complete = len(shares) == 3 and None not in shares
        if not complete and not re.match(r'"|,*$', line):
            yield Refusal(number, "a line that is neither a header nor a whole sample of dstat")
        if complete and (shares[0] or 0) >= BUSY_USER:
            seconds.append((number, shares[2] or 0))
            continue
        if len(seconds) >= LEAST_SECONDS:
            runs.append(seconds)
        seconds = []
    threads = [factors for output in outputs for factors in output]
    equal = outputs and outputs[0] and all(output == outputs[0] for output in outputs)
    if equal and len(runs) != len(threads) and len(runs) % len(outputs[0]) == 0:
        threads = outputs[0] * (len(runs) // len(outputs[0]))
    if len(runs) != len(threads):
        reason = f"dstat shows {len(runs)} runs, and sysbench's outputs have {len(threads)}"
        yield Refusal(1, reason)
        return
    for factors, run in zip(threads, runs, strict=True):
        idle = [share for _, share in run[1:-1]]
        yield Value("cpu", "%", factors, 100 - sum(idle) / len(idle), run[0][0])

"""The database's results: sysbench's outputs for rising numbers of threads, and beside them the host's processors."""

import re
from collections.abc import Iterator, Sequence

from strata.reanalysis.reading import Factors, Refusal, Value, as_number, blocks

# A run of sysbench in dstat's seconds: so many or more of them, each with at least this user share in %.
LEAST_SECONDS, BUSY_USER = 20, 2
FIELDS = {
    "threads": r"^Number of threads: *(\d+)",
    "transactions": r"^ *transactions: +(\d+)",
    "total time": r"^ *total time: +([\d.]+)s",
    "mean latency": r"^ *avg: +([\d.]+)ms",
    "95th percentile": r"^ *approx\. +95 percentile: +([\d.]+)ms",
    "execution time": r"^ *execution time \(avg/stddev\): +([\d.]+)",
}


def sysbench(lines: Sequence[str]) -> Iterator[Value | Refusal]:
    """Transactions over the total time, and latencies in ms, of each read-only test that came to its end."""
    for block in blocks(lines, r"^sysbench [\d.]+:"):
        found = {name: block.number(pattern) for name, pattern in FIELDS.items()}
        if lost := [name for name, number in found.items() if not number]:
            yield Refusal(block.first, f"an output that was cut off; without {', '.join(lost)}")
        elif block.number(r"^ *write: +(\d+)"):
            yield Refusal(block.first, "a test that is not read-only")
        else:
            known = {name: number or 0 for name, number in found.items()}
            factors: Factors = {"threads": int(known["threads"])}
            rate = known["transactions"] / known["total time"]
            yield Value("throughput", "tx/s", factors, rate, block.place(FIELDS["transactions"]))
            for metric, name in (("latency", "mean latency"), ("latency_p95", "95th percentile")):
                yield Value(metric, "ms", factors, known[name], block.place(FIELDS[name]))


def dstat(lines: Sequence[str], outputs: list[list[Factors]]) -> Iterator[Value | Refusal]:
    """The host's processor use in each run, in %, less its first and last second.

    outputs: the factors of the values in each of sysbench's outputs beside it, in the order of the runs.
    """
    if not any(line.replace('"', "").startswith("usr,sys,idl") for line in lines):
        yield Refusal(1, "no header of dstat with usr, sys and idl in this file")
        return
    seconds: list[tuple[int, float]] = []
    runs = []
    for number, line in enumerate([*lines, ""], 1):
        cells = [as_number(cell) for cell in line.split(",")[:3]]
        whole = len(cells) == 3 and None not in cells
        if not whole and not re.match(r'"|,*$', line):
            yield Refusal(number, "a line that is neither a header nor a whole sample of dstat")
        if whole and (cells[0] or 0) >= BUSY_USER:
            seconds.append((number, cells[2] or 0))
        else:
            runs += [seconds] if len(seconds) >= LEAST_SECONDS else []
            seconds = []
    threads = [factors for output in outputs for factors in output]
    alike = outputs and all(output == outputs[0] for output in outputs)
    if alike and outputs[0] and len(runs) != len(threads) and len(runs) % len(outputs[0]) == 0:
        threads = outputs[0] * (len(runs) // len(outputs[0]))
    if len(runs) != len(threads):
        yield Refusal(
            1, f"{len(runs)} runs can be told, and sysbench's outputs beside it have {len(threads)}"
        )
        return
    for factors, run in zip(threads, runs, strict=True):
        idle = [share for _, share in run[1:-1]]
        yield Value("cpu", "%", factors, 100 - sum(idle) / len(idle), run[0][0])

"""The logs of RandomAccess, STREAM, Linpack, fio and redis-benchmark."""

import re
from collections.abc import Iterator, Sequence

from strata.reanalysis.reading import Block, Factors, Refusal, Value, as_number, blocks, cut

Found = Iterator[Value | Refusal]

SOCKETS = {32: 2, 16: 1}
# RandomAccess is bound by synchronisation: what stays below this, in GUPS, ran on both sockets.
GUPS_OF_TWO_SOCKETS = 0.025
# Trials of Linpack behind a printed mean.
TRIALS = 10
# Jobs of fio that no figure shows.
HIDDEN_JOBS = ("seq-read-1", "random-write-16")
MEANS = {
    "slat": "latency_submission",
    "clat": "latency_completion",
    "lat": "latency_total",
    "bw": "thread_bandwidth",
}
# To microseconds, and to KB/s.
SCALES = {"nsec": 0.001, "usec": 1.0, "msec": 1e3, "sec": 1e6}
SCALES |= {"B/s": 1 / 1024, "KB/s": 1.0, "MB/s": 1024.0, "GB/s": 1024.0**2}
REDIS_TESTS = ("PING_INLINE", "PING_BULK", "SET", "GET", "LPUSH", "LPOP", "SADD")


def randomaccess(lines: Sequence[str]) -> Found:
    """The rate of each run, in GUPS."""
    for block in blocks(lines, "^Running gups", "^Main table size"):
        rate = block.number(r"^(\S+) Billion\(10\^9\) Updates +per second")
        if not rate:
            yield Refusal(block.first, "a run that ends without a rate")
        elif not block.holds(r"^Found \d+ errors in \d+ locations \(passed\)"):
            yield Refusal(block.first, "a run whose verification did not pass or is missing")
        else:
            sockets, line = (
                2 if rate < GUPS_OF_TWO_SOCKETS else 1,
                block.place("Updates +per second"),
            )
            yield Value(
                "gups",
                "GUPS",
                {"sockets": sockets},
                rate,
                line,
                "paper" if sockets == 2 else "variant",
            )


def stream(lines: Sequence[str]) -> Found:
    """The best rate of each kernel in each run, in GB/s."""
    for block in blocks(lines, "^Running stream", "^This system uses"):
        rates = {
            kernel: block.number(rf"^{kernel}: +(\S+)")
            for kernel in ("Copy", "Scale", "Add", "Triad")
        }
        sockets = SOCKETS.get(int(block.number(r"^Number of Threads requested = (\d+)") or 0))
        scale = (
            1 if block.holds(r"Rate \(GB/s\)") else 1000 if block.holds(r"Rate \(MB/s\)") else None
        )
        if lost := [kernel for kernel, rate in rates.items() if not rate]:
            yield Refusal(block.first, f"a run without a rate of {', '.join(lost)}")
        elif not block.holds("^Solution Validates"):
            yield Refusal(block.first, "a run whose solution did not validate")
        elif sockets is None or scale is None:
            yield Refusal(
                block.first,
                "a run that does not tell its threads (32 or 16) or the unit of its rates",
            )
        else:
            for kernel, rate in rates.items():
                line, selection = (
                    block.place(f"^{kernel}: "),
                    "paper" if sockets == 2 else "variant",
                )
                yield Value(
                    kernel.lower(),
                    "GB/s",
                    {"sockets": sockets},
                    (rate or 0) / scale,
                    line,
                    selection,
                )


def linpack(lines: Sequence[str], name: str) -> Found:
    """The trials of each start of the program, in GFLOPS; a virtual machine that sees the host's topology is tuned.

    Of each kind of machine the last complete start of ten trials or more on both sockets was published.  name: what
    the log is called, for the factors of the others.
    """
    starts, headed = [], False
    for at, line in enumerate(lines):
        script = line.startswith("This is a SAMPLE run script")
        if line.startswith("Running linpack") or (script and not headed):
            starts.append(at)
        headed = line.startswith("Running linpack") or (headed and not script)
    runs: list[tuple[bool, int, int, bool, list[tuple[str, float, int]]]] = []
    for number, block in enumerate(cut(lines, starts), 1):
        rows = [(line.split(), block.first + at) for at, line in enumerate(block.lines)]
        rows = [
            (row, at)
            for row, at in rows
            if len(row) > 3 and all(as_number(cell) for cell in row[:4])
        ]
        trials = [(row, at) for row, at in rows if len(row) == 8]
        passed = [
            (row[0], as_number(row[4]) or 0, at)
            for row, at in trials
            if row[-1] == "pass" and as_number(row[4])
        ]
        asked = int(block.number(r"^Number of trials to run *: *(\d+)") or 0)
        sockets = SOCKETS.get(int(block.number(r"^Number of threads: *(\d+)") or 0))
        summary = any(len(row) == 5 for row, _ in rows)
        tuned = (block.number(r"^Number of CPUs: *(\d+)") or 0) < (
            block.number(r"^Number of cores: *(\d+)") or 0
        )
        if not trials:
            yield Refusal(block.first, "a block that ended before its first trial")
        elif sockets is None:
            yield Refusal(block.first, "a block that does not tell its threads (32 or 16)")
        else:
            if len(passed) < len(trials):
                yield Refusal(block.first, "a trial whose residual did not pass")
            if len(trials) != asked or not summary:
                lost = "" if summary else ", and no summary"
                yield Refusal(
                    block.first, f"a block that was cut off: {len(trials)} of {asked} trials{lost}"
                )
            whole = len(passed) == asked and summary and sockets == 2 and len(passed) >= TRIALS
            runs.append((tuned, number, sockets, whole, passed))
    shown = {tuned: number for tuned, number, _, whole, _ in runs if whole}
    for tuned, number, sockets, _, passed in runs:
        last = shown.get(tuned) == number
        selection = "paper" if last else "superseded" if sockets == 2 else "variant"
        for order, rate, at in passed:
            factors: Factors = {"order": order, "sockets": sockets}
            if not last:
                factors["run"] = f"{name}:{number}"
            kind = "vm-tuned" if tuned and name == "vm.log" else ""
            yield Value("gflops", "GFLOPS", factors, rate, at, selection, kind)


def fio(lines: Sequence[str]) -> Found:
    """Of each job and direction: operations, bandwidths in KB/s, means and percentiles of the latency in µs.

    Of a job that reads and writes the sums stand beside these, with the direction ``both``.
    """
    end = next((at for at, line in enumerate(lines) if line.startswith("Run status group")), None)
    if end is None:
        yield Refusal(len(lines), "the output ends before fio's summary")
    jobs = blocks(lines[:end], r"^[^ ].*: \(groupid=\d+, jobs=\d+\):")
    for block in jobs:
        job = block.lines[0].split(":")[0]
        heads = [
            at for at, line in enumerate(block.lines) if re.match(r" *(read|write) *: +io=", line)
        ]
        if not re.search(r"err= *0:", block.lines[0]) or not heads:
            yield Refusal(
                block.first, f"the job {job} ended with an error, or has neither reads nor writes"
            )
            continue
        told = [
            one for part in cut(block.lines, heads, block.first) for one in _direction(job, part)
        ]
        for metric in ("iops", "bandwidth"):
            each = [one for one in told if isinstance(one, Value) and one.metric == metric]
            if len(each) == 2:
                sums = sum(one.value for one in each)
                both: Factors = {"job": job, "direction": "both"}
                told.append(each[0]._replace(factors=both, value=sums))
        selection = "variant" if job in HIDDEN_JOBS else "paper"
        yield from (
            one._replace(selection=selection) if isinstance(one, Value) else one for one in told
        )


def _direction(job: str, part: Block) -> Found:
    direction = part.lines[0].split()[0].rstrip(":")
    factors: Factors = {"job": job, "direction": direction}
    head = re.search(r"bw=([\d.]+)([KMG]?B/s), +iops=([\d.]+)(K?)", part.lines[0])
    if head is None:
        yield Refusal(part.first, f"{job}, {direction}: no bandwidth and operations can be read")
        return
    yield Value("iops", "IOPS", factors, float(head[3]) * (1000 if head[4] else 1), part.first)
    yield Value("bandwidth", "KB/s", factors, float(head[1]) * SCALES[head[2]], part.first)
    scale = None
    for at, line in enumerate(part.lines, part.first):
        mean = re.match(r" *(slat|clat|lat|bw) *\(([^)]+)\) *: *min=.*avg= *([\d.]+)(K?)", line)
        if mean and mean[2] in SCALES:
            value = float(mean[3]) * (1000 if mean[4] else 1) * SCALES[mean[2]]
            yield Value(MEANS[mean[1]], "KB/s" if mean[1] == "bw" else "us", factors, value, at)
        elif found := re.match(r" *clat percentiles \((\w+)\)", line):
            scale = SCALES.get(found[1])
        elif scale is not None:
            for share, number in re.findall(r"([\d.]+)th=\[ *(\d+)\]", line):
                more = {**factors, "percentile": share}
                yield Value("latency_percentile", "us", more, float(number) * scale, at)


def redis(lines: Sequence[str]) -> Found:
    """Of each run, number of connections and test: requests a second, and the latency, connections over rate, in ms.

    A last run that was cut off is left out.
    """
    groups = []
    for block in blocks(lines, r"^\[DBG\] Run #\d+: Connections \d+"):
        head = re.match(r"\[DBG\] Run #(\d+): Connections (\d+)", block.lines[0])
        if head:
            groups.append((int(head[1]), int(head[2]), block, list(_tests(block, int(head[2])))))
    if not groups:
        return
    last = groups[-1][0]
    done = {at for run, at, _, _ in groups if run == last}
    lacks = not {at for run, at, _, _ in groups if run != last} <= done
    torn = last != groups[0][0] and REDIS_TESTS[-1] not in {test for test, _, _ in groups[-1][3]}
    if lacks or torn:
        first = next(block.first for run, _, block, _ in groups if run == last)
        cut_off = (
            f"run {last} was cut off after {min(done)} to {max(done)} connections; it is not used"
        )
        yield Refusal(first, cut_off)
        groups = [group for group in groups if group[0] != last]
    for run, connections, block, tests in groups:
        for lost in sorted({*REDIS_TESTS} - {test for test, _, _ in tests}):
            where = f"run {run}, {connections} connections"
            yield Refusal(block.first, f"{where}: the result of {lost} is lost or not complete")
        for test, rate, line in tests:
            factors: Factors = {"test": test, "connections": connections}
            selection = "paper" if test == "SET" else "variant"
            yield Value("throughput", "requests/s", factors, rate, line, selection)
            yield Value("latency", "ms", factors, 1000 * connections / rate, line, selection)


def _tests(block: Block, connections: int) -> Iterator[tuple[str, float, int]]:
    heads = [at for at, line in enumerate(block.lines) if re.search("====== .* ======$", line)]
    for part in cut(block.lines, heads, block.first):
        test = re.sub(r"^.*====== (.*) ======$", r"\1", part.lines[0])
        rate = part.number(r"^(\S+) requests per second")
        if (
            test in REDIS_TESTS
            and rate
            and part.number(r"^ *(\d+) parallel clients") == connections
        ):
            yield test, rate, part.place("requests per second")

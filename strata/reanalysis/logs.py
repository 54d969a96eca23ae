"""Read the logs of RandomAccess, STREAM, Linpack, fio and redis-benchmark."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from strata.reanalysis.reading import (
    Block,
    Factors,
    Readings,
    Refusal,
    Value,
    parse_number,
    split_at_pattern,
    split_at_starts,
)

# Number of threads → the number of CPU sockets that they occupy, with 16 threads each.
SOCKETS = {32: 2, 16: 1}
# Synchronisation between sockets bounds RandomAccess: a run below this rate, in GUPS, was on both.
MAX_GUPS_OF_TWO_SOCKETS = 0.025
# Trials of Linpack behind a published mean.
TRIALS = 10
# Jobs of fio that no figure shows.
HIDDEN_JOBS = ("seq-read-1", "random-write-16")
# The metrics of fio's means, by fio's own names.
MEANS = {
    "slat": "latency_submission",
    "clat": "latency_completion",
    "lat": "latency_total",
    "bw": "thread_bandwidth",
}
# The factor that converts a number in a unit of time to µs, and one in a unit of rate to KB/s.
SCALES = {"nsec": 0.001, "usec": 1.0, "msec": 1e3, "sec": 1e6}
SCALES |= {"B/s": 1 / 1024, "KB/s": 1.0, "MB/s": 1024.0, "GB/s": 1024.0**2}
# The tests in the order in which redis-benchmark runs them.  The last one completes a round.
REDIS_TESTS = ("PING_INLINE", "PING_BULK", "SET", "GET", "LPUSH", "LPOP", "SADD")


def _get_selection_of_run(sockets: int) -> str:
    """Return the `selection` of a run's values, by the number of CPU sockets that it used.

    It is ``paper`` for both sockets of the machine, since the original shows only these runs;
    otherwise it is ``variant``.
    """
    return "paper" if sockets == 2 else "variant"


def read_randomaccess(lines: Sequence[str]) -> Readings:
    """Yield the rate (GUPS) of each run of RandomAccess, or a refusal of the run.

    lines: the lines of the log.
    A run is refused if it has no rate, a rate of 0, or no passed verification.
    The log does not name the number of sockets, which is inferred from the rate
    (`MAX_GUPS_OF_TWO_SOCKETS`).
    """
    # Logs without the authors' heading are cut at the program's own.
    for block in split_at_pattern(lines, "^Running gups", "^Main table size"):
        rate = block.find_number(r"^(\S+) Billion\(10\^9\) Updates +per second")
        if not rate:
            yield Refusal(block.first, "a run that ends without a rate")
        elif not block.has_match(r"^Found \d+ errors in \d+ locations \(passed\)"):
            yield Refusal(block.first, "a run whose verification did not pass or is missing")
        else:
            sockets = 2 if rate < MAX_GUPS_OF_TWO_SOCKETS else 1
            line = block.find_line_number("Updates +per second")
            selection = _get_selection_of_run(sockets)
            yield Value("gups", "GUPS", {"sockets": sockets}, rate, line, selection)


def read_stream(lines: Sequence[str]) -> Readings:
    """Yield the best rate (GB/s) of each kernel for each run of STREAM, or a refusal of the run.

    lines: the lines of the log.
    A run is refused if a rate, the unit or the number of threads is missing or not expected, or if
    its solution was not validated.
    """
    for block in split_at_pattern(lines, "^Running stream", "^This system uses"):
        kernels = ("Copy", "Scale", "Add", "Triad")
        # A rate that is missing counts as 0.
        rates = {kernel: block.find_number(rf"^{kernel}: +(\S+)") or 0 for kernel in kernels}
        threads = int(block.find_number(r"^Number of Threads requested = (\d+)") or 0)
        sockets = SOCKETS.get(threads)
        # How many units of the log are 1 GB/s; None if the log names no unit.
        units_per_gb = None
        if block.has_match(r"Rate \(GB/s\)"):
            units_per_gb = 1
        elif block.has_match(r"Rate \(MB/s\)"):
            units_per_gb = 1000
        missing_kernels = [kernel for kernel, rate in rates.items() if not rate]
        if missing_kernels:
            yield Refusal(block.first, f"a run without a rate of {', '.join(missing_kernels)}")
        elif not block.has_match("^Solution Validates"):
            yield Refusal(block.first, "a run whose solution did not validate")
        elif sockets is None or units_per_gb is None:
            reason = "a run that does not name its threads (32 or 16) or the unit of its rates"
            yield Refusal(block.first, reason)
        else:
            factors: Factors = {"sockets": sockets}
            selection = _get_selection_of_run(sockets)
            for kernel, rate in rates.items():
                line = block.find_line_number(f"^{kernel}: ")
                yield Value(kernel.lower(), "GB/s", factors, rate / units_per_gb, line, selection)


class LinpackStart(NamedTuple):
    """One start of Linpack in a log, with the trials that passed.

    number: the number of the start in the log, from 1.
    is_tuned: whether its machine saw the topology of the host's CPUs.
    sockets: the number of CPU sockets that it ran on.
    is_complete: whether the original may show its mean: it ran on both sockets to its end, and all
    of at least `TRIALS` trials passed.
    trials: the order of the matrix, the GFLOPS and the line of each trial that passed.
    """

    number: int
    is_tuned: bool
    sockets: int
    is_complete: bool
    trials: list[tuple[str, float, int]]


def read_linpack(lines: Sequence[str], name: str) -> Readings:
    """Yield the rate (GFLOPS) of each trial that passed, and a refusal for each problem of a start.

    lines: the lines of the log.
    name: the name of the log.  vm.log holds the starts of two virtual machines.  The tuned one,
    which sees the topology of the host's CPUs, is the environment ``vm-tuned``.
    The original shows the last complete start of each machine: only its values have the selection
    ``paper``.  All others have the factor `run`, such as "vm.log:2", so that each start is a
    series.
    """
    starts = []
    for number, block in enumerate(_find_linpack_starts(lines), 1):
        start, problems = _read_linpack_start(number, block)
        for problem in problems:
            yield Refusal(block.first, problem)
        if start is not None:
            starts.append(start)
    # Whether the machine is tuned → the number of the start that the original shows.  A later start
    # replaces the earlier ones of its machine.
    paper_starts = {start.is_tuned: start.number for start in starts if start.is_complete}
    for start in starts:
        factors: Factors = {"sockets": start.sockets}
        if paper_starts.get(start.is_tuned) == start.number:
            selection = "paper"
        else:
            selection = "superseded" if start.sockets == 2 else "variant"
            factors["run"] = f"{name}:{start.number}"
        environment = "vm-tuned" if start.is_tuned and name == "vm.log" else ""
        for order, rate, line in start.trials:
            trial = {"order": order, **factors}
            yield Value("gflops", "GFLOPS", trial, rate, line, selection, environment)


def _find_linpack_starts(lines: Sequence[str]) -> list[Block]:
    """Return a block for each start of Linpack in a log.

    A start begins with the heading of the authors or, if that is missing, with that of Linpack.
    """
    start_indices = []
    # Whether the next heading of Linpack belongs to a heading of the authors.
    has_authors_heading = False
    for index, line in enumerate(lines):
        if line.startswith("Running linpack"):
            start_indices.append(index)
            has_authors_heading = True
        elif line.startswith("This is a SAMPLE run script"):
            if not has_authors_heading:
                start_indices.append(index)
            has_authors_heading = False
    return split_at_starts(lines, start_indices)


def _read_linpack_start(number: int, block: Block) -> tuple[LinpackStart | None, list[str]]:
    """Return a start of Linpack, and a phrase for each problem with it.

    number: the number of the start in the log, from 1.
    block: the lines of the start.
    Returns None in place of the start if no part of it can be used.
    """
    rows = _read_linpack_rows(block)
    passed_trials = rows.passed_trials
    planned_count = int(block.find_number(r"^Number of trials to run *: *(\d+)") or 0)
    sockets = SOCKETS.get(int(block.find_number(r"^Number of threads: *(\d+)") or 0))
    if not rows.trial_count:
        return None, ["a block that ended before its first trial"]
    if sockets is None:
        return None, ["a block that does not name its threads (32 or 16)"]
    problems = []
    if len(passed_trials) < rows.trial_count:
        problems.append("a trial whose residual did not pass")
    if rows.trial_count != planned_count or not rows.has_summary:
        addition = "" if rows.has_summary else ", and no summary"
        problems.append(
            f"a block that was cut off: {rows.trial_count} of {planned_count} trials{addition}"
        )
    has_all_trials = len(passed_trials) == planned_count and len(passed_trials) >= TRIALS
    is_complete = has_all_trials and rows.has_summary and sockets == 2
    # Linpack prints fewer CPUs than cores if the machine sees the topology.  Without it each
    # hardware thread looks like a core.
    cpus = block.find_number(r"^Number of CPUs: *(\d+)") or 0
    cores = block.find_number(r"^Number of cores: *(\d+)") or 0
    return LinpackStart(number, cpus < cores, sockets, is_complete, passed_trials), problems


class LinpackRows(NamedTuple):
    """The rows of numbers that one start of Linpack printed.

    trial_count: the number of trials, passed or not.
    has_summary: whether the summary at the end was printed.
    passed_trials: the order of the matrix, the GFLOPS and the line of each trial that passed.
    """

    trial_count: int
    has_summary: bool
    passed_trials: list[tuple[str, float, int]]


def _read_linpack_rows(block: Block) -> LinpackRows:
    """Return the trials of one start of Linpack, and whether it printed a summary.

    block: the lines of the start.
    A row begins with at least four numbers, none of which is 0.
    """
    trial_count = 0
    has_summary = False
    passed_trials = []
    for line_number, line in enumerate(block.lines, block.first):
        cells = line.split()
        if len(cells) < 4 or not all(parse_number(cell) for cell in cells[:4]):
            continue
        # A row of 5 columns belongs to the summary at the end.
        if len(cells) == 5:
            has_summary = True
        # A row of 8 columns is a trial: order of the matrix, LDA, alignment, time, GFLOPS,
        # residual, normalised residual, and check.
        elif len(cells) == 8:
            trial_count += 1
            rate = parse_number(cells[4])
            if cells[7] == "pass" and rate:
                passed_trials.append((cells[0], rate, line_number))
    return LinpackRows(trial_count, has_summary, passed_trials)


def read_fio(lines: Sequence[str]) -> Readings:
    """Yield fio's IOPS, bandwidths (KB/s) and latencies (µs), by job and direction.

    lines: the lines of fio's output.
    Latencies are means and percentiles.  For a job that reads and writes, the direction ``both``
    has the sums of IOPS and of bandwidths.
    Yields a refusal for each job with an error, and for an output without fio's summary.
    """
    summary_start = None
    for index, line in enumerate(lines):
        if line.startswith("Run status group"):
            summary_start = index
            break
    else:
        yield Refusal(len(lines), "the output ends before fio's summary")
    # Jobs that ended before the output was cut off can be used.
    for block in split_at_pattern(lines[:summary_start], r"^[^ ].*: \(groupid=\d+, jobs=\d+\):"):
        yield from _read_fio_job(block)


def _read_fio_job(block: Block) -> Readings:
    """Yield the values of one job of fio, or a refusal of the job.

    block: the lines of the job; the first has its name and its error.
    Values of `HIDDEN_JOBS` have the selection ``variant``.
    """
    job = block.lines[0].split(":")[0]
    starts = [
        index for index, line in enumerate(block.lines) if re.match(r" *(read|write) *: +io=", line)
    ]
    if not re.search(r"err= *0:", block.lines[0]) or not starts:
        reason = f"the job {job} ended with an error, or has neither reads nor writes"
        yield Refusal(block.first, reason)
        return
    readings: list[Value | Refusal] = []
    for section in split_at_starts(block.lines, starts, block.first):
        readings += _read_fio_direction(job, section)
    values = [reading for reading in readings if isinstance(reading, Value)]
    for metric in ("iops", "bandwidth"):
        directions = [value for value in values if value.metric == metric]
        if len(directions) == 2:
            # The sum is listed under the line of the first direction.
            total = sum(value.value for value in directions)
            factors: Factors = {"job": job, "direction": "both"}
            readings.append(directions[0]._replace(factors=factors, value=total))
    for reading in readings:
        if isinstance(reading, Value) and job in HIDDEN_JOBS:
            reading = reading._replace(selection="variant")
        yield reading


def _read_fio_direction(job: str, section: Block) -> Readings:
    """Yield the values of the reads, or of the writes, of one job of fio.

    job: the name of the job.
    section: the lines of the direction; the first has its name, bandwidth and IOPS.
    Units are IOPS, KB/s and µs.  Other units of the log are converted by `SCALES`, and a mean in a
    unit that is not in it is left out.
    """
    direction = section.lines[0].split()[0].rstrip(":")
    factors: Factors = {"job": job, "direction": direction}
    head = re.search(r"bw=([\d.]+)([KMG]?B/s), +iops=([\d.]+)(K?)", section.lines[0])
    if head is None:
        yield Refusal(section.first, f"{job}, {direction}: no bandwidth and operations can be read")
        return
    rate, rate_unit, iops, iops_prefix = head.groups()
    yield Value("iops", "IOPS", factors, _apply_prefix(iops, iops_prefix), section.first)
    yield Value("bandwidth", "KB/s", factors, float(rate) * SCALES[rate_unit], section.first)
    # Set after the heading of percentiles, whose lines are the last ones with such columns.
    percentile_scale = None
    for line_number, line in enumerate(section.lines, section.first):
        mean = re.match(r" *(slat|clat|lat|bw) *\(([^)]+)\) *: *min=.*avg= *([\d.]+)(K?)", line)
        if mean and mean[2] in SCALES:
            name, log_unit, average, average_prefix = mean.groups()
            value = _apply_prefix(average, average_prefix) * SCALES[log_unit]
            unit = "KB/s" if name == "bw" else "us"
            yield Value(MEANS[name], unit, factors, value, line_number)
        elif heading := re.match(r" *clat percentiles \((\w+)\)", line):
            percentile_scale = SCALES.get(heading[1])
        elif percentile_scale is not None:
            for percentile, latency in re.findall(r"([\d.]+)th=\[ *(\d+)\]", line):
                value = float(latency) * percentile_scale
                percentile_factors = {**factors, "percentile": percentile}
                yield Value("latency_percentile", "us", percentile_factors, value, line_number)


def _apply_prefix(digits: str, prefix: str) -> float:
    """Return a number of fio's output; the prefix is "K" for thousands or empty."""
    return float(digits) * (1000 if prefix else 1)


class RedisRound(NamedTuple):
    """The tests of redis-benchmark in one run with one number of connections.

    run: number of the run.
    first: number of the round's first line in the file.
    tests: name, rate (requests/s) and line of each complete test.
    """

    run: int
    connections: int
    first: int
    tests: list[tuple[str, float, int]]


def read_redis(lines: Sequence[str]) -> Readings:
    """Yield the throughput (requests/s) and latency (ms) of each test, in the order of the runs.

    lines: the lines of a file with the outputs of redis-benchmark.
    The latency is computed, by Little's law: the number of connections over the rate.
    Yields a refusal for each missing result.  A last run that was cut off is left out, with one
    refusal.
    """
    rounds = []
    for block in split_at_pattern(lines, r"^\[DBG\] Run #\d+: Connections \d+"):
        # The first line of the block has both numbers.
        run = int(block.find_number(r"Run #(\d+)") or 0)
        connections = int(block.find_number(r"Connections (\d+)") or 0)
        tests = list(_read_redis_tests(block, connections))
        rounds.append(RedisRound(run, connections, block.first, tests))
    if not rounds:
        return
    last_run_number = rounds[-1].run
    last_run = [redis_round for redis_round in rounds if redis_round.run == last_run_number]
    earlier_runs = [redis_round for redis_round in rounds if redis_round.run != last_run_number]
    if _is_last_run_cut_off(last_run, earlier_runs):
        numbers = [redis_round.connections for redis_round in last_run]
        yield Refusal(
            last_run[0].first,
            f"run {last_run_number} was cut off after {min(numbers)} to {max(numbers)} "
            "connections; it is not used",
        )
        rounds = earlier_runs
    for redis_round in rounds:
        connections = redis_round.connections
        complete_tests = {test for test, _, _ in redis_round.tests}
        for test in sorted({*REDIS_TESTS} - complete_tests):
            yield Refusal(
                redis_round.first,
                f"run {redis_round.run}, {connections} connections: the result of {test} is lost "
                "or not complete",
            )
        for test, rate, line in redis_round.tests:
            factors: Factors = {"test": test, "connections": connections}
            # The figures show this test alone.
            selection = "paper" if test == "SET" else "variant"
            yield Value("throughput", "requests/s", factors, rate, line, selection)
            yield Value("latency", "ms", factors, 1000 * connections / rate, line, selection)


def _is_last_run_cut_off(
    last_run: Sequence[RedisRound], earlier_runs: Sequence[RedisRound]
) -> bool:
    """Return whether the last run of redis-benchmark was cut off.

    last_run: the rounds of the last run; not empty.
    earlier_runs: the rounds of all other runs.
    The run was cut off if its last test is missing, or if a number of connections is missing that
    earlier runs have.  A single run never counts as cut off, since nothing shows the numbers that
    it should have.
    """
    if not earlier_runs:
        return False
    has_last_test = REDIS_TESTS[-1] in {test for test, _, _ in last_run[-1].tests}
    connections_of_last_run = {redis_round.connections for redis_round in last_run}
    expected_connections = {redis_round.connections for redis_round in earlier_runs}
    return not has_last_test or not expected_connections <= connections_of_last_run


def _read_redis_tests(block: Block, connections: int) -> Iterator[tuple[str, float, int]]:
    """Yield the name, rate (requests/s) and line of each complete test in a round.

    Only tests of `REDIS_TESTS` are read.
    connections: the number of connections of the round; a test with another number of clients is
    left out.
    """
    starts = [
        index for index, line in enumerate(block.lines) if re.search("====== .* ======$", line)
    ]
    for section in split_at_starts(block.lines, starts, block.first):
        # Other output may stand before the heading on its line.
        test = re.sub(r"^.*====== (.*) ======$", r"\1", section.lines[0])
        rate = section.find_number(r"^(\S+) requests per second")
        clients = section.find_number(r"^ *(\d+) parallel clients")
        if test in REDIS_TESTS and rate and clients == connections:
            yield test, rate, section.find_line_number("requests per second")

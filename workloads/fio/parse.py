"""fio: bandwidth, or operations a second of small blocks, and latency of operations or fsyncs."""

import math
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from kit.checks import (
    get_number,
    require,
    require_close,
    require_duration,
    require_equal,
    require_parameters,
)
from kit.logs import Object, Point, Value, build_value, decode_object, read_objects

# The options that job.sh gives fio: operation, block size in bytes, queue depth, threads.  Both
# files must agree.
JOBS = {
    "sequential-fill": ("write", 1048576, 16, 1),
    "seq-read-1": ("read", 1048576, 1, 1),
    "seq-read-2": ("read", 1048576, 2, 1),
    "random-write-16": ("randwrite", 4096, 16, 1),
    "random-write-16x8": ("randwrite", 4096, 16, 8),
    "random-read-16": ("randread", 4096, 16, 1),
    "random-read-16x8": ("randread", 4096, 16, 8),
    "mixed-random-rw-32x8": ("randrw", 4096, 32, 8),
    "fsync": ("write", 4096, 1, 1),
}
# In bytes: a job with such blocks has a rate of operations, any other one a bandwidth.
SMALL_BLOCK_BYTES = 4096
# How jobs reach the file: past the page cache, but for one that writes through it and then syncs.
ENGINE = {"ioengine": "libaio", "direct": 1}
FSYNC_ENGINE = {"ioengine": "psync", "direct": 0, "fsync": 1}
# The share of reads in the mixed job.
READ_SHARE = 0.70
# The percentiles that fio prints, in hundredths of a percent.
PERCENTILES = [100, 500, *range(1000, 9001, 1000), 9500, 9900, 9950, 9990, 9995, 9999]
# In ns: latencies of this length or longer all fall into the last bin of fio's distribution.
MAX_LATENCY_NS = 2**34
# The least number of operations beyond a percentile: with fewer it is little more than the longest
# or the shortest latency.
MIN_OPERATIONS_BEYOND = 3


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the values of a log; see :func:`parse_jobs`, which gets the file of this workload."""
    return parse_jobs(lines, parameters, "/data/fio.bin")


def parse_jobs(lines: list[str], parameters: Object, file: str) -> list[Value]:
    """Return rates (IOPS or MB/s) and latencies (µs) by `job` and `direction`.

    file: the path of the file that the jobs must have used.
    Percentiles of the latency also have the factor `percentile`, a string such as "99.00".
    The job `fsync` has the rate, and the 99th percentile of its fsyncs instead of latencies.
    workload.yaml declares the metrics, and selects values for its figures by these factors.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    jobs = parameters["jobs"]
    log = read_objects(lines, f" layout( point end){{{len(jobs)}}}")
    [layout] = log.objects["layout"]
    require(layout["tool"].startswith("fio-"), "this is not a log of fio")
    require_equal("the file", layout["layout"], file)
    require_parameters(layout, parameters, "bytes")
    require_equal("the jobs", [point.head["point"] for point in log.points], jobs)
    values = []
    for point in log.points:
        values += read_job(point, layout, parameters)
    return values


def read_job(point: Point, layout: Object, parameters: Object) -> list[Value]:
    """Check the options and counts of one job, and return its values (:func:`parse_jobs`).

    point: the point of the job, whose lines hold fio's JSON.
    layout: the object of layout.sh that names fio's version and the file.
    parameters: the cell's parameters.
    Raises BrokenLogError if fio reports an error or other options, or if counts do not agree.
    """
    name = point.head["point"]
    operation, block_bytes, _, threads = JOBS[name]
    require_parameters(point.head, parameters, "bytes", "seconds", "ramp_seconds")
    output = decode_fio_output(point.lines, name)
    [group] = output["jobs"]
    require_equal(f"{name}: the version", output["fio version"], layout["tool"])
    require_equal(f"{name}: the error", group["error"], 0)
    options = output.get("global options", {}) | group["job options"]
    check_options(name, options, layout, parameters)
    kind = operation.removeprefix("rand")
    directions = ["read", "write"] if kind == "rw" else [kind]
    for idle in {"read", "write", "trim"} - {*directions}:
        require_equal(f"{name}: the number of {idle}s", group[idle]["total_ios"], 0)
    results = {direction: group[direction] for direction in directions}
    for direction, result in results.items():
        seconds = parameters["seconds"]
        check_direction(f"{name}, {direction}", result, block_bytes, threads, seconds)
    if kind == "rw":
        reads = group["read"]["io_bytes"] / block_bytes
        check_mix(name, reads, group["write"]["io_bytes"] / block_bytes)
    factors = {"job": name, "direction": "both" if kind == "rw" else kind}
    values = [compute_rate(list(results.values()), block_bytes, factors)]
    if name == "fsync":
        fsync_latencies, write_latencies = group["sync"]["lat_ns"], group["write"]["clat_ns"]
        return values + list_fsync_latencies(fsync_latencies, write_latencies, factors)
    for direction, result in results.items():
        values += list_latencies(result["clat_ns"], name, direction)
    return values


def decode_fio_output(lines: list[str], name: str) -> Object:
    """Return the JSON object that fio printed between the lines of a point.

    lines: the lines of the point; text before the first "{" and after the last "}", such as
    warnings, is ignored.
    name: the job's name, for the message.
    Raises BrokenLogError if the lines do not hold a complete JSON object.
    """
    text = "\n".join(lines)
    json_text = text[text.find("{") : text.rfind("}") + 1]
    return decode_object(json_text, f"{name}: fio's output")


def check_options(name: str, options: Object, layout: Object, parameters: Object) -> None:
    """Raise BrokenLogError unless fio ran a job with the options of `JOBS` and the parameters.

    name: a key of `JOBS`.
    options: the options that fio itself reports, strings by their names; job.sh sets them.  Options
    that this function does not name are not checked.
    layout: the object of layout.sh, whose key "layout" is the path of the file.
    parameters: the cell's parameters.
    """
    operation, block_bytes, depth, threads = JOBS[name]
    expected_options = {
        "name": name,
        "rw": operation,
        "bs": block_bytes,
        "iodepth": depth,
        "numjobs": threads,
        "filename": layout["layout"],
        "size": parameters["bytes"],
        "runtime": f"{1000 * parameters['seconds']:.0f}ms",
        "ramp_time": f"{1000 * parameters['ramp_seconds']:.0f}ms",
        **(FSYNC_ENGINE if name == "fsync" else ENGINE),
    }
    for key, expected in expected_options.items():
        require_equal(f"{name}: the option {key}", options.get(key), str(expected))


def check_direction(
    name: str, result: Object, block_bytes: int, threads: int, seconds: float
) -> None:
    """Raise BrokenLogError unless the counts of a job in one direction agree with each other.

    name: job and direction, for messages, for example "mixed-random-rw-32x8, read".
    result: fio's object of the direction.
    block_bytes: size of an operation.
    threads: number of the job's threads.
    seconds: the time that the job should run, without the ramp.
    """
    require_equal(f"{name}: incomplete operations", result["short_ios"], 0)
    require_equal(f"{name}: dropped operations", result["drop_ios"], 0)
    longest = get_number(result["clat_ns"], "max")
    require(longest < MAX_LATENCY_NS, f"{name}: a latency is longer than fio's distribution holds")
    milliseconds = get_number(result, "runtime")
    total_bytes = get_number(result, "io_bytes")
    require_duration(f"{name}: it ran for", milliseconds / 1000, seconds)
    rate = get_number(result, "bw_bytes")
    require_close(f"{name}: rate × time", rate * milliseconds, 1000 * total_bytes)
    # At the end of the ramp each thread may have an operation in flight.  fio counts its bytes, but
    # not its latency.
    difference = abs(total_bytes / block_bytes - get_number(result["clat_ns"], "N"))
    require(difference <= threads, f"{name}: the bytes are not those of the operations")


def check_mix(name: str, reads: float, writes: float) -> None:
    """Raise BrokenLogError unless the share of reads in the mixed job is near `READ_SHARE`.

    name: the job's name, for the message.
    reads, writes: numbers of operations, at least one of which is above 0.
    The direction of each operation is drawn independently, so that the share varies if operations
    are few.
    """
    share = reads / (reads + writes)
    # Two percentage points are accepted in any case.  The second term is four standard deviations
    # of a share of one half, which varies most.
    tolerance = 0.02 + 2 / math.sqrt(reads + writes)
    require(abs(share - READ_SHARE) <= tolerance, f"{name}: {100 * share:.1f} % were reads")


def compute_rate(results: list[Object], block_bytes: int, factors: Object) -> Value:
    """Return the rate of operations of a job with small blocks, or the bandwidth of another job.

    results: fio's objects of the job's directions; only a job with small blocks may have two.
    block_bytes: size of an operation.
    factors: the factors of the value.
    An operation counts if it completes after the ramp.  fio's own `total_ios` and `iops` are not
    used, since they count operations that were issued after the ramp.
    """
    if block_bytes == SMALL_BLOCK_BYTES:
        # fio prints the runtime in milliseconds.
        rates = [
            1000 * (result["io_bytes"] / block_bytes) / result["runtime"] for result in results
        ]
        return build_value("iops", "IOPS", sum(rates), **factors)
    [result] = results
    # Bytes per millisecond are thousandths of a MB/s.
    megabytes_per_second = result["io_bytes"] / result["runtime"] / 1000
    return build_value("bandwidth", "MB/s", megabytes_per_second, **factors)


def list_latencies(latencies: Object, job: str, direction: str) -> list[Value]:
    """Return the mean and the percentiles of the completion latency in one direction, in µs.

    latencies: fio's object of completion latencies, in ns.
    job, direction: the factors of all values.
    A percentile with fewer than `MIN_OPERATIONS_BEYOND` operations beyond it is left out.
    """
    factors = {"job": job, "direction": direction}
    values = [build_value("latency", "us", get_number(latencies, "mean") / 1000, **factors)]
    for hundredths, nanoseconds in iterate_percentiles(latencies):
        name = f"{hundredths / 100:.2f}"
        values.append(
            build_value("latency_percentile", "us", nanoseconds / 1000, **factors, percentile=name)
        )
    return values


def list_fsync_latencies(fsyncs: Object, writes: Object, factors: Object) -> list[Value]:
    """Return the 99th percentile of the latency of fsync (ms), or no value if fsyncs are too few.

    fsyncs: fio's object of the latencies of fsyncs, in ns.
    writes: fio's object of the latencies of writes, in ns.
    factors: the factors of the value.
    Raises BrokenLogError unless each write was followed by an fsync.
    """
    # One operation may be in flight at the beginning and at the end of the measured time.
    is_paired = abs(get_number(fsyncs, "N") - get_number(writes, "N")) <= 1
    require(is_paired, f"{fsyncs['N']} fsyncs do not follow {writes['N']} writes")
    require(
        get_number(fsyncs, "max") < MAX_LATENCY_NS,
        "an fsync is longer than fio's distribution holds",
    )
    p99 = dict(iterate_percentiles(fsyncs)).get(9900)
    return [] if p99 is None else [build_value("p99", "ms", p99 / 1e6, **factors)]


def iterate_percentiles(latencies: Object) -> Iterator[tuple[int, int]]:
    """Yield each percentile of a distribution, in hundredths of a percent, with its latency in ns.

    latencies: fio's object, whose key "bins" has the count of each bin by its middle, in ns.
    The latency is the middle of the bin with the nearest rank; if a rank is a whole number, fio
    itself may take the next bin.  A percentile with fewer than `MIN_OPERATIONS_BEYOND` operations
    beyond it is left out.
    Raises BrokenLogError if the counts do not add up, or if fio printed other percentiles.
    """
    bins = sorted((int(middle), count) for middle, count in latencies["bins"].items())
    cumulative = list(accumulate(count for _, count in bins))
    operations = cumulative[-1]
    require_equal("the operations in the bins", operations, latencies["N"])
    printed_percentiles = [round(100 * float(name)) for name in latencies["percentile"]]
    require_equal("the percentiles", printed_percentiles, PERCENTILES)
    for hundredths in PERCENTILES:
        # The share of operations on the shorter side of the percentile, in hundredths of a percent.
        share_beyond = min(hundredths, 10000 - hundredths)
        if operations * share_beyond < 10000 * MIN_OPERATIONS_BEYOND:
            continue
        rank = math.ceil(hundredths * operations / 10000)
        middle, _ = bins[bisect_left(cumulative, rank)]
        yield hundredths, middle

"""fio: bandwidth of the sequential jobs, operations a second of the random ones, and the completion latency of all."""

import math
from bisect import bisect_left
from itertools import accumulate

from kit.checks import (
    number,
    require,
    require_close,
    require_duration,
    require_equal,
    require_parameters,
)
from kit.logs import Object, Point, Value, decoded, read, value

# What job.sh gives fio: operation, bytes of a block, depth, threads.
JOBS = {
    "sequential-fill": ("write", 1048576, 16, 1),
    "seq-read-1": ("read", 1048576, 1, 1),
    "seq-read-2": ("read", 1048576, 2, 1),
    "random-write-16": ("randwrite", 4096, 16, 1),
    "random-write-16x8": ("randwrite", 4096, 16, 8),
    "random-read-16": ("randread", 4096, 16, 1),
    "random-read-16x8": ("randread", 4096, 16, 8),
    "mixed-random-rw-32x8": ("randrw", 4096, 32, 8),
}
# Share of the reads in the mixed job.
READS = 0.70
# The percentiles that are asked for, in hundredths of a percent.
PERCENTILES = [100, 500, *range(1000, 9001, 1000), 9500, 9900, 9950, 9990, 9995, 9999]
# ns: from here on latencies fall into the last bin of fio's distribution, however long they are.
LONGEST = 2**34
# Operations that must lie beyond a percentile: with fewer it is little more than the longest one.
BEYOND = 3


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """The values of all jobs, by `job` and `direction`, and of the latency's distribution by `percentile`."""
    jobs = parameters["jobs"]
    log = read(lines, f" layout( point end){{{len(jobs)}}}")
    [layout], points = log.objects["layout"], log.points
    require(layout["tool"].startswith("fio-"), "this is not a log of fio")
    require_parameters(layout, parameters, "bytes")
    require_equal("the jobs", [each.head["point"] for each in points], jobs)
    return [found for each in points for found in measured(each, layout, parameters)]


def measured(point: Point, layout: Object, parameters: Object) -> list[Value]:
    """The values of one job."""
    name = point.head["point"]
    rw, block, _, threads = JOBS[name]
    require_parameters(point.head, parameters, "bytes", "seconds", "ramp_seconds")
    text = "\n".join(point.lines)
    output = decoded(text[text.find("{") : text.rfind("}") + 1], f"{name}: fio's output")
    [group] = output["jobs"]
    require_equal(f"{name}: the version", output["fio version"], layout["tool"])
    require_equal(f"{name}: the error", group["error"], 0)
    check_options(name, output.get("global options", {}) | group["job options"], layout, parameters)
    kind = rw.removeprefix("rand")
    directions = ["read", "write"] if kind == "rw" else [kind]
    for idle in {"read", "write", "trim"} - {*directions}:
        require_equal(f"{name}: the number of {idle}s", group[idle]["total_ios"], 0)
    sides = {each: group[each] for each in directions}
    for each, side in sides.items():
        check_side(f"{name}, {each}", side, block, threads, parameters["seconds"])
    # What counts was completed after the ramp; `total_ios` and `iops` are of what was issued after it.
    done = {each: side["io_bytes"] / block for each, side in sides.items()}
    if kind == "rw":
        # The direction of each operation is drawn by itself, so that the share varies with few of them.
        both = sum(done.values())
        share = done["read"] / both
        require(
            abs(share - READS) <= 0.02 + 2 / math.sqrt(both),
            f"{name}: {100 * share:.1f} % were reads",
        )
    at = {"job": name, "direction": "both" if kind == "rw" else kind}
    if rw.startswith("rand"):
        rate = value(
            "iops", "IOPS", sum(1000 * done[each] / sides[each]["runtime"] for each in done), **at
        )
    else:
        rate = value(
            "bandwidth", "MB/s", sides[kind]["io_bytes"] / sides[kind]["runtime"] / 1000, **at
        )
    return [
        rate,
        *(
            found
            for each, side in sides.items()
            for found in latencies(side["clat_ns"], name, each)
        ),
    ]


def check_options(name: str, ran: Object, layout: Object, parameters: Object) -> None:
    """Check that fio ran a job with the options that were asked for."""
    rw, block, depth, threads = JOBS[name]
    wanted = {"name": name, "rw": rw, "bs": block, "iodepth": depth, "numjobs": threads}
    wanted |= {
        "filename": layout["layout"],
        "size": parameters["bytes"],
        "direct": 1,
        "ioengine": "libaio",
    }
    wanted["runtime"] = f"{1000 * parameters['seconds']:.0f}ms"
    wanted["ramp_time"] = f"{1000 * parameters['ramp_seconds']:.0f}ms"
    for key, expected in wanted.items():
        require_equal(f"{name}: the option {key}", ran.get(key), str(expected))


def check_side(what: str, side: Object, block: int, threads: int, seconds: float) -> None:
    """Check what fio counted of a job in one direction."""
    require_equal(
        f"{what}: incomplete and dropped operations", (side["short_ios"], side["drop_ios"]), (0, 0)
    )
    require(
        number(side["clat_ns"], "max") < LONGEST,
        f"{what}: a latency is longer than fio's distribution holds",
    )
    milliseconds = number(side, "runtime")
    require_duration(f"{what}: it ran for", milliseconds / 1000, seconds)
    require_close(
        f"{what}: rate × time",
        number(side, "bw_bytes") * milliseconds,
        1000 * number(side, "io_bytes"),
    )
    # At the ramp's end each thread may have one operation whose bytes fio counts, and whose latency it does not.
    counted = abs(side["io_bytes"] / block - number(side["clat_ns"], "N")) <= threads
    require(counted, f"{what}: the bytes are not those of the operations")


def latencies(found: Object, job: str, direction: str) -> list[Value]:
    """The completion latency in one direction: its mean, and the percentiles beyond which enough operations lie.

    A percentile is the middle of the bin in which the nearest rank lies.  Where a rank is a whole number, fio itself
    may take the bin above.
    """
    at, mean = {"job": job, "direction": direction}, number(found, "mean")
    values = [value("latency", "us", mean / 1000, **at)]
    bins = sorted((int(middle), count) for middle, count in found["bins"].items())
    through = list(accumulate(count for _, count in bins))
    require_equal("the operations in the bins", through[-1], found["N"])
    require_equal(
        "the percentiles", [round(100 * float(name)) for name in found["percentile"]], PERCENTILES
    )
    for hundredths in PERCENTILES:
        if through[-1] * min(hundredths, 10000 - hundredths) >= 10000 * BEYOND:
            middle, _ = bins[bisect_left(through, math.ceil(hundredths * through[-1] / 10000))]
            name = f"{hundredths / 100:.2f}"
            values.append(value("latency_percentile", "us", middle / 1000, **at, percentile=name))
    return values

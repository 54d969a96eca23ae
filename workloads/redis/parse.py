"""Redis: requests per second and their latency, by command, connections and pipelining."""

import itertools
import math
import re

from kit.checks import require, require_equal, require_parameters, require_pinned
from kit.logs import Object, Point, Value, read, value

# redis-benchmark's table, and the commands in the order in which it runs them.
LATENCIES = ("avg", "min", "p50", "p95", "p99", "max")
HEADER = ",".join(
    f'"{name}"' for name in ["test", "rps", *(f"{name}_latency_ms" for name in LATENCIES)]
)
ROW = re.compile(r'"([A-Z]+)"' + r',"([0-9]+[.][0-9]+)"' * 7)
ORDER = ("set", "get", "lpush", "lpop", "sadd")


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Throughput, mean and 99th percentile of the latency of every command at every point."""
    grid = list(itertools.product(parameters["connections"], parameters["pipelines"]))
    points = read(lines, f" warmup warmed( point end){{{len(grid)}}}").points
    return [
        found
        for point, at in zip(points, grid, strict=True)
        for found in measured(point, *at, parameters)
    ]


def measured(point: Point, connections: int, pipeline: int, parameters: Object) -> list[Value]:
    """The values of one point."""
    head, commands = point.head, parameters["tests"]
    require(head["client"].startswith("redis-benchmark "), "this is not a log of redis-benchmark")
    require_parameters(
        head, {"connections": connections, "pipeline": pipeline}, "connections", "pipeline"
    )
    require_parameters(head, parameters, "data_bytes", "keyspace", "requests")
    require_pinned(head, parameters["client_cpu"])
    require_equal("the commands", head["tests"], ",".join(commands))
    tests = [name for name in ORDER if name in commands]
    # A connection sends its requests by the pipeline, the last ones too.
    requests = math.ceil(parameters["requests"] / pipeline) * pipeline
    check_server(point.lines, tests, requests)
    rows = table(point.lines)
    require_equal("the commands of the table", list(rows), [name.upper() for name in tests])
    for row in rows.values():
        check_row(row, connections * pipeline, requests)
    kinds = {"throughput": ("requests/s", "rps"), "latency": ("ms", "avg"), "p99": ("ms", "p99")}
    return [
        value(
            metric,
            unit,
            row[column],
            test=test,
            connections=connections,
            pipeline=pipeline if pipeline > 1 else None,
        )
        for metric, (unit, column) in kinds.items()
        for test, row in rows.items()
    ]


def table(lines: list[str]) -> dict[str, dict[str, float]]:
    """The rows of redis-benchmark's table, by command."""
    head, *rows = [line.rstrip() for line in lines if line.startswith('"')]
    require_equal("the header of the table", head, HEADER)
    found = {}
    for row in rows:
        cells = ROW.fullmatch(row)
        require(
            cells and cells[1] not in found,
            f"a row of the table is not complete, or there twice: {row}",
        )
        test, *numbers = cells.groups() if cells else ()
        found[test] = dict(zip(("rps", *LATENCIES), map(float, numbers), strict=True))
    return found


def check_server(lines: list[str], tests: list[str], requests: int) -> None:
    """Check that the server did all that was asked for, nothing else, and without errors."""
    calls = [line.rstrip() for line in lines if line.startswith("cmdstat_")]
    require_equal("the number of the server's counters", len(calls), len(tests))
    counted = {
        name: dict(re.findall(r"(\w+)=([^,\s]*)", line))
        for name, _, line in (one.partition(":") for one in calls)
    }
    wanted = {"calls": str(requests), "rejected_calls": "0", "failed_calls": "0"}
    for test in tests:
        # Other servers may count more.
        found = {key: counted.get(f"cmdstat_{test}", {}).get(key) for key in wanted}
        require_equal(f"what the server counted of {test}", found, wanted)
    looked_up = sum(
        int(line.split(":")[1]) for line in lines if re.match("keyspace_(hits|misses):", line)
    )
    require_equal(
        "the keys that the server looked up", looked_up, requests if "get" in tests else 0
    )


def check_row(row: dict[str, float], under_way: int, requests: int) -> None:
    """Check that rate and latency agree by Little's law: their product is the mean number of requests under way."""
    require(min(row["rps"], row["avg"], row["p99"]) > 0, "a rate or a latency is zero")
    mean = row["rps"] * row["avg"] / 1000
    # redis-benchmark takes the time in whole milliseconds, and rounds the latency to microseconds.
    most = under_way * (1.02 + 1.5 * row["rps"] / requests / 1000) + row["rps"] * 5e-7
    require(
        0.1 * under_way <= mean <= most,
        f"rate and latency do not agree with {under_way} requests under way",
    )

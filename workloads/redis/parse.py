"""Redis: requests per second and their latency, by command, connections and pipelining."""

import itertools
import math
import re

from kit.checks import require, require_equal, require_parameters, require_pinned
from kit.logs import Object, Point, Value, build_value, read_objects

# The columns of redis-benchmark's table, as its option --csv prints them.
LATENCIES = ("avg", "min", "p50", "p95", "p99", "max")
COLUMNS = ["test", "rps", *(f"{name}_latency_ms" for name in LATENCIES)]
HEADER = ",".join(f'"{name}"' for name in COLUMNS)
ROW = re.compile(r'"([A-Z]+)"' + r',"([0-9]+[.][0-9]+)"' * 7)
# The commands in the order in which redis-benchmark runs them.
ORDER = ("set", "get", "lpush", "lpop", "sadd")
# Each metric: its unit, and its column.
METRICS = {"throughput": ("requests/s", "rps"), "latency": ("ms", "avg"), "p99": ("ms", "p99")}


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return throughput, mean latency and its 99th percentile for every command at every point.

    Throughput is in requests/s, and latencies are in ms.
    The points are in the order of the parameters: by connections, then by pipelining.  point.sh
    prints them.  workload.yaml declares the metrics.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    grid = list(itertools.product(parameters["connections"], parameters["pipelines"]))
    points = read_objects(lines, f" warmup warmed( point end){{{len(grid)}}}").points
    values = []
    for point, (connections, pipeline) in zip(points, grid, strict=True):
        values += read_point(point, connections, pipeline, parameters)
    return values


def read_point(point: Point, connections: int, pipeline: int, parameters: Object) -> list[Value]:
    """Check one point, and return its values as :func:`parse` describes.

    The values are in the order of `METRICS`, then of the commands.
    point: the point, whose lines hold redis-benchmark's table and the server's counters.
    connections: number of connections.
    pipeline: number of requests that a connection sends at once; it is a factor if above 1.
    Raises BrokenLogError if the point had other settings, or client and server disagree.
    """
    head, commands = point.head, parameters["tests"]
    require(head["client"].startswith("redis-benchmark "), "this is not a log of redis-benchmark")
    require_equal("connections", head["connections"], connections)
    require_equal("pipeline", head["pipeline"], pipeline)
    require_parameters(head, parameters, "data_bytes", "keyspace", "requests")
    require_pinned(head, parameters["client_cpu"])
    require_equal("the commands", head["tests"], ",".join(commands))
    tests = [name for name in ORDER if name in commands]
    # A connection sends whole pipelines, so that the number of requests is rounded up.
    requests = math.ceil(parameters["requests"] / pipeline) * pipeline
    check_server_counters(point.lines, tests, requests)
    rows = read_table(point.lines)
    require_equal("the commands of the table", list(rows), [name.upper() for name in tests])
    for row in rows.values():
        check_table_row(row, connections * pipeline, requests)
    factors = {"connections": connections, "pipeline": pipeline if pipeline > 1 else None}
    values = []
    for metric, (unit, column) in METRICS.items():
        for test, row in rows.items():
            values.append(build_value(metric, unit, row[column], test=test, **factors))
    return values


def read_table(lines: list[str]) -> dict[str, dict[str, float]]:
    """Return the rows of redis-benchmark's table by command, each with "rps" and `LATENCIES` (ms).

    lines: the lines of a point; those that begin with a quote are the table.
    Raises BrokenLogError if the header is another one, or if a row is incomplete or occurs twice.
    """
    head, *lines_of_rows = [line.rstrip() for line in lines if line.startswith('"')]
    require_equal("the header of the table", head, HEADER)
    rows: dict[str, dict[str, float]] = {}
    for line in lines_of_rows:
        match = ROW.fullmatch(line)
        is_new_row = match and match[1] not in rows
        require(is_new_row, f"a row of the table is not complete, or there twice: {line}")
        # The condition serves mypy, which does not know that require raises.
        test, *numbers = match.groups() if match else ()
        rows[test] = dict(zip(("rps", *LATENCIES), map(float, numbers), strict=True))
    return rows


def check_server_counters(lines: list[str], tests: list[str], requests: int) -> None:
    """Raise BrokenLogError unless the server's counters show exactly the requests, and no errors.

    lines: the lines of a point; point.sh resets the counters before it, and prints them after it.
    tests: names of the commands, in lower case.
    requests: number of requests for each command.
    """
    counter_lines = [line.rstrip() for line in lines if line.startswith("cmdstat_")]
    require_equal("the number of the server's counters", len(counter_lines), len(tests))
    counters = {}
    for line in counter_lines:
        name, _, text = line.partition(":")
        counters[name] = dict(re.findall(r"(\w+)=([^,\s]*)", text))
    expected_counts = {"calls": str(requests), "rejected_calls": "0", "failed_calls": "0"}
    for test in tests:
        # Other versions of the server may have further counts.
        all_counts = counters.get(f"cmdstat_{test}", {})
        counts = {key: all_counts.get(key) for key in expected_counts}
        require_equal(f"the server's counters of {test}", counts, expected_counts)
    lookup_lines = [line for line in lines if re.match("keyspace_(hits|misses):", line)]
    lookups = sum(int(line.split(":")[1]) for line in lookup_lines)
    # Of the commands in ORDER, only "get" looks keys up.
    expected_lookups = requests if "get" in tests else 0
    require_equal("the keys that the server looked up", lookups, expected_lookups)


def check_table_row(row: dict[str, float], max_in_flight: int, requests: int) -> None:
    """Raise BrokenLogError unless the rate and the latency of a command agree by Little's law.

    By this law their product is the mean number of requests in flight.
    row: a row of :func:`read_table`.
    max_in_flight: the largest possible number of requests in flight.
    requests: number of requests of the whole test.
    """
    require(min(row["rps"], row["avg"], row["p99"]) > 0, "a rate or a latency is zero")
    mean_in_flight = row["rps"] * row["avg"] / 1000
    # redis-benchmark measures the time in whole milliseconds, and rounds latencies to microseconds:
    # 1.5 ms of the test's duration and half a microsecond of a latency are accepted, and 2 % more.
    # Far fewer requests in flight, here a tenth, show a wrong unit or an idle client.
    duration_error = 1.5 * row["rps"] / requests / 1000
    max_mean = max_in_flight * (1.02 + duration_error) + row["rps"] * 5e-7
    reason = f"rate and latency do not agree with {max_in_flight} requests under way"
    require(0.1 * max_in_flight <= mean_in_flight <= max_mean, reason)

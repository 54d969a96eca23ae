"""sysbench's OLTP transactions on MariaDB, by number of threads: rate, latency, and CPU use."""

from kit.checks import (
    get_number,
    require,
    require_close,
    require_duration,
    require_equal,
    require_parameters,
)
from kit.logs import Object, Point, Value, build_value, read_cpu_usage, read_objects

# Queries of one transaction, by kind.
QUERIES = {
    "read-only": {"read": 14, "write": 0, "other": 2},
    "read-write": {"read": 14, "write": 4, "other": 2},
}
# The largest number of restarted transactions for each completed one; sysbench restarts a
# transaction, and counts an ignored error, if another one locks its row.
MAX_IGNORED = 0.05
# The settings that the server must report; it lowers some of them if it may not open enough files.
SETTINGS = {
    "flush_log": 0,
    "max_connections": 1024,
    "table_open_cache": 1024,
    "encryption": "DISABLED",
}


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return throughput, latencies and CPU use by the factor `threads`.

    Values of the read-write test also have the factor `test`.
    The log has an observation of the host's CPUs before and after each point.  report.lua prints
    sysbench's report, and database.sh the server's settings and counts.  workload.yaml declares the
    metrics, and draws its figures by the two factors.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    grid = [(test, threads) for test in parameters["tests"] for threads in parameters["threads"]]
    order_of_point = " warmed observed point sysbench end observed accounted"
    log = read_objects(lines, f" server({order_of_point}){{{len(grid)}}} rows_left")
    check_server_and_table(log.objects["server"][0], log.objects["rows_left"][0], parameters)
    values = []
    for i, (test, threads) in enumerate(grid):
        point, name = log.points[i], f"{test}-{threads}"
        require_equal("the point", (point.head["point"], point.head["test"]), (name, test))
        expected = {**parameters, "threads": threads}
        require_parameters(point.head, expected, "threads", "rows", "seconds")
        report = read_report(point, test, parameters["seconds"])
        warmed, accounted = log.objects["warmed"][i], log.objects["accounted"][i]
        check_server_counts(warmed, accounted, name, test, report["transactions"])
        observed = log.objects["observed"][2 * i : 2 * i + 2]
        _, utilisation = read_cpu_usage(observed, report["seconds"])
        factors = {"test": None if test == "read-only" else test, "threads": threads}
        values += [
            build_value(
                "throughput", "tx/s", report["transactions"] / report["seconds"], **factors
            ),
            build_value("latency", "ms", report["sum_ms"] / report["transactions"], **factors),
            build_value("p95", "ms", report["p95_ms"], **factors),
            build_value("cpu", "%", 100 * utilisation, **factors),
        ]
    return values


def check_server_and_table(filled: Object, finished: Object, parameters: Object) -> None:
    """Raise BrokenLogError unless the server, its settings and its table are as expected.

    filled, finished: the objects that database.sh prints before and after the sweep.  The table
    must have all rows both times.
    """
    server = filled["server"]
    require("MariaDB" in server, f"the server should be MariaDB, and is {server}")
    for content, key in ((filled, "rows"), (filled, "rows_of_index"), (finished, "rows_left")):
        require_equal(key, get_number(content, key), parameters["rows"])
    require_equal(
        "rows_left_of_index", get_number(finished, "rows_left_of_index"), parameters["rows"]
    )
    require_parameters(filled, parameters, "log_bytes")
    # The server rounds the size of its buffer pool, some versions up to a multiple of 128 MiB.
    excess = get_number(filled, "buffer_bytes") - parameters["buffer_bytes"]
    require(-(2**20) < excess < 2**27, f"buffer_bytes is off by {excess:.0f}")
    is_in_memory = get_number(filled, "table_bytes") <= filled["buffer_bytes"]
    require(is_in_memory, "the buffer pool does not hold the table")
    for key, expected in SETTINGS.items():
        require_equal(key, filled[key], expected)


def read_report(point: Point, test: str, seconds: float) -> Object:
    """Check sysbench's report of a point, and return it: the object that report.lua prints.

    test: a key of `QUERIES`.  seconds: the time that the test should run.
    Raises BrokenLogError if the report shows errors, too few queries or another duration.
    """
    report: Object = point.objects[0]
    name = point.head["point"]
    errors = [line for line in point.lines if "FATAL" in line or "ERROR" in line]
    require(not errors, f"sysbench reports an error of {name}")
    count, duration = get_number(report, "transactions"), get_number(report, "seconds")
    ignored = get_number(report, "ignored", allow_zero=True)
    require_parameters(report, point.head, "threads", "seed")
    require_equal("reconnects", report["reconnects"], 0)
    most_ignored = MAX_IGNORED * count if test == "read-write" else 0
    is_good = ignored <= most_ignored
    require(is_good, f"{ignored:.0f} errors of {name} were ignored in {count:.0f} transactions")
    for kind, queries in QUERIES[test].items():
        # A transaction that is restarted has done some of its queries before.
        is_possible = queries * count <= report[kind] <= queries * (count + ignored)
        reason = f"{kind} queries of {name} are {report[kind]:.0f} in {count:.0f} transactions"
        require(is_possible, reason)
    require_duration(f"the time of {name} is", duration, seconds)
    # The mean is printed with six decimals, which are enough for this tolerance from 0.005 ms on.
    product, total = get_number(report, "mean_ms") * count, get_number(report, "sum_ms")
    require_close("mean latency × transactions", product, total, 1e-4)
    return report


def check_server_counts(
    warmed: Object, accounted: Object, name: str, test: str, transactions: float
) -> None:
    """Raise BrokenLogError unless the server's own counts of a point agree with sysbench's report.

    warmed, accounted: the objects with the server's counts after the warm-up and at the end.
    name: the name of the point.  test: a key of `QUERIES`.
    transactions: their number in sysbench's report; the server must have committed as many.
    Only the read-write test may read pages from the disk.
    """
    require_equal("the server's account", (warmed["warmed"], accounted["accounted"]), (name, name))
    require_equal("the server's commits", accounted["commits"] - warmed["commits"], transactions)
    from_disk = accounted["pages_from_disk"] - warmed["pages_from_disk"]
    is_allowed = from_disk == 0 or (from_disk > 0 and test == "read-write")
    reason = f"{from_disk} pages of {name} were read from the disk, not from the buffer pool"
    require(is_allowed, reason)

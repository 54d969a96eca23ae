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

    The throughput is in transactions/s, latencies are in ms, and CPU use is in %.
    Values of the read-write test also have the factor `test`.
    report.lua prints sysbench's report, and database.sh the server's settings and counts.
    workload.yaml declares the metrics, draws its figures by the two factors, and has Strata observe
    the host's CPUs before and after each point.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    grid = [(test, threads) for test in parameters["tests"] for threads in parameters["threads"]]
    order_of_point = " warmed observed point sysbench end observed accounted"
    log = read_objects(lines, f" server({order_of_point}){{{len(grid)}}} rows_left")
    check_server_and_table(log.objects["server"][0], log.objects["rows_left"][0], parameters)
    values = []
    for i, (test, threads) in enumerate(grid):
        point, name = log.points[i], f"{test}-{threads}"
        require_equal("the point", point.head["point"], name)
        require_equal(f"the test of {name}", point.head["test"], test)
        expected = {**parameters, "threads": threads}
        require_parameters(point.head, expected, "threads", "rows", "seconds")
        report = read_report(point, test, parameters["seconds"])
        counts_before, counts_after = log.objects["warmed"][i], log.objects["accounted"][i]
        check_server_counts(counts_before, counts_after, name, test, report["transactions"])
        # Each point has two observations of the CPUs, before and after it.
        observations = log.objects["observed"][2 * i : 2 * i + 2]
        _, utilisation = read_cpu_usage(observations, report["seconds"])
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


def check_server_and_table(server: Object, rows_left: Object, parameters: Object) -> None:
    """Raise BrokenLogError unless the server, its settings and its table are as expected.

    server: the object "server", which database.sh prints after it has filled the table.
    rows_left: the object "rows_left", which database.sh prints after the sweep.
    parameters: the cell's parameters.
    The table must have all rows both times.
    """
    version = server["server"]
    require("MariaDB" in version, f"the server should be MariaDB, and is {version}")
    for key in ("rows", "rows_of_index"):
        require_equal(key, get_number(server, key), parameters["rows"])
    for key in ("rows_left", "rows_left_of_index"):
        require_equal(key, get_number(rows_left, key), parameters["rows"])
    require_parameters(server, parameters, "log_bytes")
    # The server rounds the size of its buffer pool, some versions up to a multiple of 128 MiB.  A
    # difference of less than 1 MiB downward or 128 MiB upward is accepted.
    excess_bytes = get_number(server, "buffer_bytes") - parameters["buffer_bytes"]
    require(-(2**20) < excess_bytes < 2**27, f"buffer_bytes is off by {excess_bytes:.0f}")
    is_in_memory = get_number(server, "table_bytes") <= server["buffer_bytes"]
    require(is_in_memory, "the buffer pool does not hold the table")
    for key, expected in SETTINGS.items():
        require_equal(key, server[key], expected)


def read_report(point: Point, test: str, seconds: float) -> Object:
    """Check sysbench's report of a point, and return it: the object that report.lua prints.

    point: the point, whose only object is the report.
    test: a key of `QUERIES`.
    seconds: the time that the test should run.
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
    # Only writing transactions lock rows, so that only they may be restarted.
    max_ignored = MAX_IGNORED * count if test == "read-write" else 0
    is_accepted = ignored <= max_ignored
    require(is_accepted, f"{ignored:.0f} errors of {name} were ignored in {count:.0f} transactions")
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
    counts_before: Object, counts_after: Object, name: str, test: str, transactions: float
) -> None:
    """Raise BrokenLogError unless the server's own counts of a point agree with sysbench's report.

    counts_before: the object "warmed", with which database.sh prints the server's counts after the
    warm-up.
    counts_after: the object "accounted", with the counts at the end of the point.
    name: the name of the point, which is the first value of both objects.
    test: a key of `QUERIES`.
    transactions: their number in sysbench's report; the server must have committed as many.
    Only the read-write test may read pages from the disk.
    """
    require_equal("the point of the counts after the warm-up", counts_before["warmed"], name)
    require_equal("the point of the counts at the end", counts_after["accounted"], name)
    commits = counts_after["commits"] - counts_before["commits"]
    require_equal("the server's commits", commits, transactions)
    disk_pages = counts_after["pages_from_disk"] - counts_before["pages_from_disk"]
    # A count that decreased is a fault of the server, such as a restart.
    is_allowed = disk_pages == 0 or (disk_pages > 0 and test == "read-write")
    reason = f"{disk_pages} pages of {name} were read from the disk, not from the buffer pool"
    require(is_allowed, reason)

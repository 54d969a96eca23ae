"""pgbench's transactions on PostgreSQL, by number of clients: their rate and latency."""

import re

from kit.checks import (
    get_number,
    require,
    require_close,
    require_duration,
    require_equal,
    require_parameters,
)
from kit.logs import Object, Point, Value, build_value, read_objects

# pgbench's names of the tests.
TESTS = {"select": "<builtin: select only>", "tpcb": "<builtin: TPC-B (sort of)>"}


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the rate (transactions/s) and the mean latency (ms) by `test` and `clients`.

    database.sh prints the server's facts, a point for each pair of both, and the balances at the
    end.
    workload.yaml declares the metrics.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    grid = [(test, clients) for test in parameters["tests"] for clients in parameters["clients"]]
    log = read_objects(lines, f" server( point history end){{{len(grid)}}} accounts_left")
    [server], [accounts_left] = log.objects["server"], log.objects["accounts_left"]
    require("PostgreSQL" in server["server"], "this is not a log of PostgreSQL")
    require_parameters(server, parameters, "branches", "buffer_bytes")
    # pgbench makes 100,000 accounts for each branch.
    accounts = 100_000 * parameters["branches"]
    require_equal("accounts", get_number(server, "accounts"), accounts)
    require_equal("accounts_left", get_number(accounts_left, "accounts_left"), accounts)
    is_in_memory = get_number(server, "database_bytes") <= server["buffer_bytes"]
    require(is_in_memory, "the server's buffers do not hold the database")
    require_equal("fsync", server["fsync"], "on")
    require_equal("synchronous commit", server["commit"], "on")
    # Each transaction adds the same number to an account, a teller and a branch, so that the three
    # sums must be equal.
    balances = accounts_left["balances"]
    require_equal("the balances", balances, balances[:1] * 3)
    values = []
    for (test, clients), point in zip(grid, log.points, strict=True):
        require_equal("the point", point.head["point"], f"{test}-{clients}")
        require_parameters(point.head, {**parameters, "clients": clients}, "clients", "seconds")
        rate = read_rate(point, test)
        values.append(build_value("rate", "transactions/s", rate, test=test, clients=clients))
        # By Little's law, since each client has one transaction in flight.
        latency = 1000 * clients / rate
        values.append(build_value("latency", "ms", latency, test=test, clients=clients))
    return values


def read_rate(point: Point, test: str) -> float:
    """Check pgbench's report of a point, and return its transactions per second.

    point: the point, whose lines hold pgbench's report, and whose object "history" holds the number
    of rows that the server counted.
    test: a key of `TESTS`.
    Raises BrokenLogError if the report shows failures, another load, or another duration.
    """
    name, clients = point.head["point"], point.head["clients"]
    # Lines such as "query mode: prepared" and "latency average = 0.5 ms".
    report = dict(re.findall(r"(?m)^([a-z][a-z ]*)(?:: | = )(.*\S)", "\n".join(point.lines)))
    expected_lines = {
        "transaction type": TESTS[test],
        "query mode": "prepared",
        "number of clients": f"{clients}",
        "duration": f"{point.head['seconds']} s",
    }
    for key, text in expected_lines.items():
        require_equal(f"{name}: {key}", report[key], text)
    # Versions of pgbench before 15 print no failures: a failure ends the client, and so the point.
    failures = report.get("number of failed transactions", "0 ").split()[0]
    require_equal(f"{name}: failed transactions", failures, "0")
    transactions = float(report["number of transactions actually processed"])
    if test == "tpcb":
        require_equal(f"{name}: the server's history", point.objects[0]["history"], transactions)
    rate = float(report["tps"].split()[0])
    # pgbench's duration includes the time of the first connections, which the rate leaves out.
    connection_seconds = float(report["initial connection time"].split()[0]) / 1000
    seconds = transactions / rate + connection_seconds
    require_duration(f"{name} took", seconds, point.head["seconds"])
    printed_milliseconds = float(report["latency average"].split()[0])
    milliseconds = 1000 * clients / rate
    # pgbench prints the latency in whole microseconds, so that rounding may take 0.0005 ms.
    tolerance = 0.00051 / milliseconds + 1e-6
    require_close(f"{name}: the latency", printed_milliseconds, milliseconds, tolerance)
    return rate

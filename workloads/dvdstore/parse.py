"""The DVD shop: orders per minute, the share that was not rolled back, and response times."""

from kit.applications import (
    DURABLE_SETTINGS,
    LoadResults,
    read_log,
    require_books,
    require_growth,
    sum_events,
)
from kit.checks import get_number, require, require_equal
from kit.logs import Object, Value, build_value

# The names of the operations in the log.  "order" stands for all pages of one order, from the
# entrance to the purchase.
OPERATIONS = ["order", "login", "new", "browse", "purchase"]
# Counts of faults in the books of the databases, which must be 0.
FAULTS = dict.fromkeys(("lost", "adrift"), 0)
# Numbers in the books of the databases, each with the event of the users that adds to it.
ADDING_EVENTS = {"orders": "orders", "customers": "customers", "new_cents": "cents"}


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the values of each number of `customers`; latencies have the factor `operation`.

    workload.yaml declares the metrics.
    Raises BrokenLogError if the log is incomplete, or contradicts itself or the parameters.
    """
    threads = parameters["threads"]
    shops = len(parameters["ports"]) * int(parameters["systems"])
    log = read_log(lines, shops, OPERATIONS, ["login", "new"], len(threads))
    require_books(log, {"opcache": "on", **FAULTS, **DURABLE_SETTINGS}, ["server", "php"])
    for key, event in ADDING_EVENTS.items():
        require_growth(log, key, sum_events(log, event))
    settings = {key: parameters[f"{key}_seconds"] for key in ("ramp", "warmup", "think")}
    settings |= {key: parameters[key] for key in ("size", "data_seed", "seconds")}
    settings["sites"] = shops
    values = []
    for point, users in zip(log.points, threads, strict=True):
        point_settings = {**settings, "users": users}
        results = LoadResults(point, f"users-{users}", OPERATIONS, point_settings, "order")
        values += list_point_values(results, users)
    return values


def list_point_values(results: LoadResults, users: int) -> list[Value]:
    """Check the counts of a point, and return its values: throughput, shares and latencies.

    The throughput is in orders/min, shares are in %, and latencies in ms.

    results: the results of the point.
    users: number of customers at each shop, which is the factor `customers`.
    Raises BrokenLogError if counts of pages and orders contradict each other, or if the load
    generator was the bottleneck.
    """
    operation_counts, orders = results.counts, results.total
    # How often each event occurred; visitor.py names the events.
    events = results.totals["counted"]
    require_equal("orders", orders, events["orders"] + events["rolled_back"])
    require_equal("purchases", operation_counts["purchase"], orders)
    require_equal("searches", operation_counts["browse"], events["searches"])
    # An order counts by its last page.  For at most one order of each user, the first page is
    # before the time that counts.
    entries = operation_counts["login"] + operation_counts["new"]
    reason = f"{entries} customers came in for {orders} orders"
    require(abs(entries - orders) <= results.users, reason)
    results.require_idle_generator()
    throughput = 60 * orders / results.seconds
    committed_percent = 100 * get_number(events, "orders") / orders
    values = [
        build_value("throughput", "orders/min", throughput, customers=users),
        build_value("committed", "%", committed_percent, customers=users),
        build_value("driver_share", "%", results.driver_share, customers=users),
    ]
    # In a short run an operation may never occur, for example that of a new customer.
    operations = {name: line for name, line in results.operations.items() if line["count"] > 0}
    for metric, key in (("latency", "mean_ms"), ("p95", "p95_ms")):
        for name, line in operations.items():
            values.append(build_value(metric, "ms", line[key], operation=name, customers=users))
    return values

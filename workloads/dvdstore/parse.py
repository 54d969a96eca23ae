"""The DVD shop: orders per minute, the share that was not rolled back, and response times."""

from kit.applications import SAFE, Load, read_log, require_books, require_grown, summed
from kit.checks import number, require, require_equal
from kit.logs import Object, Value, value

# An order is the sequence of all its pages.
OPERATIONS = ["order", "login", "new", "browse", "purchase"]
# The faults that the databases count.
FAULTS = dict.fromkeys(("lost", "adrift"), 0)


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """Return the values of each number of `customers`; latencies have the factor `operation`."""
    threads = parameters["threads"]
    shops = len(parameters["ports"]) * int(parameters["systems"])
    log = read_log(lines, shops, OPERATIONS, ["login", "new"], f"{{{len(threads)}}}")
    require_books(log, {"opcache": "on", **FAULTS, **SAFE}, ["server", "php"])
    for key, event in (("orders", "orders"), ("customers", "customers"), ("new_cents", "cents")):
        require_grown(log, key, summed(log, event))
    values = []
    for point, users in zip(log.points, threads, strict=True):
        settings = {key: parameters[f"{key}_seconds"] for key in ("ramp", "warmup", "think")}
        settings |= {key: parameters[key] for key in ("size", "data_seed", "seconds")}
        wanted = {**settings, "users": users, "sites": shops}
        load = Load(point, f"users-{users}", OPERATIONS, wanted, "order")
        values += measured(load, users)
    return values


def measured(load: Load, users: int) -> list[Value]:
    """Check the counts of a point, and return its values.

    users: number of customers at each shop, the factor `customers`.
    """
    counted, counts, orders = load.totals["counted"], load.counts, load.total
    require_equal("orders", orders, counted["orders"] + counted["rolled_back"])
    pages = (counts["purchase"], counts["browse"])
    require_equal("purchases and searches", pages, (orders, counted["searches"]))
    # An order counts by its last page, and its first page may lie before the time that counts.
    entered = counts["login"] + counts["new"]
    reason = f"{entered} customers came in for {orders} orders"
    require(abs(entered - orders) <= load.users, reason)
    load.require_idle()
    # In a short run an operation may never occur, such as a new customer.
    timed = {name: line for name, line in load.operations.items() if line["count"]}
    committed = 100 * number(counted, "orders") / orders
    values = [
        value("throughput", "orders/min", 60 * orders / load.seconds, customers=users),
        value("committed", "%", committed, customers=users),
        value("driver_share", "%", load.driver_share, customers=users),
    ]
    for metric, key in (("latency", "mean_ms"), ("p95", "p95_ms")):
        for name, line in timed.items():
            values.append(value(metric, "ms", line[key], operation=name, customers=users))
    return values

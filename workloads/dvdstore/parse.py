"""The DVD shop: orders per minute, the share of them that stood, and the response times of its pages."""

from kit.applications import read_books, read_load, require_books, require_grown, require_idle
from kit.checks import number, numbers, require, require_asked, require_equal
from kit.logs import Object, Point, Value, read, value

# What a load generator reports, in this order; an order is all of its pages together.
OPERATIONS = ["order", "login", "new", "browse", "purchase"]


def parse(lines: list[str], parameters: Object) -> list[Value]:
    """The values of each number of `customers` at each shop; response times by `operation`."""
    threads = parameters["threads"]
    shops = len(parameters["ports"]) * int(parameters["systems"])
    each = f" point( operation){{{len(OPERATIONS)}}} drove end"
    log = read(lines, f"( checked){{{shops}}}( opened){{{shops}}}({each}){{{len(threads)}}}( closed){{{shops}}}")
    check_books(log.objects, parameters)
    return [
        found
        for point, users in zip(log.points, threads, strict=True)
        for found in measured(point, users, shops, parameters)
    ]


def measured(point: Point, users: int, shops: int, parameters: Object) -> list[Value]:
    """The values of one point."""
    head, seconds = point.head, parameters["seconds"]
    wanted = {"threads": users, "shops": shops, "seconds": seconds}
    wanted |= {key: parameters[f"{key}_seconds"] for key in ("ramp", "warmup", "think")}
    require_asked(head, wanted, *wanted)
    require_equal("the size", head["size"], parameters["size"])
    each, timed, drove = read_load(point, f"threads-{users}", OPERATIONS, users * shops, seconds, "order")
    rounds = timed["order"]
    require_equal("rounds", rounds, drove["orders"] + drove["rolled_back"])
    require_equal("purchases and searches", (timed["purchase"], timed["browse"]), (rounds, drove["searches"]))
    # The first page of an order may be of another time than the last one, which counts.
    entered = timed["login"] + timed["new"]
    require(abs(entered - rounds) <= users * shops, f"{entered} customers came in for {rounds} orders")
    require_idle(drove, users)
    # Of a short run perhaps nobody was new.
    done = {name: one for name, one in each.items() if one["count"]}
    return [
        value("throughput", "orders/min", 60 * rounds / seconds, customers=users),
        value("committed", "%", 100 * number(drove, "orders") / rounds, customers=users),
        value("driver_share", "%", 100 * number(drove, "share"), customers=users),
        *(value("latency", "ms", one["mean_ms"], operation=name, customers=users) for name, one in done.items()),
        *(value("p95", "ms", one["p95_ms"], operation=name, customers=users) for name, one in done.items()),
    ]


def check_books(objects: dict[str, list[Object]], parameters: Object) -> None:
    """Check the shops' books before and after the load against what the load generators did."""
    opened, closed = read_books(objects, ["login", "new"])
    require_books(opened + closed, ("torn", "lost", "adrift"), same=("size", "data_seed", "php", "opcache"))
    first = opened[0]
    require_equal("the size of the data", first["size"], parameters["size"])
    require_asked(first, parameters, "data_seed")
    require_equal("opcache", first["opcache"], "on")
    for key, of in {"new_orders": "orders", "orders": "orders", "customers": "customers", "new_cents": "cents"}.items():
        require_grown(opened, closed, key, sum(numbers(objects["drove"], f"all_{of}", zero=True)))

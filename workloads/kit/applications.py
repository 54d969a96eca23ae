"""What the parsers of the applications under load require: a load generator with time to spare, and books."""

import re
from collections.abc import Callable, Iterable

from kit.checks import Object, number, numbers, require, require_asked, require_close, require_counted, require_equal
from kit.logs import Point

# From this share of a processor on, a load generator, one process, counts as the bottleneck.
BUSIEST = 0.9
# Of an operation that is due less often in a lap no latency is reported.
LEAST = 10
# What a database has that keeps what it confirms.
SAFE = ("synchronous_commit", "fsync", "full_page_writes")
Books = list[Object]


def require_idle(drove: Object, users: int) -> None:
    """Require that no process of the load generator was busy for so much of the time that it was the bottleneck."""
    busiest = number(drove, "busiest_share")
    reason = f"one of its processes was busy for {100 * busiest:.3g} % of the time with {users} users"
    require(busiest < BUSIEST, f"the load generator is the bottleneck: {reason}")


def read_books(objects: dict[str, list[Object]], tried: Iterable[str]) -> tuple[Books, Books]:
    """The books of equal sites before and after the load; these operations were tried at each of them."""
    for kind in ("checked", "opened", "closed"):
        require_counted(objects[kind], kind, 0)
    for checked in objects["checked"]:
        require_equal("the checked operations", checked["operations"], list(tried))
    return objects["opened"], objects["closed"]


def require_books(books: Books, broken: Iterable[str], same: Iterable[str] = ()) -> None:
    """Require books of equal sites, of a database that keeps what it confirms.

    broken: keys of what breaks a rule, of which there must be none.  same: keys in which all books are equal, beside
    those of data and database.
    """
    first = books[0]
    require(re.fullmatch("[0-9a-f]{64}", first["checksum"]), "the data have no checksum")
    for book in books:
        for key in ("checksum", "server", *same):
            require_equal(f"{key} of a site", book[key], first[key])
        for key in SAFE:
            require_equal(key, book[key], "on")
        for key in broken:
            require_equal(f"what is {key} in the books", book[key], 0)


def require_grown(opened: Books, closed: Books, key: str, done: float) -> None:
    """Require that there are as many new ones of a kind in the books as the load generators were told."""
    found = sum(numbers(closed, key, zero=True)) - sum(numbers(opened, key, zero=True))
    require_equal(f"new {key} in the books", found, done)


def read_load(
    point: Point, name: str, operations: Iterable[str], users: int, seconds: float, total: str = ""
) -> tuple[dict[str, Object], dict[str, int], Object]:
    """Of a point each operation and how often it was done, and what the load generators did in all.

    They are the operations expected, whose means are their sums'; all users came; totals are those of the operations,
    or of the one that is the `total`.
    """
    *told, drove = point.objects
    require_equal("the point", (point.head["point"], drove["drove"]), (name, name))
    found = [(each["operation"], each["of"]) for each in told]
    require_equal("the operations", found, [(operation, name) for operation in operations])
    done = {each["operation"]: each for each in told}
    counts = {operation: int(number(each, "count", zero=True)) for operation, each in done.items()}
    for each in told:
        if each["count"] and "mean_ms" in each:
            require_close("mean × count", number(each, "mean_ms") * each["count"], 1000 * number(each, "sum_seconds"))
    wanted = {"total": counts[total] if total else sum(counts.values()), "came": users, "seconds": seconds}
    require_asked(drove, wanted, *wanted)
    require_close("rate × time", number(drove, "rate") * seconds, wanted["total"])
    return done, counts, drove


def off_mix(counts: dict[str, int], mix: dict[str, float], most: Callable[[float], float]) -> str:
    """In what the mix of operations differs from the published one, in per cent; "" if it does not.

    most: by how many, of so many that are expected.
    """
    for name, share in mix.items():
        expected = sum(counts.values()) * share / 100
        if abs(counts[name] - expected) > most(expected):
            return f"{counts[name]} were {name}, and not {expected:.4g} within {most(expected):.2g}"
    return ""


def frequent(done: dict[str, Object], mix: dict[str, float], due: float) -> dict[str, Object]:
    """Those operations of a point whose latency counts: the same in every lap, in which so many of all are due."""
    return {name: each for name, each in done.items() if each["count"] and mix[name] * due >= 100 * LEAST}

"""What the parsers of the applications under load require: a load generator with time to spare, and books."""

import re
from collections.abc import Iterable

from kit.checks import Object, number, require, require_asked, require_close, require_counted, require_equal

# From this share of a processor on, a load generator, one process, counts as the bottleneck.
BUSIEST = 0.9
# What a database has that keeps what it confirms.
SAFE = ("synchronous_commit", "fsync", "full_page_writes")
Books = list[Object]


def require_idle(busiest: float, users: int) -> None:
    """Require that no process of the load generator was busy for so much of the time that it was the bottleneck."""
    reason = f"one of its processes was busy for {100 * busiest:.3g} % of the time with {users} users"
    require(busiest < BUSIEST, f"the load generator is the bottleneck: {reason}")


def require_books(opened: Books, closed: Books, broken: Iterable[str], same: Iterable[str] = ()) -> None:
    """Require the books of equal sites before and after the load, of a database that keeps what it confirms.

    broken: keys of what breaks a rule, of which there must be none.  same: keys in which all books are equal, beside
    those of data and database.
    """
    first = opened[0]
    require_counted(opened, "opened", 0)
    require_counted(closed, "closed", 0)
    require(re.fullmatch("[0-9a-f]{64}", first["checksum"]), "the data have no checksum")
    for book in opened + closed:
        for key in ("checksum", "server", *same):
            require_equal(f"{key} of a site", book[key], first[key])
        for key in SAFE:
            require_equal(key, book[key], "on")
        for key in broken:
            require_equal(f"what is {key} in the books", book[key], 0)


def count_operations(operations: list[Object], names: Iterable[str], point: str) -> dict[str, int]:
    """How often each operation of a point was done; they are those expected, and their means are their sums'."""
    found = [(each["operation"], each["of"]) for each in operations]
    require_equal("the operations", found, [(name, point) for name in names])
    for each in operations:
        if number(each, "count", zero=True) and "mean_ms" in each:
            require_close("mean × count", number(each, "mean_ms") * each["count"], 1000 * number(each, "sum_seconds"))
    return {each["operation"]: int(each["count"]) for each in operations}


def require_drove(drove: Object, total: int, users: int, seconds: float) -> None:
    """Require that all users came, and that the load generators' totals are those of the operations."""
    done = {"total": total, "came": users, "seconds": seconds}
    require_asked(drove, done, *done)
    require_close("rate × time", number(drove, "rate") * seconds, total)

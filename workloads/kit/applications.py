"""How the parsers of web applications under load read a log."""

from collections.abc import Callable, Iterable

from kit.checks import (
    Object,
    number,
    numbers,
    require,
    require_asked,
    require_close,
    require_counted,
    require_equal,
)
from kit.logs import Log, Point, read

# A load generator is the bottleneck if one of its processes was busy for this share of the time.
BUSIEST = 0.9
# Operations that are due less often in a lap have no latency.
LEAST = 10
# The settings of a PostgreSQL server that keeps what it confirms.
SAFE = dict.fromkeys(("synchronous_commit", "fsync", "full_page_writes"), "on")


class Load:
    """The results of a point: `operations` by name, their `counts`, and the `totals`."""

    def __init__(
        self,
        point: Point,
        name: str,
        operations: Iterable[str],
        wanted: Object,
        total: str = "",
    ) -> None:
        """Read a point, whose head has the wanted settings, among them users, sites and seconds.

        total: the operation that is counted in all; all of them unless given.
        """
        *lines, self.totals = point.objects
        names = (point.head["point"], self.totals["drove"])
        require_equal("the point", names, (name, name))
        for key in wanted:
            require_equal(key, point.head[key], wanted[key])
        printed = [(line["operation"], line["of"]) for line in lines]
        require_equal("the operations", printed, [(operation, name) for operation in operations])
        self.operations = {line["operation"]: line for line in lines}
        self.counts = {line["operation"]: int(number(line, "count", zero=True)) for line in lines}
        for line in lines:
            if line["count"] and "mean_ms" in line:
                summed = 1000 * number(line, "sum_seconds")
                require_close("mean × count", number(line, "mean_ms") * line["count"], summed)
        self.total = self.counts[total] if total else sum(self.counts.values())
        self.users, self.seconds = wanted["users"] * wanted["sites"], wanted["seconds"]
        totals = {"total": self.total, "came": self.users, "seconds": self.seconds}
        require_asked(self.totals, totals, *totals)
        require_close("rate × time", number(self.totals, "rate") * self.seconds, self.total)
        self.driver_share = 100 * number(self.totals, "share")

    def require_idle(self) -> None:
        """Require that no process of the load generator was busy enough to be the bottleneck."""
        busiest = number(self.totals, "busiest_share")
        reason = f"one of its processes was busy for {100 * busiest:.3g} % of the time"
        users = f"with {self.users} users"
        require(busiest < BUSIEST, f"the load generator is the bottleneck: {reason} {users}")

    def off_mix(self, mix: dict[str, float], most: Callable[[float], float]) -> str:
        """How the operations differ from the published mix, in per cent; "" if they do not.

        most: the largest difference from an expected count.
        """
        for name, share in mix.items():
            due, count = sum(self.counts.values()) * share / 100, self.counts[name]
            if abs(count - due) > most(due):
                return f"{count} were {name}, and not {due:.4g} within {most(due):.2g}"
        return ""

    def frequent(self, mix: dict[str, float], cycle: float) -> dict[str, Object]:
        """The operations whose latency counts: those that are due often enough in a lap.

        cycle: mean seconds between a user's operations.  They are the same in every lap.
        """
        due = self.users * self.seconds / cycle
        often = {name for name, share in mix.items() if share * due >= 100 * LEAST}
        lines = self.operations.items()
        return {name: line for name, line in lines if name in often and line["count"]}


def read_log(
    lines: list[str],
    sites: int,
    operations: Iterable[str],
    tried: Iterable[str],
    points: str,
    observed: str = "",
    last: str = "",
) -> Log:
    """A log whose sites were tried and whose databases were read before and after the points.

    points: how many of them, as a regular expression; observed, last: keys around each point, and
    the one at the end.
    """
    each = f"{observed} point( operation){{{len(list(operations))}}} drove end{observed}"
    before = f"( checked){{{sites}}}( opened){{{sites}}}"
    log = read(lines, f"{before}({each}){points}( closed){{{sites}}}{last}")
    for kind in ("checked", "opened", "closed"):
        require_counted(log.objects[kind], kind, 0)
    for checked in log.objects["checked"]:
        require_equal("the checked operations", checked["operations"], list(tried))
    return log


def require_books(log: Log, wanted: Object, same: Iterable[str] = ()) -> None:
    """Require the wanted values of every database, such as 0 faults, and the same of others."""
    every = log.objects["opened"] + log.objects["closed"]
    for books in every:
        for key, value in {**{key: every[0][key] for key in same}, **wanted}.items():
            require_equal(f"{key} of a site", books[key], value)


def require_grown(log: Log, key: str, done: float) -> None:
    """Require that the databases have as many more of something as the users added."""
    before = sum(numbers(log.objects["opened"], key, zero=True))
    after = sum(numbers(log.objects["closed"], key, zero=True))
    require_equal(f"new {key} in the databases", after - before, done)


def summed(log: Log, event: str) -> float:
    """How often an event was counted in all points."""
    events = [{event: 0, **line["in_all"]} for line in log.objects["drove"]]
    return sum(numbers(events, event, zero=True))

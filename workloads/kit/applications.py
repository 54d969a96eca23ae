"""How the parsers of web applications under load read a log.

The client prints the operations of each point, and the books of the sites: what their databases
hold before and after the load.
"""

from collections.abc import Callable, Iterable

from kit.checks import (
    Object,
    number,
    numbers,
    require,
    require_close,
    require_equal,
    require_numbered,
    require_parameters,
)
from kit.logs import Log, Point, read

# The load generator is the bottleneck if one of its processes was busy for this share of the time.
BUSIEST = 0.9
# Operations that are expected less often in a lap have no latency.
LEAST = 10
# The settings by which a PostgreSQL server keeps the transactions that it confirms.
SAFE = dict.fromkeys(("synchronous_commit", "fsync", "full_page_writes"), "on")


class Load:
    """The results of a point.

    operations: the object of each operation, by name.  counts: how often each was done.
    total: of the counts.  totals: the object of all operations.  users: at all sites.
    seconds: of the time that counts.  driver_share: the load generator's share (%) of the client's
    processors.
    """

    def __init__(
        self,
        point: Point,
        name: str,
        operations: Iterable[str],
        wanted: Object,
        total: str = "",
    ) -> None:
        """Read a point.

        name: of the point.  operations: their names, in the order of the log.
        wanted: settings that its head must have, among them users, sites and seconds.
        total: the operation whose count is the total; unless given, the total is of all.
        Raises BrokenLogError.
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
                milliseconds = 1000 * number(line, "sum_seconds")
                product = number(line, "mean_ms") * line["count"]
                require_close("mean × count", product, milliseconds)
        self.total = self.counts[total] if total else sum(self.counts.values())
        self.users, self.seconds = wanted["users"] * wanted["sites"], wanted["seconds"]
        totals = {"total": self.total, "came": self.users, "seconds": self.seconds}
        require_parameters(self.totals, totals, *totals)
        require_close("rate × time", number(self.totals, "rate") * self.seconds, self.total)
        self.driver_share = 100 * number(self.totals, "share")

    def require_idle(self) -> None:
        """Require that no process of the load generator was busy enough to be the bottleneck."""
        busiest = number(self.totals, "busiest_share")
        reason = f"one of its processes was busy for {100 * busiest:.3g} % of the time"
        users = f"with {self.users} users"
        require(busiest < BUSIEST, f"the load generator is the bottleneck: {reason} {users}")

    def off_mix(self, mix: dict[str, float], most: Callable[[float], float]) -> str:
        """Describe how the operations differ from the published mix; "" if they do not.

        mix: of each operation its share in per cent.
        most: the largest good difference from an expected count.
        """
        done = sum(self.counts.values())
        for name, share in mix.items():
            expected, count = done * share / 100, self.counts[name]
            if abs(count - expected) > most(expected):
                return f"{count} were {name}, and not {expected:.4g} within {most(expected):.2g}"
        return ""

    def frequent(self, mix: dict[str, float], cycle: float) -> dict[str, Object]:
        """Select the operations whose latency counts: those expected often enough in a lap.

        cycle: mean seconds between a user's operations.  The selection is the same in every lap.
        """
        expected = self.users * self.seconds / cycle
        frequent = {}
        for name, line in self.operations.items():
            if line["count"] and mix.get(name, 0) * expected >= 100 * LEAST:
                frequent[name] = line
        return frequent


def read_log(
    lines: list[str],
    sites: int,
    operations: Iterable[str],
    tried: Iterable[str],
    points: str,
    observed: str = "",
    last: str = "",
) -> Log:
    """Read a log in which every site was tried, and its books were read before and after the load.

    operations: of each point.  tried: the operations that were tried at each site.
    points: how many points there are, as a regular expression.
    observed: the key around each point.  last: the key at the end.
    Raises BrokenLogError.
    """
    count = len(list(operations))
    point = f"{observed} point( operation){{{count}}} drove end{observed}"
    before = f"( checked){{{sites}}}( opened){{{sites}}}"
    log = read(lines, f"{before}({point}){points}( closed){{{sites}}}{last}")
    for kind in ("checked", "opened", "closed"):
        require_numbered(log.objects[kind], kind, 0)
    for checked in log.objects["checked"]:
        require_equal("the checked operations", checked["operations"], list(tried))
    return log


def require_books(log: Log, wanted: Object, same: Iterable[str] = ()) -> None:
    """Require the wanted values, such as 0 faults, in the books of every site.

    same: keys whose values must be alike in all books.
    """
    all_books = log.objects["opened"] + log.objects["closed"]
    expected = {**{key: all_books[0][key] for key in same}, **wanted}
    for books in all_books:
        for key, value in expected.items():
            require_equal(f"{key} of a site", books[key], value)


def require_grown(log: Log, key: str, added: float) -> None:
    """Require that the books have as many more of something as the users added."""
    before = sum(numbers(log.objects["opened"], key, zero=True))
    after = sum(numbers(log.objects["closed"], key, zero=True))
    require_equal(f"new {key} in the databases", after - before, added)


def summed(log: Log, event: str) -> float:
    """Count an event over all points."""
    events = [{event: 0, **line["in_all"]} for line in log.objects["drove"]]
    return sum(numbers(events, event, zero=True))

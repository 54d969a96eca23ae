"""Functions with which the parsers of web applications under load read and check a log.

The client (kit/load/driver.py and the visitor.py of each workload) prints the objects of the log.
The "books" of a site are an object of counts and settings of its database, which the application
prints before and after the load.
"""

from collections.abc import Callable, Iterable

from kit.checks import (
    Object,
    get_number,
    get_numbers,
    require,
    require_close,
    require_equal,
    require_numbered,
    require_parameters,
)
from kit.logs import Log, Point, read_objects

# The load generator counts as the bottleneck if one of its processes used a CPU for this share of
# the time or more.
BOTTLENECK_SHARE = 0.9
# Operations that are expected less often than this in a lap have no latency.
MIN_OPERATIONS = 10
# The settings by which a PostgreSQL server keeps the transactions that it confirms.
DURABLE_SETTINGS = dict.fromkeys(("synchronous_commit", "fsync", "full_page_writes"), "on")


class LoadResults:
    """The checked results of a point of load.

    operations: the log's object of each operation, by its name, in the order of the log.
    counts: how often each operation was done, by its name.
    total: the count of the operation that was chosen as the total, or the sum of all counts.
    totals: the driver's object of all operations together, whose first key is "drove".
    users: number of emulated users at all sites.
    seconds: duration of the measurement, without ramp and warm-up.
    driver_share: CPU usage (%) of the load generator, of all CPUs of the client.
    """

    def __init__(
        self,
        point: Point,
        name: str,
        operations: Iterable[str],
        settings: Object,
        total_operation: str = "",
    ) -> None:
        """Read and check the results of a point.

        name: the point's name, which its first and its last object must have.
        operations: names of the operations, in the order in which the driver prints them.
        settings: the values that the first object must have, among them users (of each site), sites
        and seconds.
        total_operation: name of the operation whose count is the total; "" makes the sum of all
        counts the total.
        Raises BrokenLogError if the log has other settings, names or counts.
        """
        *lines, self.totals = point.objects
        require_equal("the point", point.head["point"], name)
        require_equal("the point of the totals", self.totals["drove"], name)
        for key, value in settings.items():
            require_equal(key, point.head[key], value)
        printed = [(line["operation"], line["of"]) for line in lines]
        require_equal("the operations", printed, [(operation, name) for operation in operations])
        self.operations = {line["operation"]: line for line in lines}
        self.counts = {}
        for operation, line in self.operations.items():
            self.counts[operation] = int(get_number(line, "count", allow_zero=True))
            _check_mean_latency(line)
        self.total = self.counts[total_operation] if total_operation else sum(self.counts.values())
        self.users = settings["users"] * settings["sites"]
        self.seconds = settings["seconds"]
        totals = {"total": self.total, "came": self.users, "seconds": self.seconds}
        require_parameters(self.totals, totals, *totals)
        require_close("rate × time", get_number(self.totals, "rate") * self.seconds, self.total)
        self.driver_share = 100 * get_number(self.totals, "share")

    def require_idle_generator(self) -> None:
        """Raise BrokenLogError if a process of the load generator may have been the bottleneck.

        Each process has one thread, so that the busiest process decides, and not their mean.
        """
        busiest = get_number(self.totals, "busiest_share")
        reason = f"one of its processes was busy for {100 * busiest:.3g} % of the time"
        is_idle = busiest < BOTTLENECK_SHARE
        require(
            is_idle,
            f"the load generator is the bottleneck: {reason} with {self.users} users",
        )

    def find_mix_fault(self, mix: dict[str, float], tolerance: Callable[[float], float]) -> str:
        """Return a clause about the first operation that is too rare or too frequent; "" if none.

        For example "90 were bid, and not 120 within 12".

        mix: the published share (%) of each operation, by its name.
        tolerance: a function of an expected count that returns the largest accepted difference from
        it.
        """
        all_operations = sum(self.counts.values())
        for name, share in mix.items():
            expected, count = all_operations * share / 100, self.counts[name]
            accepted = tolerance(expected)
            if abs(count - expected) > accepted:
                return f"{count} were {name}, and not {expected:.4g} within {accepted:.2g}"
        return ""

    def select_frequent_operations(self, mix: dict[str, float], cycle: float) -> dict[str, Object]:
        """Return the objects of the operations that are expected often enough to have a latency.

        mix: the published share (%) of each operation, by its name.
        cycle: mean seconds between the operations of a user, above 0.
        Returns the log's objects by the operations' names, in the order of the log.
        The selection depends on expected counts and not on actual ones, so that all runs of a cell
        have the same values.  An operation that never occurred is left out even so, and so is an
        operation that `mix` does not have.
        """
        expected_operations = self.users * self.seconds / cycle
        frequent_operations = {}
        for name, line in self.operations.items():
            expected_count = mix.get(name, 0) / 100 * expected_operations
            if line["count"] > 0 and expected_count >= MIN_OPERATIONS:
                frequent_operations[name] = line
        return frequent_operations


def _check_mean_latency(line: Object) -> None:
    """Raise BrokenLogError unless the mean, sum and count of an operation's latency agree.

    line: the log's object of the operation; an operation that was not timed has no mean.
    """
    if line["count"] and "mean_ms" in line:
        milliseconds = 1000 * get_number(line, "sum_seconds")
        require_close("mean × count", get_number(line, "mean_ms") * line["count"], milliseconds)


def read_log(
    lines: list[str],
    sites: int,
    operations: Iterable[str],
    checked_operations: Iterable[str],
    point_count: int | None = None,
    observation_key: str = "",
    last_key: str = "",
) -> Log:
    """Read the log of a web application under load, and check the order of its objects.

    The log has, for each site, an object "checked" of a trial of its operations and an object
    "opened" of its books before the load; then the points; then an object "closed" of each site's
    books after the load.  The drivers of the workloads print these keys.

    lines: the lines of the log.
    sites: number of sites, which are numbered from 0.
    operations: names of the operations of a point, each of which has one object in each point.
    checked_operations: names of the operations that were tried at each site, in their order.
    point_count: number of points; None accepts any number of them, but at least one.
    observation_key: first key of an object before and after each point; "" if there is none.
    last_key: first key of the object after all books; "" if there is none.
    Raises BrokenLogError if the log is incomplete or in another order.
    """
    operation_count = len(list(operations))
    # The order is a regular expression for the first keys of all objects, each after a space.
    observation = f" {observation_key}" if observation_key else ""
    last_object = f" {last_key}" if last_key else ""
    quantifier = "+" if point_count is None else f"{{{point_count}}}"
    point = f"{observation} point( operation){{{operation_count}}} drove end{observation}"
    before = f"( checked){{{sites}}}( opened){{{sites}}}"
    log = read_objects(lines, f"{before}({point}){quantifier}( closed){{{sites}}}{last_object}")
    for key in ("checked", "opened", "closed"):
        require_numbered(log.objects[key], key, 0)
    for check in log.objects["checked"]:
        require_equal("the checked operations", check["operations"], list(checked_operations))
    return log


def require_books(log: Log, values: Object, same: Iterable[str] = ()) -> None:
    """Raise BrokenLogError unless the books of all sites have the given values.

    Books are an object of counts and settings of a site's database, in keys that each application
    chooses.  Each site has one before the load ("opened") and one after it ("closed").

    log: the log of :func:`read_log`.
    values: expected values by their keys, for example 0 faults.
    same: keys whose values must be equal in all books, whatever the values are.
    """
    all_books = log.objects["opened"] + log.objects["closed"]
    expected_values = {key: all_books[0][key] for key in same}
    expected_values.update(values)
    for books in all_books:
        for key, value in expected_values.items():
            require_equal(f"{key} of a site", books[key], value)


def require_growth(log: Log, key: str, expected_growth: float) -> None:
    """Raise BrokenLogError unless a number in the databases grew exactly as much as expected.

    log: the log of :func:`read_log`.
    key: the key of a number in the books (:func:`require_books`), which is summed over all sites.
    expected_growth: the rows or amounts that the load generator counted as added by its users.
    """
    sum_before = sum(get_numbers(log.objects["opened"], key, allow_zero=True))
    sum_after = sum(get_numbers(log.objects["closed"], key, allow_zero=True))
    require_equal(f"new {key} in the databases", sum_after - sum_before, expected_growth)


def sum_events(log: Log, event: str) -> float:
    """Return how often an event occurred in all points, ramps and warm-ups included.

    event: a key of the counters ``in_all``, in which an event that never occurred is missing; the
    function count_events of the workload's visitor.py chooses the keys.
    """
    counters = [{event: 0, **line["in_all"]} for line in log.objects["drove"]]
    return sum(get_numbers(counters, event, allow_zero=True))

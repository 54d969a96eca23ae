#!/usr/bin/python3 -B
"""Searches for the highest number of users that passes.

Usage: search.py search ADDRESSES PORTS KEY VALUE...

The arguments are those of `driver.py load`, with the parameters of Search: `start`, `most`,
`resolution` and `confirmations`.
"""

import collections
import time
from typing import Any

import driver
from data_set import count_auctions
from report import print_json_line

# An operation passes if 99 of 100 answers are in time.  Operations with fewer answers than this are
# judged together, under the name RARE.
ANSWERS_TO_JUDGE = 100
RARE = "the rarer operations"
# The load itself, under the name LOAD, passes if the mean delay, from the time drawn for an
# operation to its beginning, is at most this share of the mean cycle.
LARGEST_DELAY = 0.1
LOAD = "the load"
# Seconds after the load within which all bids must be decided.
DECISION_SECONDS = 60


def find_failures(
    counts: dict[str, int], late: dict[str, int], delay: float, cycle: float
) -> list[str]:
    """Return the names of operations that do not pass, among them RARE and LOAD.

    counts: the answers of each operation, by its name.
    late: how many of them came too late, for each operation with a limit.
    delay, cycle: the mean delay of operations, and the mean cycle, in seconds.
    The log has the names as `failing`: parse.py only asks whether there are any.
    """
    failures = []
    rare_count = rare_late = 0
    for name in late:
        if counts[name] < ANSWERS_TO_JUDGE:
            rare_count += counts[name]
            rare_late += late[name]
        elif ANSWERS_TO_JUDGE * late[name] > counts[name]:
            failures.append(name)
    # Nor does a probe pass without any answer.
    is_answered = any(counts[name] for name in late)
    if not is_answered or ANSWERS_TO_JUDGE * rare_late > rare_count:
        failures.append(RARE)
    if delay > LARGEST_DELAY * cycle:
        failures.append(LOAD)
    return failures


class Search:
    """A search for the highest number of users that passes: doubling, bisection, confirmation.

    It begins with `start` users, and doubles or halves them until one number has passed and one has
    failed.  Then it bisects until these two differ by at most `resolution`, a share of the highest
    pass, or by one user.  At last the highest pass must pass `confirmations` times more; if it
    fails then, that is a failure like any other.  No more than `max_users` are tried.
    """

    def __init__(self, start: int, max_users: int, resolution: float, confirmations: int) -> None:
        """Begin without outcomes.

        start, max_users: numbers of users.  resolution: a share, such as 0.1.
        confirmations: how often the highest pass must pass again.
        """
        self.start, self.max_users = start, max_users
        self.resolution, self.confirmations = resolution, confirmations
        # How often each number of users has passed; only numbers below all that failed.
        self.passes: collections.Counter[int] = collections.Counter()
        self.lowest_failure: int | None = None

    @property
    def highest_pass(self) -> int:
        """The highest number of users that passed, below all that failed; 0 if none did."""
        return max(self.passes, default=0)

    def add_outcome(self, users: int, passed: bool) -> None:
        """Record whether the sites passed with a number of users.

        A failure deletes all earlier passes with this number of users or more.
        """
        if passed:
            self.passes[users] += 1
            return
        failure = self.lowest_failure
        self.lowest_failure = users if failure is None else min(users, failure)
        for number in list(self.passes):
            if number >= users:
                del self.passes[number]

    def choose_users(self) -> int | None:
        """Return the number of users to try next; None once the search is over.

        The phases: doubling or halving, then bisection, then confirmation of the highest pass.
        """
        highest, failure = self.highest_pass, self.lowest_failure
        if highest == 0:
            if failure is None:
                return self.start
            # Where one user fails, none can pass.
            return failure // 2 if failure > 1 else None
        if failure is None and highest < self.max_users:
            return min(2 * highest, self.max_users)
        if failure is not None and failure - highest > max(1, self.resolution * highest):
            return (failure + highest) // 2
        # The first pass is not a confirmation.
        confirmed = self.passes[highest] - 1
        return highest if confirmed < self.confirmations else None


def search_most_users(*arguments: str) -> None:
    """Probe one number of users after another until the search is over, and print its result.

    arguments: the arguments of the command line.  Prints the books of the sites before and after
    all probes. check_search of parse.py repeats the search's reasoning from the printed probes.
    If bids are undecided after DECISION_SECONDS, the search still ends; parse.py refuses its log.
    """
    settings = driver.read_settings(*arguments)
    addresses, ports, *_ = arguments
    search = Search(
        settings.pop("start"),
        settings.pop("most"),
        settings.pop("resolution"),
        settings.pop("confirmations"),
    )
    cycle, seed = settings["cycle"], settings["seed"] + settings["lap"]

    def judge(counts: dict[str, int], late: dict[str, int], delay: float) -> dict[str, Any]:
        """Return the fields that say whether a probe passed, from its totals."""
        failures = find_failures(counts, late, delay, cycle)
        return {"passed": not failures, "failing": failures}

    def count_decided_bids() -> int:
        """Return how many bids the databases of all sites have."""
        return sum(driver.fetch_books(site)["bids"] for site in settings["sites"])

    driver.print_books("opened", addresses, ports)
    decided_before = count_decided_bids()
    probes = bids = 0
    generators = driver.start_generators()
    while (users := search.choose_users()) is not None:
        probes += 1
        # Each probe has draws of its own, so that a confirmation does not repeat the first pass.
        settings |= {"users": users, "seed": f"{seed:x}-{probes}-{users}"}
        settings["auctions"] = count_auctions(users)
        totals = driver.measure_point(generators, f"probe-{probes}", settings, judge)
        bids += totals["in_all"]["bids"]
        search.add_outcome(users, totals["passed"])
    deadline = time.monotonic() + DECISION_SECONDS
    while count_decided_bids() < decided_before + bids and time.monotonic() < deadline:
        time.sleep(0.1)
    driver.print_books("closed", addresses, ports)
    fails = search.lowest_failure
    print_json_line(found=search.highest_pass, fails=fails, probes=probes, bids=bids)
    print_json_line(done=True)


if __name__ == "__main__":
    driver.run_command(search=search_most_users)

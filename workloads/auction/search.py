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
from report import print_object

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

    counts, late: answers of each operation, and how many of them came too late.  delay: the mean
    delay of operations.  cycle: the mean cycle.  Both are in seconds.
    """
    rare = [name for name in late if counts[name] < ANSWERS_TO_JUDGE]
    failures = []
    for name in late:
        if name not in rare and ANSWERS_TO_JUDGE * late[name] > counts[name]:
            failures.append(name)
    rare_late, rare_count = sum(late[name] for name in rare), sum(counts[name] for name in rare)
    # Nor does a probe pass without any answer.
    answered = any(counts[name] for name in late)
    if not answered or ANSWERS_TO_JUDGE * rare_late > rare_count:
        failures.append(RARE)
    if delay > LARGEST_DELAY * cycle:
        failures.append(LOAD)
    return failures


class Search:
    """Doubles or halves from `start`, then halves between the highest pass and the lowest failure.

    The search is over once these two differ by at most `resolution` (a share of the pass), and the
    highest pass has passed `confirmations` times more.  If it fails then, that is a failure like
    any other.  No more than `most` users are tried.
    """

    def __init__(self, start: int, most: int, resolution: float, confirmations: int) -> None:
        self.start, self.most = start, most
        self.resolution, self.confirmations = resolution, confirmations
        # How often each number of users has passed, below all that failed.
        self.passes: collections.Counter[int] = collections.Counter()
        self.lowest_failure: int | None = None

    @property
    def highest_pass(self) -> int:
        """The highest number of users that passed, below all that failed; 0 if none did."""
        return max(self.passes, default=0)

    def add_outcome(self, users: int, passed: bool) -> None:
        """Record whether a number of users passed."""
        if passed:
            self.passes[users] += 1
            return
        failure = self.lowest_failure
        self.lowest_failure = users if failure is None else min(users, failure)
        for refuted in [number for number in self.passes if number >= users]:
            del self.passes[refuted]

    def next_users(self) -> int | None:
        """Return the number of users to try next; None once the search is over."""
        highest, failure = self.highest_pass, self.lowest_failure
        if highest == 0:
            return self.start if failure is None else failure // 2 or None
        if failure is None and highest < self.most:
            return min(2 * highest, self.most)
        if failure is not None and failure - highest > max(1, self.resolution * highest):
            return (failure + highest) // 2
        return highest if self.passes[highest] <= self.confirmations else None


def search(*arguments: str) -> None:
    """Probe one number of users after another until the search is over, and print its result."""
    settings = driver.read_settings(*arguments)
    keys = ("start", "most", "resolution", "confirmations")
    progress = Search(*(settings.pop(key) for key in keys))
    cycle, seed = settings["cycle"], settings["seed"] + settings["lap"]

    def judge(counts: dict[str, int], late: dict[str, int], delay: float) -> dict[str, Any]:
        failures = find_failures(counts, late, delay, cycle)
        return {"passed": not failures, "failing": failures}

    def count_decided_bids() -> int:
        return sum(driver.fetch_books(site)["bids"] for site in settings["sites"])

    driver.books("opened", *arguments[:2])
    decided_before, probes, bids = count_decided_bids(), 0, 0
    generators = driver.start_generators()
    while (users := progress.next_users()) is not None:
        probes += 1
        # Each probe has draws of its own, so that a confirmation does not repeat the first pass.
        settings |= {"users": users, "seed": f"{seed:x}-{probes}-{users}"}
        settings["auctions"] = count_auctions(users)
        totals = driver.measure_point(generators, f"probe-{probes}", settings, judge)
        bids += totals["in_all"]["bids"]
        progress.add_outcome(users, totals["passed"])
    deadline = time.monotonic() + DECISION_SECONDS
    while count_decided_bids() < decided_before + bids and time.monotonic() < deadline:
        time.sleep(0.1)
    driver.books("closed", *arguments[:2])
    fails = progress.lowest_failure
    print_object(found=progress.highest_pass, fails=fails, probes=probes, bids=bids)
    print_object(done=True)


if __name__ == "__main__":
    driver.run_command(search)

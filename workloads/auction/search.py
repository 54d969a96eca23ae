#!/usr/bin/python3 -B
"""The search for the highest number of users that passes.

Usage: search.py search ADDRESSES PORTS KEY VALUE...      (as driver.py load, with the parameters
of Search: `start`, `most`, `resolution`, `confirmations`)
"""

import collections
import time
from typing import Any

import driver
from data_set import open_auctions
from report import report

# An operation passes if 99 % of its answers are in time.  Those with fewer than 100 answers are
# judged together.
HUNDRED = 100
RARE = "the rarer operations"
# The load itself passes if operations begin on average at most this share of a mean cycle after
# the time drawn for them.
LATEST = 0.1
LOAD = "the load"
# Seconds within which placed bids are decided after the load.
SETTLED = 60


def failing(counts: dict[str, int], late: dict[str, int], delay: float, cycle: float) -> list[str]:
    """The operations that do not pass, the rarer ones as one, and the load if it comes late.

    counts, late: answers of each operation, and those that came too late.  delay, cycle: mean
    seconds.
    """
    rare = [name for name in late if counts[name] < HUNDRED]
    slow = [n for n in late if n not in rare and HUNDRED * late[n] > counts[n]]
    # Nor does a probe without any answer pass.
    answers = any(counts[name] for name in late)
    if not answers or HUNDRED * sum(late[n] for n in rare) > sum(counts[n] for n in rare):
        slow.append(RARE)
    return slow + ([LOAD] if delay > LATEST * cycle else [])


class Search:
    """Doubles or halves from `start`, then halves between the highest pass and the lowest failure.

    It ends once these differ by at most `resolution` (a share of the pass), and the highest pass
    has passed `confirmations` times more.  If it then fails, it is a failure like any other.
    """

    def __init__(self, start: int, most: int, resolution: float, confirmations: int) -> None:
        self.start, self.most = start, most
        self.resolution, self.confirmations = resolution, confirmations
        self.passes: collections.Counter[int] = collections.Counter()
        self.fails: int | None = None

    @property
    def found(self) -> int:
        """The highest number that passed, below all that failed; 0 if none did."""
        return max(self.passes, default=0)

    def note(self, users: int, passed: bool) -> None:
        """Note the outcome of a number of users."""
        if passed:
            self.passes[users] += 1
            return
        self.fails = users if self.fails is None else min(users, self.fails)
        for other in [other for other in self.passes if other >= users]:
            del self.passes[other]

    def next(self) -> int | None:
        """The number of users to try next; None once the search is over."""
        found = self.found
        if found == 0:
            return self.start if self.fails is None else self.fails // 2 or None
        if self.fails is None and found < self.most:
            return min(2 * found, self.most)
        if self.fails is not None and self.fails - found > max(1, self.resolution * found):
            return (self.fails + found) // 2
        return found if self.passes[found] <= self.confirmations else None


def search(*arguments: str) -> None:
    """Try one number of users after another, until the search is over."""
    settings = driver.read_settings(*arguments)
    keys = ("start", "most", "resolution", "confirmations")
    trying = Search(*(settings.pop(key) for key in keys))
    cycle, seed = settings["cycle"], settings["seed"] + settings["lap"]

    def judge(counts: dict, late: dict, delay: float) -> dict[str, Any]:
        slow = failing(counts, late, delay, cycle)
        return {"passed": not slow, "failing": slow}

    def decided() -> int:
        return sum(driver.read_books(site)["bids"] for site in settings["sites"])

    driver.books("opened", *arguments[:2])
    decided_before, probes, bids = decided(), 0, 0
    running = driver.start_generators()
    while (users := trying.next()) is not None:
        probes += 1
        # Each probe draws anew, so that a second one of a number of users is not the first.
        settings |= {"users": users, "seed": f"{seed:x}-{probes}-{users}"}
        settings["auctions"] = open_auctions(users)
        totals = driver.measure(running, f"probe-{probes}", settings, judge)
        bids += totals["in_all"]["bids"]
        trying.note(users, totals["passed"])
    until = time.monotonic() + SETTLED
    while decided() < decided_before + bids and time.monotonic() < until:
        time.sleep(0.1)
    driver.books("closed", *arguments[:2])
    report(found=trying.found, fails=trying.fails, probes=probes, bids=bids)
    report(done=True)


if __name__ == "__main__":
    driver.run(search)

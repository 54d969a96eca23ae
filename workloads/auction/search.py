"""The search for the highest number of users that passes, and what passing is."""

import collections

# An operation passes where 99 % of its answers were in time.  Those with fewer than 100 answers, of which 99 % cannot
# be told, are judged together.
HUNDRED = 100
RARE = "the rarer operations"
# The load itself passes where operations began later than at the time drawn for them by at most so much of a mean
# cycle, on average.
LATEST = 0.1
LOAD = "the load"


def failing(counts: dict[str, int], late: dict[str, int], lag: float, cycle: float) -> list[str]:
    """What did not pass at a number of users: operations by name, the rarer ones, and the load where it came late.

    counts, late: answers of each operation, and those that came too late.  lag, cycle: mean seconds.
    """
    rare = [name for name in late if counts[name] < HUNDRED]
    slow = [name for name in late if name not in rare and HUNDRED * late[name] > counts[name]]
    too_many = HUNDRED * sum(late[name] for name in rare) > sum(counts[name] for name in rare)
    # Nor does it pass where there was no answer at all.
    if too_many or not any(counts[name] for name in late):
        slow.append(RARE)
    return slow + ([LOAD] if lag > LATEST * cycle else [])


class Search:
    """From `start` up by doubling or down by halving, then by halves between the highest pass and the lowest failure.

    It ends where these are no further apart than `resolution` (a share of the pass), and the highest pass has passed
    `confirmations` times more.  One that then fails is a failure like any other.
    """

    def __init__(self, start: int, most: int, resolution: float, confirmations: int) -> None:
        self.start, self.most, self.resolution, self.confirmations = start, most, resolution, confirmations
        self.passes: collections.Counter[int] = collections.Counter()
        self.fails: int | None = None

    @property
    def found(self) -> int:
        """The highest number that passed, below all that failed; 0 where none did."""
        return max(self.passes, default=0)

    def note(self, users: int, passed: bool) -> None:
        """Take in what came of a number of users."""
        if passed:
            self.passes[users] += 1
            return
        self.fails = users if self.fails is None else min(users, self.fails)
        for other in [other for other in self.passes if other >= users]:
            del self.passes[other]

    def next(self) -> int | None:
        """The number of users to try next; None where the search is over."""
        found = self.found
        if found == 0:
            return self.start if self.fails is None else self.fails // 2 or None
        if self.fails is None and found < self.most:
            return min(2 * found, self.most)
        if self.fails is not None and self.fails - found > max(1, self.resolution * found):
            return (self.fails + found) // 2
        return found if self.passes[found] <= self.confirmations else None

"""What users do, one after another: operations, pauses, and what their browsers keep."""

import functools
import math
import random

OPERATIONS = ["HomePage", "Login", "TagSearch", "EventDetail", "PersonDetail", "AddPerson", "AddEvent"]
# As published: in per cent, what follows an operation (row) in the order of OPERATIONS.
FOLLOWS = {
    "HomePage": [0, 11, 52, 36, 0, 1, 0],
    "Login": [0, 0, 60, 20, 0, 0, 20],
    "TagSearch": [21, 6, 41, 31, 0, 1, 0],
    "EventDetail": [72, 21, 0, 0, 6, 1, 0],
    "PersonDetail": [52, 6, 0, 31, 11, 0, 0],
    "AddPerson": [0, 0, 0, 0, 100, 0, 0],
    "AddEvent": [0, 0, 0, 100, 0, 0, 0],
}
# As published: the share of sessions whose browser has nothing yet.
EMPTY_CACHES = 0.4


class Chain:
    """Draws what follows, for all users of an instance.

    Of each hundred operations that follow one, each is drawn exactly as often as its row says, in a random order:
    so a run of some thousand operations has the published mix, and not one that chance moved by a point.
    """

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.decks: dict[str, list[str]] = {operation: [] for operation in OPERATIONS}

    def after(self, operation: str) -> str:
        """The operation that follows."""
        deck = self.decks[operation]
        if not deck:
            pairs = zip(OPERATIONS, FOLLOWS[operation], strict=True)
            deck += [name for name, share in pairs for _ in range(share)]
            self.chance.shuffle(deck)
        return deck.pop()


def begun(chance: random.Random) -> str:
    """The operation that a user did last, before the run: in the long run's mix, so that no start shows in it."""
    return chance.choices(OPERATIONS, stationary())[0]


@functools.cache
def stationary() -> list[float]:
    """The mix that the matrix leads to, as shares in the order of OPERATIONS."""
    mix = [1 / len(OPERATIONS)] * len(OPERATIONS)
    for _ in range(200):
        flows = [[share * part / 100 for part in FOLLOWS[name]] for name, share in zip(OPERATIONS, mix, strict=True)]
        mix = [sum(column) for column in zip(*flows, strict=True)]
    return mix


def cycle(chance: random.Random, mean: float) -> float:
    """Seconds from the beginning of an operation to that of the next, negative-exponential."""
    return chance.expovariate(1 / mean)


class Cache:
    """What a user's browser has: the site's own files from earlier visits, or nothing; then what it fetched."""

    def __init__(self, chance: random.Random) -> None:
        self.full = chance.random() >= EMPTY_CACHES
        self.fetched: set[str] = set()

    def lacks(self, paths: list[str]) -> list[str]:
        """Those of the files that are to be fetched, each once; from then on they are there."""
        site = "/static/"
        new = [
            path
            for path in dict.fromkeys(paths)
            if path not in self.fetched and not (self.full and path.startswith(site))
        ]
        self.fetched.update(new)
        return new


def percentile(sorted_values: list[float], share: float) -> float:
    """The smallest value that at least this share of the values do not exceed."""
    return sorted_values[max(0, math.ceil(share * len(sorted_values)) - 1)]

"""What users do, one after another: operations, pauses, and what their browsers keep."""

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
FLOWS = {name: dict(zip(OPERATIONS, row, strict=True)) for name, row in FOLLOWS.items()}
# As published (1,500 users): the share of each operation in per cent, and its threshold for the mean in ms.
MIX = dict(zip(OPERATIONS, [26.14, 10.22, 33.37, 24.71, 2.65, 0.86, 2.04], strict=True))
THRESHOLDS = dict(zip(OPERATIONS, [250, 250, 250, 250, 500, 500, 500], strict=True))
# As published: the share of sessions whose browser has nothing yet.
EMPTY_CACHES = 0.4


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

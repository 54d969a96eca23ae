"""The users of a web application: what one user does, and what the users of a point share."""

import collections
import json
import random
import time
from collections.abc import Callable, Iterable
from typing import Any

from report import WrongAnswerError


class Chain:
    """Draws the next operation for all users of a load generator: a Markov chain with exact rows.

    flows: operation → next operation → weight.  After each operation every next one has been drawn
    as often as its share, within one, so that a short run has the published mix as well.
    """

    def __init__(self, flows: dict[str, dict[str, float]], chance: random.Random) -> None:
        self.shares = {
            name: {then: weight / sum(row.values()) for then, weight in row.items() if weight}
            for name, row in flows.items()
        }
        rows = self.shares.items()
        self.due = {name: {then: chance.random() for then in row} for name, row in rows}

    def after(self, operation: str) -> str:
        """The operation that follows another one."""
        due = self.due[operation]
        for then, share in self.shares[operation].items():
            due[then] += share
        chosen = max(due, key=due.__getitem__)
        due[chosen] -= 1
        return chosen


class Point:
    """What the users of one point of a load generator share: its settings and its results.

    settings: `sites`, `mine` (the numbers of this generator's users, over all sites), `begin` (of
    the clock time.time), `ramp` and `warmup` (seconds that do not count), `coming` (the share of
    the ramp in which users arrive), `seconds`, `seed`, and those of the application.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.steady = settings["begin"] + settings["ramp"] + settings.get("warmup", 0)
        self.ends = self.steady + settings["seconds"]
        self.chain: Chain | None = None
        self.busy: set[int] = set()
        self.came = 0
        self.wrong: list[str] = []
        self.lags: list[float] = []
        # Operations that began while the point counts; events while it counts, and all events.
        self.began: collections.Counter[str] = collections.Counter()
        self.counted: collections.Counter[str] = collections.Counter()
        self.in_all: collections.Counter[str] = collections.Counter()
        self.samples: collections.defaultdict[str, list[float]] = collections.defaultdict(list)


class User:
    """A user of a web application; each application has a subclass, `Visitor` in visitor.py.

    request: sends METHOD PATH *STATUSES **MORE to the user's site and returns status and content.
    number: the user's among those of all sites.
    """

    # The path at which a site shows what its databases hold.
    books: str
    # All operations, in the order of the log, and those that are tried before the load.
    operations: Iterable[str]
    tried: Iterable[str]
    # The percentile of latency that is printed.
    percentile: int
    # The published chain and the share of each operation.
    flows: dict[str, dict[str, float]]
    mix: dict[str, float]
    # Operations that wait for others: they are counted, and neither timed nor completed.
    idle: frozenset[str] = frozenset()
    # Whether operations begin at drawn times and are timed as a whole.  Otherwise a pause follows
    # each, and the user times its parts.
    paced = True
    # The share of the ramp in which users arrive.
    coming = 1.0

    def __init__(
        self,
        request: Callable[..., tuple[int, Any]],
        number: int,
        chance: random.Random,
        point: Point,
    ) -> None:
        self.send, self.number, self.chance, self.point = request, number, chance, point
        self.settings = point.settings
        # The number of this user at its site.
        self.place = number // len(self.settings["sites"])
        # The moment of the last answer and its latency in seconds.
        self.answered = self.latency = 0.0

    def request(self, method: str, path: str, *statuses: int, **more: Any) -> tuple[int, Any]:
        """Status and content of an answer, decoded where it is JSON.

        statuses: those that are right, 200 unless given.  Raises WrongAnswerError for others.
        """
        begun = time.perf_counter()
        status, content, kind = self.send(method, path, **more)
        self.latency, self.answered = time.perf_counter() - begun, time.time()
        if status not in (statuses or (200,)):
            end = content.decode(errors="replace")[-200:]
            right = " or ".join(map(str, statuses or (200,)))
            raise WrongAnswerError(f"{method} {path}: the status is {status}, not {right}: {end}")
        return status, json.loads(content) if "json" in (kind or "") else content

    @classmethod
    def limit(cls, operation: str, settings: dict[str, Any]) -> float | None:
        """Seconds after which an answer is late, if the application has such a limit."""
        return None

    def come(self) -> None:
        """Begin after an operation of the mix, so that the start of the load does not show."""
        if self.point.chain is None:
            chance = random.Random(f"walk {self.settings['seed']} {self.number}")
            self.point.chain = Chain({**self.flows, "coming": self.mix}, chance)
        self.last = self.point.chain.after("coming")

    def next(self) -> str:
        """The operation that follows."""
        assert self.point.chain
        self.last = self.point.chain.after(self.last)
        return self.last

    def do(self, operation: str) -> None:
        """Do an operation.  Raises WrongAnswerError for a wrong answer."""
        raise NotImplementedError

    def check(self) -> None:
        """Do every operation that is tried before the load."""
        for operation in self.tried:
            self.do(operation)

    def pause(self) -> float:
        """Seconds until the next operation."""
        raise NotImplementedError

    def first_pause(self) -> float:
        """Seconds until the first operation."""
        return self.pause()

    def counts(self) -> bool:
        """Whether the last answer came while the point counts."""
        return self.point.steady <= self.answered < self.point.ends

    def count(self, **events: int) -> None:
        """Count events of the last answer."""
        self.point.in_all.update(events)
        if self.counts():
            self.point.counted.update(events)

    def time(self, operation: str, seconds: float) -> None:
        """Note how long an operation took that ended with the last answer."""
        if self.counts():
            self.point.samples[operation].append(seconds)

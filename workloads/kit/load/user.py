"""Models a user of a web application, and the state that all users of a point share."""

import collections
import json
import random
import time
from collections.abc import Callable
from typing import Any

from report import WrongAnswerError


class Chain:
    """A Markov chain that draws the next operation for all users of a load generator.

    After each operation every successor has been drawn as often as its share, within one, so that
    even a short run has the published mix.

    flows: operation → next operation → weight.  Weights need not add up to anything.
    """

    def __init__(self, flows: dict[str, dict[str, float]], rng: random.Random) -> None:
        """Draw where each operation begins in the cycle of its successors, in flows' order."""
        self.shares: dict[str, dict[str, float]] = {}
        # How often each successor should still be drawn; the one with the largest number is next.
        self.due: dict[str, dict[str, float]] = {}
        for operation, weights in flows.items():
            total = sum(weights.values())
            shares = {name: weight / total for name, weight in weights.items() if weight}
            self.shares[operation] = shares
            self.due[operation] = {name: rng.random() for name in shares}

    def choose_next_operation(self, previous: str) -> str:
        """Return the operation that follows another one, and record the choice in `due`.

        Each operation takes turns by its share (smooth weighted round robin), not by chance: all
        environments get the same requests.  Of equal ones the first in the flows' order is chosen.
        """
        due = self.due[previous]
        for name, share in self.shares[previous].items():
            due[name] += share
        chosen = max(due, key=due.__getitem__)
        due[chosen] -= 1
        return chosen


class Point:
    """A point of the sweep in one load generator: its settings and its results so far.

    settings: `sites` (addresses), `user_numbers` (of this generator's users, over all sites),
    `begin` (a moment of time.time), `ramp` and `warmup` (seconds that do not count), `coming` (the
    share of the ramp in which users arrive), `seconds` (that count), `seed`, and those of the
    application.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        """Start without results."""
        self.settings = settings
        # The time that counts, by the clock time.time.
        self.counts_from = settings["begin"] + settings["ramp"] + settings.get("warmup", 0)
        self.counts_until = self.counts_from + settings["seconds"]
        self.chain: Chain | None = None
        # Numbers of the users whose operation is under way.
        self.busy: set[int] = set()
        self.arrived = 0
        self.errors: list[str] = []
        # Seconds by which operations began after the time drawn for them.
        self.delays: list[float] = []
        # Operations that began in the time that counts, events in that time, and all events.
        self.began: collections.Counter[str] = collections.Counter()
        self.counted: collections.Counter[str] = collections.Counter()
        self.in_all: collections.Counter[str] = collections.Counter()
        # Latencies in seconds, by operation.
        self.samples: collections.defaultdict[str, list[float]] = collections.defaultdict(list)


class User:
    """A user of a web application; each application has a subclass, `Visitor` in visitor.py.

    send: sends METHOD PATH **OPTIONS to the user's site; returns (status, content, type).
    number: the user's number among those of all sites, from 0.
    rng: the user's own random numbers.  The order of the draws decides all requests of a seed.
    """

    # The path at which a site shows its books: counts and faults of its databases.
    books_path: str
    # All operations, in the order of the log, and those that are done once before the load.
    operations: tuple[str, ...]
    checked_operations: tuple[str, ...]
    # The percentile of the latency that is printed.
    percentile: int
    # The published chain (see Chain), and the share of each operation in per cent.
    flows: dict[str, dict[str, float]]
    mix: dict[str, float]
    # Operations that wait for other users: they are counted, but neither timed nor completed.
    waiting_operations: frozenset[str] = frozenset()
    # True: operations begin at drawn times, and are timed as a whole.  False: a pause follows each
    # operation, and the user records the latency of its requests.
    paced = True
    # The share of the ramp in which users arrive.
    arrival_share = 1.0

    def __init__(
        self,
        send: Callable[..., tuple[int, bytes, str | None]],
        number: int,
        rng: random.Random,
        point: Point,
    ) -> None:
        """Send nothing yet."""
        self.send, self.number, self.rng, self.point = send, number, rng, point
        self.settings = point.settings
        self.number_at_site = number // len(self.settings["sites"])
        # The moment of the last answer, by the clock time.time, and its latency in seconds.
        self.answered = self.latency = 0.0

    def request(self, method: str, path: str, *statuses: int, **options: Any) -> tuple[int, Any]:
        """Send a request; return the answer's status, and its content, decoded if it is JSON.

        path: at the user's site, from the slash.
        statuses: the expected ones, 200 unless given.  options: of `send`.
        Sets `latency` and `answered`.  Raises WrongAnswerError for another status.
        """
        expected = statuses or (200,)
        started = time.perf_counter()
        status, content, kind = self.send(method, path, **options)
        self.latency, self.answered = time.perf_counter() - started, time.time()
        if status not in expected:
            end = content.decode(errors="replace")[-200:]
            alternatives = " or ".join(map(str, expected))
            raise WrongAnswerError(
                f"{method} {path}: the status is {status}, not {alternatives}: {end}"
            )
        return status, json.loads(content) if "json" in (kind or "") else content

    @classmethod
    def find_latency_limit(cls, operation: str, settings: dict[str, Any]) -> float | None:
        """Return the seconds after which an answer is late; None if there is no limit.

        Applications with limits define this.  settings: the settings of the point.
        """
        return None

    def arrive(self) -> None:
        """Start as if an operation, drawn from the mix, had just been done.

        So the users begin in all states of the chain, and the start of the load does not show.
        The first user to arrive makes the chain that all users of the point share.
        """
        if self.point.chain is None:
            rng = random.Random(f"walk {self.settings['seed']} {self.number}")
            self.point.chain = Chain({**self.flows, "arrival": self.mix}, rng)
        self.last_operation = self.point.chain.choose_next_operation("arrival")

    def choose_operation(self) -> str:
        """Return the user's next operation, which the chain chooses; arrive must have made it."""
        assert self.point.chain
        self.last_operation = self.point.chain.choose_next_operation(self.last_operation)
        return self.last_operation

    def do_operation(self, operation: str) -> None:
        """Do an operation, by its name; each application defines this.

        Raises WrongAnswerError for a wrong answer.
        """
        raise NotImplementedError

    def check_operations(self) -> None:
        """Do every operation that is done once before the load."""
        for operation in self.checked_operations:
            self.do_operation(operation)

    def draw_pause(self) -> float:
        """Draw the seconds until the next operation; each application defines this."""
        raise NotImplementedError

    def draw_first_pause(self) -> float:
        """Draw the seconds from the arrival to the first operation."""
        return self.draw_pause()

    def is_counted(self) -> bool:
        """Return whether the last answer came in the time that counts."""
        return self.point.counts_from <= self.answered < self.point.counts_until

    def count_events(self, **events: int) -> None:
        """Add events of the last answer to the point's counters of all events.

        They are also added to the counters of the time that counts, if the answer came in it.
        events: numbers by names that the application's parser reads.
        """
        self.point.in_all.update(events)
        if self.is_counted():
            self.point.counted.update(events)

    def record_latency(self, operation: str, seconds: float) -> None:
        """Keep the latency of an operation, if its last answer came in the time that counts.

        Only users who are not `paced` call this; generator.py times the operations of others.
        """
        if self.is_counted():
            self.point.samples[operation].append(seconds)

"""What a user of an application does, under load (users.py) or alone."""

import collections
import json
import random
import time
from typing import Any

from said import WrongAnswerError

# Seconds for which who is alone waits for an answer.
TIMEOUT = 300


class Point:
    """What the users of one point share: when to do what, and what they met.

    asked: `begin` (of the clock time.time), `ramp` (not counted; users come in the share `coming` of it), `warmup` (nor
    is this), `seconds`, `sites`, `mine` (the numbers of this generator's users, over all sites), `seed`; and whatever
    the workload's visitor needs.
    """

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        self.steady = asked["begin"] + asked["ramp"] + asked.get("warmup", 0)
        self.ends = self.steady + asked["seconds"]
        self.came = 0
        self.busy: set[int] = set()
        self.wrong: list[str] = []
        self.lags: list[float] = []
        # Operations that began in time; what visitors counted in time, and in all.
        self.began: collections.Counter[str] = collections.Counter()
        self.counted: collections.Counter[str] = collections.Counter()
        self.in_all: collections.Counter[str] = collections.Counter()
        self.samples: collections.defaultdict[str, list[float]] = collections.defaultdict(list)
        # For visitors of one point, such as a walk that they share.
        self.shared: dict[str, Any] = {}


class Visitor:
    """What a workload says of one of its users; a new one is made for each."""

    # Operations for which nobody waits: they are counted, and neither timed nor ended.
    idle: frozenset[str] = frozenset()
    # Whether operations follow at drawn times, whatever they take; else the pause begins when one has ended, and the
    # visitor times by itself what it does.
    paced = True

    def __init__(self, ask: Any, number: int, chance: random.Random, point: Point) -> None:
        self.ask, self.number, self.chance, self.point, self.asked = ask, number, chance, point, point.asked
        # The number of this user at its site.
        self.place = number // len(point.asked["sites"])

    def come(self) -> None:
        """Do what has to be done before the first operation."""

    def next(self) -> str:
        """The operation that follows."""
        raise NotImplementedError

    def do(self, operation: str) -> None:
        """Do it.  Raises WrongAnswerError where an answer is not what it should be."""
        raise NotImplementedError

    def pause(self) -> float:
        """Seconds until the next operation."""
        raise NotImplementedError

    def first_pause(self) -> float:
        """Seconds until the first operation."""
        return self.chance.random() * self.pause()

    def moment(self) -> float:
        """When what is counted and timed next has ended."""
        return time.time()

    def count(self, **what: int) -> None:
        """Count something, in all and in time."""
        self.point.in_all.update(what)
        if self.point.steady <= self.moment() < self.point.ends:
            self.point.counted.update(what)

    def time(self, operation: str, seconds: float) -> None:
        """How long something took that has just ended."""
        if self.point.steady <= self.moment() < self.point.ends:
            self.point.samples[operation].append(seconds)


def answered(request: str, status: int, allowed: tuple[int, ...], content: bytes, kind: str | None) -> tuple[int, Any]:
    """Status and content of an answer, read from JSON where it is that; the status must be one that is allowed."""
    if status not in (allowed or (200,)):
        words = content.decode(errors="replace")[-200:]
        raise WrongAnswerError(f"{request} was answered with {status}, not {allowed or (200,)}: {words}")
    return status, json.loads(content) if "json" in (kind or "") else content


def alone(kind: type[Visitor], site: str, **asked: Any) -> Any:
    """A visitor of a site who is no load, to check what is answered; asked: as of Point."""
    import requests

    session = requests.Session()
    # No proxy of the environment's is on the way.
    session.trust_env = False

    def ask(method: str, path: str, *allowed: int, **sent: Any) -> tuple[int, Any]:
        answer = session.request(method, site + path, timeout=TIMEOUT, **sent)
        of_content = answer.headers.get("Content-Type")
        return answered(f"{method} {path}", answer.status_code, allowed, answer.content, of_content)

    point = Point({"sites": [site], "begin": 0, "ramp": 0, "seconds": 0, **asked})
    return kind(ask, 0, random.Random(f"check {asked['seed']}"), point)

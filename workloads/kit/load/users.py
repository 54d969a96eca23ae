"""A load generator for the applications: some of the users, on Locust, for one point after another.

A workload's own program defines what a user does (a `Visitor`) and calls `serve(ItsVisitor)`.  Each point is asked for
with a line of JSON and answered with one that holds all that the users met.  Whatever is not as it should be ends the
point.
"""

import collections
import gc
import json
import logging
import random
import resource
import sys
import time
from typing import Any

# First of all others: it makes what they import cooperative.
import gevent
from locust import FastHttpUser, task
from locust.env import Environment

# isort: split
from said import WrongAnswerError

# Seconds after the time for which what has begun may still go on; then it is late, whatever it was asked.
PATIENCE = 120
FOREVER = 3600


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

    def count(self, **what: int) -> None:
        """Count something, in all and in time."""
        self.point.in_all.update(what)
        if self.point.steady <= time.time() < self.point.ends:
            self.point.counted.update(what)

    def time(self, operation: str, seconds: float) -> None:
        """How long something took that has just ended."""
        if self.point.steady <= time.time() < self.point.ends:
            self.point.samples[operation].append(seconds)


class OneUser(FastHttpUser):
    """Does one operation after another, each when its time has come, or when the one before has ended."""

    network_timeout = connection_timeout = 300.0
    point: Point
    kind: type[Visitor]

    def on_start(self) -> None:
        """Come when it is one's turn, and begin at a moment of one's own."""
        point, asked = self.point, self.point.asked
        place = point.came
        point.came += 1
        number = asked["mine"][place]
        self.site = asked["sites"][number % len(asked["sites"])]
        self.visitor = visitor = self.kind(self.ask, number, random.Random(f"{asked['seed']} {number}"), point)
        turn = asked["begin"] + asked["coming"] * asked["ramp"] * place / len(asked["mine"])
        gevent.sleep(max(0, turn - time.time()))
        self.coming = True
        point.busy.add(number)
        self._try("coming", visitor.come)
        point.busy.discard(number)
        self.coming = False
        self.due, self.waited = time.time() + visitor.first_pause(), True
        gevent.sleep(self.wait_time())

    def wait_time(self) -> float:
        """Seconds until the next operation."""
        return max(0.0, self.due - time.time())

    def ask(self, method: str, path: str, *allowed: int, **sent: Any) -> tuple[int, Any]:
        """Status and content of an answer, read from JSON where it is that; the status must be one that is allowed."""
        if self.coming and time.time() >= self.point.ends:
            # It is over before this user has come, and what was asked has been answered.
            self.point.busy.discard(self.visitor.number)
            gevent.sleep(FOREVER)
        with self.client.request(method, self.site + path, name="any", catch_response=True, **sent) as answer:
            # Locust's own count of failures is not looked at: every failure ends the point.
            answer.success()
            content = answer.content or b""
            if answer.status_code not in (allowed or (200,)):
                words = answer.error or content.decode(errors="replace")[-200:]
                said = f"was answered with {answer.status_code}, not {allowed or (200,)}: {words}"
                raise WrongAnswerError(f"{method} {path} {said}")
            is_json = "json" in answer.headers.get("content-type", "")
        return answer.status_code, json.loads(content) if is_json else content

    def _try(self, what: str, work: Any, *words: Any) -> None:
        try:
            work(*words)
        except Exception as error:
            self.point.wrong.append(f"{what}: {error!r}")
            gevent.sleep(FOREVER)

    @task
    def operation(self) -> None:
        """Do the next operation and note how long it took."""
        point, visitor, begun = self.point, self.visitor, time.time()
        if begun >= point.ends:
            gevent.sleep(FOREVER)
        name, counts, watch = visitor.next(), begun >= point.steady, time.perf_counter()
        awaited = name not in visitor.idle
        point.began[name] += counts
        if counts and self.waited and visitor.paced:
            point.lags.append(max(0.0, begun - self.due))
        if awaited:
            point.busy.add(visitor.number)
        self._try(name, visitor.do, name)
        point.busy.discard(visitor.number)
        if awaited and counts and visitor.paced:
            point.samples[name].append(time.perf_counter() - watch)
        self.due = (begun if visitor.paced else time.time()) + visitor.pause()
        self.waited = self.due > time.time()


def run(kind: type[Visitor], asked: dict[str, Any]) -> dict[str, Any]:
    """What the users of one point met."""
    OneUser.point, OneUser.kind = point, _ = Point(asked), kind
    runner = Environment(user_classes=[OneUser], host=asked["sites"][0]).create_local_runner()

    def until(moment: float) -> float:
        """Wait, unless something is wrong; returns the processor's time so far."""
        while time.time() < moment and not point.wrong:
            gevent.sleep(min(0.1, max(0, moment - time.time())))
        return time.process_time()

    until(asked["begin"])
    runner.start(len(asked["mine"]), spawn_rate=len(asked["mine"]))
    before, after = until(point.steady), until(point.ends)
    # What has begun is finished, and counts: otherwise the slowest would be left out.
    patience = time.time() + PATIENCE
    while point.busy and not point.wrong and time.time() < patience:
        gevent.sleep(0.02)
    if point.busy and not point.wrong:
        point.wrong.append(f"{len(point.busy)} operations had no answer {PATIENCE} s after the time was over")
    told = {key: getattr(point, key) for key in ("came", "began", "counted", "in_all", "samples", "lags")}
    found = json.loads(json.dumps({**told, "wrong": point.wrong[:1], "cpu_seconds": after - before}))
    runner.quit()
    # Connections end with what held them.
    gc.collect()
    return found


def serve(kind: type[Visitor]) -> None:
    """Do what is asked on the standard input until there is nothing more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))
    # Locust warns of many users that come at once.
    logging.disable(logging.WARNING)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(run(kind, json.loads(line))), flush=True)

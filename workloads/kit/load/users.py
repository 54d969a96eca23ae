"""A load generator for the applications: some of the users, on Locust, for one point after another.

A workload's own program defines what a user does (a `Visitor`) and calls `serve(ItsVisitor)`.  Each point is asked for
with a line of JSON and answered with one that holds all that the users met.  Whatever is not as it should be ends the
point.
"""

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
from visits import Point, Visitor, answered

# Seconds after the time for which what has begun may still go on; then it is late, whatever it was asked.
PATIENCE = 120
FOREVER = 3600


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
        """Status and content of an answer, as `answered` gives them."""
        if self.coming and time.time() >= self.point.ends:
            # It is over before this user has come, and what was asked has been answered.
            self.point.busy.discard(self.visitor.number)
            gevent.sleep(FOREVER)
        with self.client.request(method, self.site + path, name="any", catch_response=True, **sent) as answer:
            # Locust's own count of failures is not looked at: every failure ends the point.
            answer.success()
            content = answer.content or str(getattr(answer, "error", None) or "").encode()
            kind = answer.headers.get("content-type") if answer.headers else None
            return answered(f"{method} {path}", answer.status_code, allowed, content, kind)

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

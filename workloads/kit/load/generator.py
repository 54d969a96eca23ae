"""A load generator for web applications: some of a point's users, on Locust."""

import gc
import json
import logging
import random
import resource
import sys
import time
from typing import Any

# First of all: it makes the modules that follow cooperative.
import gevent
from locust import FastHttpUser, task
from locust.env import Environment

# isort: split
from user import Point, User

# Seconds after the end of a point within which its last operations must complete.
PATIENCE = 120
FOREVER = 3600


class Browser(FastHttpUser):
    """Sends the requests of one user, and starts its operations."""

    # Requests name their whole address.
    host = "http://localhost"
    network_timeout = connection_timeout = 300.0
    point: Point
    kind: type[User]

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        point, settings = self.point, self.point.settings
        self.place, self.coming = point.came, False
        point.came += 1
        number = settings["mine"][self.place]
        self.site = settings["sites"][number % len(settings["sites"])]
        chance = random.Random(f"{settings['seed']} {number}")
        self.user = self.kind(self.send, number, chance, point)

    def send(self, method: str, path: str, **more: Any) -> tuple[int, bytes, str | None]:
        """Status, content and type of an answer."""
        if self.coming and time.time() >= self.point.ends:
            # The point has ended before this user has arrived.
            self.point.busy.discard(self.user.number)
            gevent.sleep(FOREVER)
        more |= {"name": "any", "catch_response": True}
        with self.client.request(method, self.site + path, **more) as answer:
            # Locust's own count of failures is not used: every failure ends the point.
            answer.success()
            content = answer.content or str(getattr(answer, "error", None) or "").encode()
            kind = answer.headers.get("content-type") if answer.headers else None
            return answer.status_code, content, kind

    def on_start(self) -> None:
        """Arrive at the user's own moment of the ramp, and draw the time of the first operation."""
        settings = self.point.settings
        arrives = settings["coming"] * settings["ramp"] * self.place / len(settings["mine"])
        gevent.sleep(max(0, settings["begin"] + arrives - time.time()))
        self.coming = True
        self._complete("coming", self.user.come)
        self.coming = False
        self.due, self.waited = time.time() + self.user.first_pause(), True
        gevent.sleep(self.wait_time())

    def wait_time(self) -> float:
        """Seconds until the next operation."""
        return max(0.0, self.due - time.time())

    def _complete(self, name: str, work: Any, *arguments: str, awaited: bool = True) -> None:
        if awaited:
            self.point.busy.add(self.user.number)
        try:
            work(*arguments)
        except Exception as error:
            self.point.wrong.append(f"{name}: {error!r}")
            gevent.sleep(FOREVER)
        self.point.busy.discard(self.user.number)

    @task
    def operation(self) -> None:
        """Do the next operation and note how long it took."""
        point, user, begun = self.point, self.user, time.time()
        if begun >= point.ends:
            gevent.sleep(FOREVER)
        name, counts, watch = user.next(), begun >= point.steady, time.perf_counter()
        point.began[name] += counts
        if counts and self.waited and user.paced:
            point.lags.append(max(0.0, begun - self.due))
        self._complete(name, user.do, name, awaited=name not in user.idle)
        if counts and user.paced and name not in user.idle:
            point.samples[name].append(time.perf_counter() - watch)
        self.due = (begun if user.paced else time.time()) + user.pause()
        self.waited = self.due > time.time()


def users(kind: type[User], settings: dict[str, Any], count: int) -> list[User]:
    """Users that are not started: they do what a caller lets them do."""
    Browser.point, Browser.kind = Point(settings), kind
    return [Browser(Environment()).user for _ in range(count)]


def run(kind: type[User], settings: dict[str, Any]) -> dict[str, Any]:
    """The results of one point."""
    Browser.point, Browser.kind = point, _ = Point(settings), kind
    runner = Environment(user_classes=[Browser]).create_local_runner()

    def until(moment: float) -> float:
        """Wait, unless something is wrong; returns the processor time so far."""
        while time.time() < moment and not point.wrong:
            gevent.sleep(min(0.1, max(0, moment - time.time())))
        return time.process_time()

    until(settings["begin"])
    runner.start(len(settings["mine"]), spawn_rate=len(settings["mine"]))
    before, after = until(point.steady), until(point.ends)
    # Operations that have begun complete and count: otherwise the slowest would be missing.
    patience = time.time() + PATIENCE
    while point.busy and not point.wrong and time.time() < patience:
        gevent.sleep(0.02)
    if point.busy and not point.wrong:
        point.wrong.append(f"{len(point.busy)} operations had no answer {PATIENCE} s after the end")
    keys = ("came", "began", "counted", "in_all", "samples", "lags")
    results = {key: getattr(point, key) for key in keys}
    results |= {"wrong": point.wrong[:1], "cpu_seconds": after - before}
    # Copied, before the users go.
    results = json.loads(json.dumps(results))
    runner.quit()
    # Connections end with the objects that hold them.
    gc.collect()
    return results


def serve(kind: type[User]) -> None:
    """Read points as lines of JSON and print the results of each, until the input ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))
    # Locust warns about many users that come at once.
    logging.disable(logging.WARNING)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(run(kind, json.loads(line))), flush=True)

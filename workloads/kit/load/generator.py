"""A load generator for web applications: runs some of a point's users on Locust.

It is started by driver.py, reads the settings of points as lines of JSON, and prints the results of
each point as a line.  The users are of the application's class `Visitor` in visitor.py.
"""

import gc
import json
import logging
import random
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

# Imported before the users: gevent makes the modules that follow cooperative.
import gevent
from locust import FastHttpUser, task
from locust.env import Environment

# isort: split
from user import Point
from visitor import Visitor

# Seconds after the end of a point within which its last operations must complete.
COMPLETION_SECONDS = 120
# Seconds for which a user who has nothing more to do sleeps: until the point is over.
FOREVER = 3600


class Browser(FastHttpUser):
    """Locust's side of one user: sends the requests, and starts the operations on time.

    The class attribute `point` must be set before Locust makes the objects.
    """

    # Locust demands a host; requests name their whole address.
    host = "http://localhost"
    # In seconds.
    network_timeout = connection_timeout = 300.0
    # The point that runs; of the class, since Locust makes the objects.
    point: Point

    def __init__(self, environment: Environment) -> None:
        """Take the next user number of the point, and make the user.

        The seed of the user's random numbers, "SEED NUMBER", decides all its requests.
        """
        super().__init__(environment)
        point, settings = self.point, self.point.settings
        self.arrival_number, self.is_arriving = point.arrived, False
        point.arrived += 1
        number = settings["user_numbers"][self.arrival_number]
        self.site = settings["sites"][number % len(settings["sites"])]
        rng = random.Random(f"{settings['seed']} {number}")
        self.user = Visitor(self.send, number, rng, point)

    def send(self, method: str, path: str, **options: Any) -> tuple[int, bytes, str | None]:
        """Send a request to the user's site; return status, content and type of the answer.

        options: of Locust's client.
        Without an answer the status is 0, the content is the error, and the type is None.
        A user who has not arrived when the point is over never returns from here.
        """
        if self.is_arriving and time.time() >= self.point.counts_until:
            # The point is over before this user has arrived.
            self.point.busy.discard(self.user.number)
            gevent.sleep(FOREVER)
        options |= {"name": "any", "catch_response": True}
        with self.client.request(method, self.site + path, **options) as answer:
            # Locust counts no failure: every wrong answer ends the point.
            answer.success()
            content = answer.content or str(getattr(answer, "error", None) or "").encode()
            kind = answer.headers.get("content-type") if answer.headers else None
            return answer.status_code, content, kind

    def on_start(self) -> None:
        """Arrive at the user's own moment of the ramp, and wait for the first operation.

        Locust calls this before the first task.
        """
        settings = self.point.settings
        share_of_users = self.arrival_number / len(settings["user_numbers"])
        delay = settings["coming"] * settings["ramp"] * share_of_users
        gevent.sleep(max(0, settings["begin"] + delay - time.time()))
        self.is_arriving = True
        self._complete("arrival", self.user.arrive)
        self.is_arriving = False
        # The moment of the next operation, and whether the user waits for it.
        self.due, self.is_waiting = time.time() + self.user.draw_first_pause(), True
        gevent.sleep(self.wait_time())

    def wait_time(self) -> float:
        """Return the seconds until the next operation; Locust calls this."""
        return max(0.0, self.due - time.time())

    def _complete(self, name: str, work: Callable[[], None], is_awaited: bool = True) -> None:
        """Do an operation; keep its error, which ends the point, in point.errors.

        name: the name of the operation, for the error.  work: does it.
        is_awaited: whether the point does not end before the operation is complete.
        After an error the user sleeps until the point is over.
        """
        if is_awaited:
            self.point.busy.add(self.user.number)
        try:
            work()
        except Exception as error:
            self.point.errors.append(f"{name}: {error!r}")
            gevent.sleep(FOREVER)
        self.point.busy.discard(self.user.number)

    @task
    def do_next_operation(self) -> None:
        """Do the user's next operation, keep its latency, and draw the time of the one after it.

        Locust calls this again and again.  Nothing is done once the point is over.
        """
        point, user, begin = self.point, self.user, time.time()
        if begin >= point.counts_until:
            gevent.sleep(FOREVER)
        name = user.choose_operation()
        is_counted, is_awaited = begin >= point.counts_from, name not in user.waiting_operations
        started = time.perf_counter()
        if is_counted:
            point.began[name] += 1
        # The delay says nothing of the load generator where the operation before lasted too long.
        if is_counted and self.is_waiting and user.paced:
            point.delays.append(max(0.0, begin - self.due))
        self._complete(name, lambda: user.do_operation(name), is_awaited)
        if is_counted and user.paced and is_awaited:
            point.samples[name].append(time.perf_counter() - started)
        self.due = (begin if user.paced else time.time()) + user.draw_pause()
        self.is_waiting = self.due > time.time()


def make_users(settings: dict[str, Any]) -> list[Visitor]:
    """Return the users of a point, who do nothing by themselves, in the order of `user_numbers`.

    settings: see a Point.  Sets Browser.point.
    """
    Browser.point = Point(settings)
    return [Browser(Environment()).user for _ in settings["user_numbers"]]


def run_point(settings: dict[str, Any]) -> dict[str, Any]:
    """Run one point, and return its results.

    settings: see a Point.
    The results, which driver.measure_point sums, are attributes of Point by their names, `errors`,
    a list with the first error at most, and `cpu_seconds`, the CPU time of this process in the time
    that counts.
    """
    point = Browser.point = Point(settings)
    runner = Environment(user_classes=[Browser]).create_local_runner()
    _wait_until(settings["begin"], point)
    runner.start(len(settings["user_numbers"]), spawn_rate=len(settings["user_numbers"]))
    _wait_until(point.counts_from, point)
    cpu_before = time.process_time()
    _wait_until(point.counts_until, point)
    cpu_seconds = time.process_time() - cpu_before
    # Operations that have begun are completed and count: otherwise the slowest would be missing.
    deadline = time.time() + COMPLETION_SECONDS
    while point.busy and not point.errors and time.time() < deadline:
        gevent.sleep(0.02)
    if point.busy and not point.errors:
        point.errors.append(
            f"{len(point.busy)} operations had no answer {COMPLETION_SECONDS} s after the end"
        )
    keys = ("arrived", "began", "counted", "in_all", "samples", "delays")
    results = {key: getattr(point, key) for key in keys}
    results |= {"errors": point.errors[:1], "cpu_seconds": cpu_seconds}
    # A deep copy: the users that still run change the point.
    results = json.loads(json.dumps(results))
    runner.quit()
    # Connections end with the objects that hold them.
    gc.collect()
    return results


def _wait_until(moment: float, point: Point) -> None:
    """Wait until a given time (see time.time), or until a user of the point meets an error."""
    while time.time() < moment and not point.errors:
        gevent.sleep(min(0.1, max(0, moment - time.time())))


def serve_points() -> None:
    """Read settings of points as lines of JSON, and print each point's results as a line.

    Prints "ready" first.  Raises this process's limit of open files: each user has connections.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))
    # Locust warns about many users who start at once.
    logging.disable(logging.WARNING)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(run_point(json.loads(line))), flush=True)


if __name__ == "__main__":
    serve_points()

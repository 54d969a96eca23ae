"""A load generator: some of the users, on Locust, for one number of users after another.

Reads what to do as lines of JSON, and answers each with a line of JSON that holds all that the users met.
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
import chain
from visitor import Visitor, WrongAnswerError

# Seconds after the time for which what has begun may still go on; then it is late, whatever it was asked.
PATIENCE = 60
# The part of the ramp in which users come.
COMING = 0.75


class Probe:
    """What the users of one probe share: when to do what, and what they met.

    asked: `begin` (of the clock time.time), `ramp`, `seconds`, `cycle`, `users` of each site, `sites`, `mine` (the
    numbers of this generator's, from 0 over all sites), `persons` of each user, `seed`.
    """

    def __init__(self, asked: dict) -> None:
        self.asked = asked
        self.steady = asked["begin"] + asked["ramp"]
        self.ends = self.steady + asked["seconds"]
        self.steps = chain.Chain(random.Random(f"{asked['seed']} {asked['users']} {asked['mine'][0]}"))
        # Of operations that began in time: how many, and how long those took for which somebody waits.
        self.began = dict.fromkeys(chain.MIX, 0)
        self.samples: dict[str, list[float]] = {operation: [] for operation in chain.LIMITS}
        self.lags: list[float] = []
        self.visitors: list[Visitor] = []
        self.wrong: list[str] = []
        # The users whose operation, or coming, has not ended; who waits for somebody's bid is none of them.
        self.busy: set[int] = set()
        self.coming = iter(asked["mine"])


class OneUser(FastHttpUser):
    """Walks the chain: an operation begins when its time has come, or when the one before has ended."""

    network_timeout = connection_timeout = 300.0
    probe: Probe

    def on_start(self) -> None:
        """Come to somewhere in a visit, and begin at a moment of one's own."""
        probe, asked = self.probe, self.probe.asked
        self.number = next(probe.coming)
        self.site = asked["sites"][self.number % len(asked["sites"])]
        self.chance = random.Random(f"{asked['seed']} {asked['users']} {self.number}")
        # They come one after another in the first part of the ramp.
        place = asked["mine"].index(self.number) / len(asked["mine"])
        gevent.sleep(max(0, asked["begin"] + COMING * asked["ramp"] * place - time.time()))
        first = asked["persons"] * (self.number // len(asked["sites"])) + 1
        persons = list(range(first, first + asked["persons"]))
        self.visitor = Visitor(self.ask, self.chance, persons, asked["users"])
        probe.visitors.append(self.visitor)
        self.last = chain.begun(self.chance)
        self.coming = True
        probe.busy.add(self.number)
        self._try(lambda: self.visitor.begin_after(self.last))
        probe.busy.discard(self.number)
        self.coming = False
        self.due = time.time() + self.chance.random() * asked["cycle"]
        self.waited = True
        gevent.sleep(self.wait_time())

    def wait_time(self) -> float:
        """Seconds until the next operation."""
        return max(0.0, self.due - time.time())

    def ask(self, method: str, path: str, body: Any, allowed: tuple[int, ...]) -> tuple[int, Any]:
        """Status and content of an answer; raises WrongAnswerError where the status is another."""
        if self.coming and time.time() >= self.probe.ends:
            # It is over before this user has come, and what was asked has been answered.
            self.probe.busy.discard(self.number)
            gevent.sleep(3600)
        sent = {"json": body} if isinstance(body, dict) else {"data": body} if body else {}
        with self.client.request(method, self.site + path, name="any", catch_response=True, **sent) as answer:
            # Locust's own count of failures is not looked at: every failure ends the run.
            answer.success()
            content = answer.content or b""
            if answer.status_code not in allowed:
                words = answer.error or content.decode(errors="replace")[-200:]
                said = f"was answered with {answer.status_code}, not {allowed}: {words}"
                raise WrongAnswerError(f"{method} {path} {said}")
            is_json = "json" in answer.headers.get("content-type", "")
        return answer.status_code, json.loads(content) if is_json else content

    def _try(self, work: Any) -> None:
        try:
            work()
        except Exception as error:
            self.probe.wrong.append(f"{self.last}: {error!r}")
            gevent.sleep(3600)

    @task
    def operation(self) -> None:
        """Do the next operation and note how long it took."""
        probe, begun = self.probe, time.time()
        if begun >= probe.ends:
            gevent.sleep(3600)
        self.last = probe.steps.after(self.last)
        counts, watch = begun >= probe.steady, time.perf_counter()
        timed = self.last in chain.LIMITS
        probe.began[self.last] += counts
        if counts and self.waited:
            probe.lags.append(max(0.0, begun - self.due))
        if timed:
            probe.busy.add(self.number)
        self._try(lambda: self.visitor.do(self.last))
        probe.busy.discard(self.number)
        if timed and counts:
            probe.samples[self.last].append(time.perf_counter() - watch)
        self.due = begun + chain.cycle(self.chance, probe.asked["cycle"])
        self.waited = self.due > time.time()


def run(asked: dict) -> dict:
    """What the users of one probe met."""
    OneUser.probe = probe = Probe(asked)
    users = len(asked["mine"])
    runner = Environment(user_classes=[OneUser], host=asked["sites"][0]).create_local_runner()

    def until(moment: float) -> float:
        """Wait, unless something is wrong; returns the processor's time so far."""
        while time.time() < moment and not probe.wrong:
            gevent.sleep(min(0.1, max(0, moment - time.time())))
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    until(asked["begin"])
    runner.start(users, spawn_rate=users)
    before = until(probe.steady)
    after = until(probe.ends)
    # What has begun is finished, and counts: otherwise the slowest would be left out.
    patience = time.time() + PATIENCE
    while probe.busy and not probe.wrong and time.time() < patience:
        gevent.sleep(0.02)
    if probe.busy and not probe.wrong:
        probe.wrong.append(f"{len(probe.busy)} operations had no answer {PATIENCE} s after the time was over")
    found = {
        "began": probe.began,
        "samples": probe.samples,
        "lags": probe.lags,
        "came": len(probe.visitors),
        "bids": sum(visitor.bids for visitor in probe.visitors),
        "cpu_seconds": after - before,
        "wrong": probe.wrong[:1],
    }
    runner.quit()
    # Connections end with what held them.
    gc.collect()
    return found


def main() -> None:
    """Do what is asked until there is nothing more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))
    # Locust warns of many users that come at once.
    logging.disable(logging.WARNING)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()

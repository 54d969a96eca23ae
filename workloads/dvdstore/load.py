"""One load generator: the users of one shop for one point, on locust.

Reads what to do as a line of JSON, says that it is ready, reads the moment at which to begin (of the monotonic clock,
which all processes of the client share), and prints what it saw as a line of JSON.
"""

import collections
import json
import random
import sys
import time

# First of all others: it makes what they import cooperative.
import gevent
from locust import FastHttpUser, task
from locust.env import Environment

# isort: split
from answers import FORM, WrongAnswerError, basket, cents, marks, search
from data_set import Shop
from orders import draw_round

# Seconds that a round may take once the time is over; at paper scale of an emulated machine it may be slow.
LAST_ROUND = 120


class Tally:
    """What a load generator saw: between two moments, and in all."""

    def __init__(self, begin: float, end: float) -> None:
        self.begin, self.end = begin, end
        self.failure: str | None = None
        self.counts: collections.Counter[str] = collections.Counter()
        self.times: dict[str, collections.Counter[float]] = collections.defaultdict(collections.Counter)
        self.sums: collections.Counter[str] = collections.Counter()
        self.most: collections.Counter[str] = collections.Counter()

    def add(self, operation: str, seconds: float, moment: float) -> None:
        """One answer, or one order."""
        if self.begin <= moment < self.end:
            milliseconds = seconds * 1000
            # Classes of three digits, at most 1 % wide.
            self.times[operation][float(f"{milliseconds:.3g}")] += 1
            self.sums[operation] += milliseconds
            self.most[operation] = max(self.most[operation], milliseconds)

    def count(self, moment: float, **counts: int) -> None:
        """Count something, in all and between the moments."""
        for name, number in counts.items():
            self.counts[f"all_{name}"] += number
            if self.begin <= moment < self.end:
                self.counts[name] += number

    def told(self) -> dict:
        """All of it, for JSON."""
        operations = {
            name: {"times": sorted(times.items()), "sum_ms": self.sums[name], "max_ms": self.most[name]}
            for name, times in self.times.items()
        }
        return {"counts": dict(self.counts), "operations": operations, "failure": self.failure}


class Customer(FastHttpUser):
    """A user of the shop, who goes through the order loop again and again."""

    number = 0
    tally: Tally
    shop: Shop
    think: float
    mark: str

    def on_start(self) -> None:
        """Take a number, from which all follows that this customer does."""
        Customer.number += 1
        self.mark = f"{self.mark}x{Customer.number}"
        self.source, self.rounds, self.pause = random.Random(self.mark), 0, 0.0

    def wait_time(self) -> float:
        """Seconds to think before the next round."""
        return self.pause

    @task
    def go_round(self) -> None:
        """One round of the order loop; a wrong answer ends the load."""
        try:
            self._go_round()
        except WrongAnswerError as error:
            self.tally.failure = self.tally.failure or str(error)
            self.environment.runner.stop()

    def _go_round(self) -> None:
        self.rounds += 1
        plan = draw_round(self.source, self.shop, f"{self.mark}x{self.rounds}")
        self.spent = 0.0
        if plan.is_new:
            self._ask("new", "/new.php", _form(plan.login))
            self.tally.count(self.moment, customers=1)
        else:
            self._ask("login", "/login.php", _form(plan.login))
        for fields in plan.searches:
            told = self._ask("browse", search(fields))
            self.tally.count(self.moment, searches=1, found=int(told["found"] != "0"))
        told = self._ask("purchase", "/purchase.php", basket(plan.basket))
        self.tally.add("order", self.spent, self.moment)
        if told["order"] == "0":
            self.tally.count(self.moment, rounds=1, rolled_back=1)
        else:
            self.tally.count(self.moment, rounds=1, orders=1, cents=cents(told["total"]))
        self.pause = 2 * self.think * plan.thinking

    def _ask(self, operation: str, path: str, body: str | None = None) -> dict[str, str]:
        """A page's marks, and the time that it took."""
        begun = time.monotonic()
        how = {} if body is None else {"data": body, "headers": FORM}
        response = self.client.request("GET" if body is None else "POST", path, name=operation, **how)
        told = marks(response.status_code, response.content, operation)
        self.moment = time.monotonic()
        self.spent += self.moment - begun
        self.tally.add(operation, self.moment - begun, self.moment)
        return told


def _form(fields: dict[str, str]) -> str:
    from urllib.parse import urlencode

    return urlencode(fields)


def main() -> None:
    """Drive one shop as it is asked on the standard input."""
    asked = json.loads(sys.stdin.readline())
    print("ready", flush=True)
    start = float(sys.stdin.readline())
    begin = start + asked["ramp"] + asked["warmup"]
    end = begin + asked["seconds"]
    Customer.tally = tally = Tally(begin, end)
    Customer.shop, Customer.think = Shop(asked["size"], asked["data_seed"]), asked["think"]
    Customer.mark = asked["mark"]
    environment = Environment(user_classes=[Customer], host=asked["address"], stop_timeout=LAST_ROUND)
    runner = environment.create_local_runner()

    def until(moment: float) -> float:
        """Wait; returns the processor's time so far.  A failure ends the wait."""
        while tally.failure is None and (left := moment - time.monotonic()) > 0:
            gevent.sleep(min(left, 0.2))
        return time.process_time()

    until(start)
    users = asked["threads"]
    runner.start(users, spawn_rate=users / max(asked["ramp"], 0.001))
    before = until(begin)
    after = until(end)
    runner.quit()
    print(json.dumps({**tally.told(), "cpu_seconds": after - before}))


if __name__ == "__main__":
    main()

"""The client's side of the applications' load: tries what a site does, starts the load generators, asks them all for
the same point, and says what it came to, in the same words for every workload."""

import collections
import contextlib
import json
import math
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from said import WrongAnswerError, digits, say, step
from visits import Visitor, alone

# All begin at the same moment, so many seconds after they were asked.
BEGIN = 0.5
Generator = subprocess.Popen[str]


def run(**forms: Callable[..., None]) -> None:
    """Do what the first argument names with the others; an answer that is wrong ends the program with its words."""
    form, *words = sys.argv[1:]
    try:
        forms[form](*words)
    except (WrongAnswerError, OSError) as error:
        sys.exit(f"{form}: {error}")


def try_all(kind: type[Visitor], hosts: list[str], operations: Iterable[str], **asked: Any) -> None:
    """Let a visitor who is no load do every operation once at each site, and say so; asked: as of visits.Point."""
    for number, site in enumerate(hosts):
        visitor = alone(kind, site, **asked)
        for operation in operations:
            with step(operation):
                visitor.do(operation)
        say(checked=number, operations=list(operations))


def books(site: str, path: str) -> dict[str, Any]:
    """What the databases of a site hold, as it says at a path."""
    without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with without_proxy.open(site + path, timeout=120) as answer:
        return json.load(answer)


def say_books(kind: str, hosts: list[str], path: str) -> list[dict[str, Any]]:
    """Say what the databases of every site hold, each under a key with its number, and return that."""
    found = [books(site, path) for site in hosts]
    for number, one in enumerate(found):
        say(**{kind: number}, **one)
    return found


def sites(addresses: str, ports: str) -> list[str]:
    """The address of every site: as many ports at each address, those of a system one after another."""
    hosts, numbers = addresses.split(","), ports.split(",")
    return [f"http://{hosts[at * len(hosts) // len(numbers)]}:{port}" for at, port in enumerate(numbers)]


@contextlib.contextmanager
def generators(program: str) -> Iterator[list[Generator]]:
    """A load generator for each of the client's processors, all of them ready.

    program: file beside this one.
    """
    command = [sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), program)]
    with contextlib.ExitStack() as all_of_them:
        running = []
        for _ in os.sched_getaffinity(0):
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            all_of_them.enter_context(process)
            all_of_them.callback(process.kill)
            running.append(process)
        for process in running:
            _answer(process)
        yield running


def _answer(process: Generator) -> str:
    assert process.stdout
    line = process.stdout.readline()
    if not line:
        raise WrongAnswerError(f"a load generator ended with exit code {process.wait()}")
    return line


def point(running: list[Generator], name: str, users: int, asked: dict[str, Any]) -> dict[str, Any]:
    """Run `users` at every site, and return what they met, all generators together.

    asked: as of users.Point, without `begin` and `mine`.  Raises WrongAnswerError where something was wrong.
    """
    everybody = range(users * len(asked["sites"]))
    used = running[: min(len(everybody), len(running))]
    begin = time.time() + BEGIN
    for at, process in enumerate(used):
        assert process.stdin
        process.stdin.write(json.dumps({**asked, "begin": begin, "mine": list(everybody[at :: len(used)])}) + "\n")
        process.stdin.flush()
    met = [json.loads(_answer(process)) for process in used]
    wrong = [word for one in met for word in one["wrong"]]
    if wrong:
        raise WrongAnswerError(f"{name}: {wrong[0]}")

    def summed(key: str) -> dict[str, int]:
        return dict(sum((collections.Counter(one[key]) for one in met), collections.Counter()))

    samples: dict[str, list[float]] = collections.defaultdict(list)
    for one in met:
        for operation, values in one["samples"].items():
            samples[operation] += values
    lags, spent = [lag for one in met for lag in one["lags"]], [one["cpu_seconds"] for one in met]
    cpus, seconds = len(os.sched_getaffinity(0)), asked["seconds"]
    load = {
        "seconds": seconds,
        "came": sum(one["came"] for one in met),
        "generators": len(met),
        "cpus": cpus,
        "cpu_seconds": digits(sum(spent), 9),
        "share": digits(sum(spent) / (seconds * cpus)),
        "busiest_share": digits(max(spent) / seconds),
        "waited": len(lags),
        "late_seconds": digits(sum(lags) / len(lags), 9) if lags else 0.0,
    }
    sums = {key: summed(key) for key in ("began", "counted", "in_all")}
    return {**sums, "samples": {name: sorted(values) for name, values in samples.items()}, "load": load}


def say_operations(
    name: str,
    operations: Iterable[str],
    met: dict[str, Any],
    share: float,
    limits: dict[str, float] | None = None,
) -> dict[str, int]:
    """Say what each operation of a point came to; how many answers were late of those with a limit (seconds)."""
    late = {}
    for operation in operations:
        values, told = met["samples"].get(operation, []), {}
        if limits and operation in limits:
            late[operation] = sum(value > limits[operation] for value in values)
            told = {"within_seconds": digits(limits[operation], 9), "late": late[operation]}
        count = met["began"].get(operation, 0) if limits else len(values)
        say(operation=operation, of=name, count=count, **told, **summary(values, share))
    return late


def summary(values: list[float], share: float) -> dict[str, float]:
    """Sum, mean, a percentile (the nearest rank) and the largest of sorted latencies in seconds."""
    if not values:
        return {}
    rank = values[max(0, math.ceil(share * len(values)) - 1)]
    told = {"sum_seconds": digits(sum(values), 9), "mean_ms": digits(1e3 * sum(values) / len(values))}
    return {**told, f"p{100 * share:.0f}_ms": digits(1e3 * rank), "max_ms": digits(1e3 * values[-1])}

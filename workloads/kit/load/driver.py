#!/usr/bin/python3 -B
"""The client of a web application: tries its operations, loads it, and prints what it stores.

Usage: driver.py check ADDRESSES PORTS KEY VALUE...   does every operation at every site
       driver.py books KIND ADDRESSES PORTS           prints what the databases hold
       driver.py load ADDRESSES PORTS KEY VALUE...    loads all sites with `users` each
       driver.py generate                             is a load generator

A site is an address with a port, of which each address has as many; both have commas between them.
The application's users are `Visitor` in visitor.py.  KEY VALUE: settings of user.Point, with those
of the application; `seed` and `lap` decide all draws.  A wrong answer ends the program.
"""

import atexit
import collections
import itertools
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from report import WrongAnswerError, digits, report
from visitor import Visitor

# All generators begin at the same moment, so many seconds after they have got the point.
BEGIN = 0.5
Generator = subprocess.Popen[str]
Settings = dict[str, Any]


def run(*forms: Callable[..., None]) -> None:
    """Call the function that the first argument names, with the other arguments."""
    name, *arguments = sys.argv[1:]
    try:
        {form.__name__: form for form in forms}[name](*arguments)
    except (WrongAnswerError, OSError) as error:
        sys.exit(f"{name}: {error}")


def read_sites(addresses: str, ports: str) -> list[str]:
    """The address of every site."""
    hosts, numbers = addresses.split(","), ports.split(",")
    sites = enumerate(numbers)
    return [f"http://{hosts[at * len(hosts) // len(numbers)]}:{port}" for at, port in sites]


def read_settings(addresses: str, ports: str, *pairs: str) -> Settings:
    """The settings of a point, as the command line has them."""
    settings: Settings = {"sites": read_sites(addresses, ports), "coming": Visitor.coming}
    for key, text in zip(pairs[::2], pairs[1::2], strict=True):
        try:
            settings[key] = json.loads(text)
        except ValueError:
            settings[key] = text
    return settings


def check(*arguments: str) -> None:
    """Do every operation once at each site, without load."""
    from generator import users

    settings = read_settings(*arguments)
    count = len(settings["sites"])
    settings |= {"begin": 0, "ramp": 0, "seconds": 0, "mine": list(range(count))}
    settings["seed"] = f"check-{settings['seed']:x}"
    for number, user in enumerate(users(Visitor, settings, count)):
        user.check()
        report(checked=number, operations=list(Visitor.tried))


def read_books(site: str) -> dict[str, Any]:
    """What the databases of a site hold."""
    # Not above: in a load generator gevent comes before whatever imports ssl.
    import urllib.request

    without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with without_proxy.open(site + Visitor.books, timeout=120) as answer:
        books: dict[str, Any] = json.load(answer)
    return books


def books(kind: str, addresses: str, ports: str) -> None:
    """Print what the databases of every site hold, under a key with the site's number."""
    for number, site in enumerate(read_sites(addresses, ports)):
        report(**{kind: number}, **read_books(site))


def load(*arguments: str) -> None:
    """Load all sites at the same time, and print the results."""
    settings = read_settings(*arguments)
    settings["seed"] = f"{settings['seed'] + settings['lap']:x}-{settings['users']}"
    measure(start_generators(), f"users-{settings['users']}", settings)


def start_generators() -> list[Generator]:
    """A load generator for each of the client's processors, all of them ready."""
    command = [sys.executable, "-B", os.path.abspath(__file__), "generate"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(command, **pipes) for _ in os.sched_getaffinity(0)]
    for process in running:
        atexit.register(process.kill)
        _answer(process)
    return running


def _answer(process: Generator) -> str:
    assert process.stdout
    line = process.stdout.readline()
    if not line:
        raise WrongAnswerError(f"a load generator ended with exit code {process.wait()}")
    return line


def generate() -> None:
    """Be a load generator."""
    from generator import serve

    serve(Visitor)


def measure(
    running: list[Generator],
    name: str,
    settings: Settings,
    judge: Callable[[dict[str, int], dict[str, int], float], dict[str, Any]] = lambda *_: {},
) -> dict[str, Any]:
    """Run a point, print and return its results.

    judge: from the counts of operations, those that were late, and the mean delay in seconds, more
    fields of the line of totals.  Raises WrongAnswerError if anything was wrong.
    """
    sites = settings["sites"]
    report(point=name, **{**settings, "sites": len(sites)})
    everybody = range(settings["users"] * len(sites))
    used = running[: len(everybody)]
    begin = time.time() + BEGIN
    for at, process in enumerate(used):
        assert process.stdin
        mine = list(everybody[at :: len(used)])
        process.stdin.write(json.dumps({**settings, "begin": begin, "mine": mine}) + "\n")
        process.stdin.flush()
    results = [json.loads(_answer(process)) for process in used]
    for each in results:
        for error in each["wrong"]:
            raise WrongAnswerError(f"{name}: {error}")
    sums: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for each in results:
        for key in ("began", "counted", "in_all"):
            sums[key].update(each[key])
    counts, late = {}, {}
    for operation in Visitor.operations:
        samples = sorted(itertools.chain(*(each["samples"].get(operation, []) for each in results)))
        counts[operation] = sums["began"][operation] if Visitor.paced else len(samples)
        limits = {}
        if limit := Visitor.limit(operation, settings):
            late[operation] = sum(sample > limit for sample in samples)
            limits = {"within_seconds": digits(limit, 9), "late": late[operation]}
        report(operation=operation, of=name, count=counts[operation], **limits, **summary(samples))
    total = sum(counts.values()) if Visitor.paced else next(iter(counts.values()))
    lags = [lag for each in results for lag in each["lags"]]
    spent = [each["cpu_seconds"] for each in results]
    cpus, seconds = len(os.sched_getaffinity(0)), settings["seconds"]
    totals = {
        "total": total,
        "rate": digits(total / seconds),
        "counted": sums["counted"],
        "in_all": sums["in_all"],
        "seconds": seconds,
        "came": sum(each["came"] for each in results),
        "share": digits(sum(spent) / (seconds * cpus)),
        "busiest_share": digits(max(spent) / seconds),
        "late_seconds": digits(sum(lags) / len(lags), 9) if lags else 0.0,
    }
    totals |= judge(counts, late, totals["late_seconds"])
    report(drove=name, **totals)
    report(end=name)
    return totals


def summary(samples: list[float]) -> dict[str, float]:
    """Sum, mean, a percentile (the nearest rank) and maximum of sorted latencies in seconds."""
    if not samples:
        return {}
    rank = max(0, math.ceil(Visitor.percentile / 100 * len(samples)) - 1)
    return {
        "sum_seconds": digits(sum(samples), 9),
        "mean_ms": digits(1e3 * sum(samples) / len(samples)),
        f"p{Visitor.percentile}_ms": digits(1e3 * samples[rank]),
        "max_ms": digits(1e3 * samples[-1]),
    }


if __name__ == "__main__":
    run(check, books, load, generate)

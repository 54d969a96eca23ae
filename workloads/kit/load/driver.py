#!/usr/bin/python3 -B
"""The client of a web application: tries its operations, loads it, and prints its books.

Usage: driver.py check ADDRESSES PORTS KEY VALUE...   does every operation once at every site
       driver.py books KIND ADDRESSES PORTS           prints the books of every site
       driver.py load ADDRESSES PORTS KEY VALUE...    loads every site with `users` users

ADDRESSES and PORTS are lists with commas.  A site is an address with a port; every address has the
same number of ports.  The users are of the application's class `Visitor` in visitor.py.  KEY VALUE
are settings of user.Point, with those of the application; all draws follow from `seed` and `lap`.
The program ends at the first wrong answer.
"""

import atexit
import collections
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from report import WrongAnswerError, print_json_line, round_digits
from visitor import Visitor

# Seconds from the start of a point until all load generators begin, at the same moment.
BEGIN_AFTER = 0.5
Generator = subprocess.Popen[str]
Settings = dict[str, Any]


def run_command(**commands: Callable[..., None]) -> None:
    """Call the function that the first argument of the program names, with the others as texts.

    commands: the functions by their names on the command line; workload.yaml has these command
    lines.
    After a wrong answer or an error of the system the program ends with a message and the status 1.
    """
    name, *arguments = sys.argv[1:]
    try:
        commands[name](*arguments)
    except (WrongAnswerError, OSError) as error:
        sys.exit(f"{name}: {error}")


def make_site_urls(addresses: str, ports: str) -> list[str]:
    """Return the URL of every site, in the order of the ports: a site is known by its number in it.

    addresses, ports: lists with commas; each address has the same number of ports, in its order.
    """
    hosts, ports_of_sites = addresses.split(","), ports.split(",")
    urls = []
    for number, port in enumerate(ports_of_sites):
        host = hosts[number * len(hosts) // len(ports_of_sites)]
        urls.append(f"http://{host}:{port}")
    return urls


def read_settings(addresses: str, ports: str, *pairs: str) -> Settings:
    """Return the settings of a point from the command line.

    pairs: keys, each followed by its value, which is JSON or else a text.
    The settings also have `sites`, the URLs, and `coming`.  The keys are those that user.Point and
    the application's Visitor read, and that the parser finds in the first object of a point.
    """
    settings: Settings = {
        "sites": make_site_urls(addresses, ports),
        "coming": Visitor.arrival_share,
    }
    for key, text in zip(pairs[::2], pairs[1::2], strict=True):
        try:
            settings[key] = json.loads(text)
        except ValueError:
            settings[key] = text
    return settings


def check_sites(*arguments: str) -> None:
    """Do every operation once at each site, without load, and print an object for each site.

    arguments: of read_settings.  Raises WrongAnswerError at the first wrong answer.
    """
    # Imported here: gevent, which it brings, would change the modules of the other commands.
    from generator import make_users

    settings = read_settings(*arguments)
    sites = len(settings["sites"])
    settings |= {"begin": 0, "ramp": 0, "seconds": 0, "user_numbers": list(range(sites))}
    # No name that a checking user gives is given again under load.
    settings["seed"] = f"check-{settings['seed']:x}"
    for number, user in enumerate(make_users(settings)):
        user.check_operations()
        print_json_line(checked=number, operations=list(Visitor.checked_operations))


def fetch_books(site: str) -> dict[str, Any]:
    """Return the books of a site: counts and faults of its databases, by keys of the application.

    site: its URL.  Raises OSError if there is no answer within two minutes.
    """
    # Imported late: in check_sites gevent must come before all that imports ssl.
    import urllib.request

    # Without the proxies of the environment's variables.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(site + Visitor.books_path, timeout=120) as answer:
        books: dict[str, Any] = json.load(answer)
    return books


def print_books(kind: str, addresses: str, ports: str) -> None:
    """Print the books of every site, after the site's number, whose key is `kind`.

    kind: "opened" before the load, and "closed" after it, as kit.applications expects.
    """
    for number, site in enumerate(make_site_urls(addresses, ports)):
        print_json_line(**{kind: number}, **fetch_books(site))


def load_sites(*arguments: str) -> None:
    """Load all sites at the same time, and print the results.

    arguments: of read_settings, among them `users`, the number at each site.
    """
    settings = read_settings(*arguments)
    # Other draws in each lap, and for each number of users.
    settings["seed"] = f"{settings['seed'] + settings['lap']:x}-{settings['users']}"
    measure_point(start_generators(), f"users-{settings['users']}", settings)


def start_generators() -> list[Generator]:
    """Start a load generator for each of the client's CPUs, and wait until all are ready.

    They run one point after another (generator.serve_points), and are ended when this program
    ends.
    """
    command = [sys.executable, "-B", os.path.join(os.path.dirname(__file__), "generator.py")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    generators = [subprocess.Popen(command, **pipes) for _ in os.sched_getaffinity(0)]
    for generator in generators:
        atexit.register(_end_generator, generator)
        _read_line(generator)
    return generators


def _end_generator(generator: Generator) -> None:
    """Kill a load generator, and wait until it has ended.

    The kernel adds the CPU time of a child to its parent's only then.  Strata takes the client's
    CPU time from this program, and would else take the generator's for that of a foreign process.
    """
    generator.kill()
    generator.wait()


def _read_line(generator: Generator) -> str:
    """Return the next line that a load generator prints.

    Raises WrongAnswerError if it ended.
    """
    assert generator.stdout
    line = generator.stdout.readline()
    if not line:
        raise WrongAnswerError(f"a load generator ended with exit code {generator.wait()}")
    return line


def measure_point(
    generators: list[Generator],
    name: str,
    settings: Settings,
    judge: Callable[[dict[str, int], dict[str, int], float], dict[str, Any]] = lambda *_: {},
) -> dict[str, Any]:
    """Run a point; print its results, and return the line of totals.

    name: the name of the point.  settings: see a Point, and `users`, the number at each site.
    judge: returns more fields for the totals, from the counts of operations, the numbers of late
    ones, and the mean delay in seconds.
    kit.applications.LoadResults reads the printed objects.
    Raises WrongAnswerError if any answer was wrong.
    """
    print_json_line(point=name, **{**settings, "sites": len(settings["sites"])})
    results = _run_generators(generators, settings)
    errors = [error for result in results for error in result["errors"]]
    if errors:
        raise WrongAnswerError(f"{name}: {errors[0]}")
    counts, late = _print_operations(name, settings, results)
    # The first operation of an application that is not paced is made of all others.
    total = sum(counts.values()) if Visitor.paced else counts[Visitor.operations[0]]
    delays = [delay for result in results for delay in result["delays"]]
    cpu_seconds = [result["cpu_seconds"] for result in results]
    cpus, seconds = len(os.sched_getaffinity(0)), settings["seconds"]
    totals = {
        "total": total,
        "rate": round_digits(total / seconds),
        "counted": _sum_counters(results, "counted"),
        "in_all": _sum_counters(results, "in_all"),
        "seconds": seconds,
        "came": sum(result["arrived"] for result in results),
        "share": round_digits(sum(cpu_seconds) / (seconds * cpus)),
        "busiest_share": round_digits(max(cpu_seconds) / seconds),
        "late_seconds": round_digits(sum(delays) / len(delays), 9) if delays else 0.0,
    }
    totals |= judge(counts, late, totals["late_seconds"])
    print_json_line(drove=name, **totals)
    print_json_line(end=name)
    return totals


def _print_operations(
    name: str, settings: Settings, results: list[dict[str, Any]]
) -> tuple[dict[str, int], dict[str, int]]:
    """Print a line for each operation: its count, its late answers, and its latency.

    name: the name of the point.  results: of the load generators, as generator.run_point returns
    them. kit.applications.LoadResults expects the lines in the order of Visitor.operations.
    Returns the counts of all operations, and the numbers of late answers of those with a limit.
    """
    counts: dict[str, int] = {}
    late: dict[str, int] = {}
    began = _sum_counters(results, "began")
    for operation in Visitor.operations:
        samples: list[float] = []
        for result in results:
            samples += result["samples"].get(operation, [])
        samples.sort()
        counts[operation] = began[operation] if Visitor.paced else len(samples)
        fields = {"of": name, "count": counts[operation]}
        if limit := Visitor.find_latency_limit(operation, settings):
            late[operation] = sum(sample > limit for sample in samples)
            fields |= {"within_seconds": round_digits(limit, 9), "late": late[operation]}
        print_json_line(operation=operation, **fields, **_summarize_latencies(samples))
    return counts, late


def _run_generators(generators: list[Generator], settings: Settings) -> list[dict[str, Any]]:
    """Run a point with its users shared among the load generators; return the generators' results.

    With fewer users than generators, the last generators get no point and have no result.
    Raises WrongAnswerError if a generator ended.
    """
    numbers = range(settings["users"] * len(settings["sites"]))
    used = generators[: len(numbers)]
    begin = time.time() + BEGIN_AFTER
    for at, generator in enumerate(used):
        assert generator.stdin
        # Users with neighbouring numbers are of different load generators.
        point = {**settings, "begin": begin, "user_numbers": list(numbers[at :: len(used)])}
        generator.stdin.write(json.dumps(point) + "\n")
        generator.stdin.flush()
    return [json.loads(_read_line(generator)) for generator in used]


def _sum_counters(results: list[dict[str, Any]], key: str) -> collections.Counter[str]:
    """Return the sums of the counters that the load generators' results have at a key."""
    total: collections.Counter[str] = collections.Counter()
    for result in results:
        total.update(result[key])
    return total


def _summarize_latencies(samples: list[float]) -> dict[str, float]:
    """Return sum, mean, a percentile (the nearest rank) and maximum of latencies.

    samples: sorted latencies in seconds.  Returns no fields for no samples.
    The parsers read the keys; that of the percentile is, for example, `p99_ms`.
    """
    if not samples:
        return {}
    rank = max(0, math.ceil(Visitor.percentile / 100 * len(samples)) - 1)
    return {
        "sum_seconds": round_digits(sum(samples), 9),
        "mean_ms": round_digits(1e3 * sum(samples) / len(samples)),
        f"p{Visitor.percentile}_ms": round_digits(1e3 * samples[rank]),
        "max_ms": round_digits(1e3 * samples[-1]),
    }


if __name__ == "__main__":
    run_command(check=check_sites, books=print_books, load=load_sites)

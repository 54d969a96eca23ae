#!/usr/bin/python3 -B
"""The client: checks what the auctions answer, and searches for the highest number of users whom they serve in time.

Usage: driver.py check ADDRESSES PORTS MOST_USERS DATA_SEED POLL_SECONDS ITEM_SECONDS SEED
       driver.py search ADDRESSES PORTS MOST_USERS START RESOLUTION CONFIRMATIONS CYCLE RAMP SECONDS SEED
Addresses and ports have commas between them: a site for each.  Everything that is not as it should be is an error.
"""

import contextlib
import json
import math
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator

import chain
import search
from data_set import PERSONS_OF_A_USER, open_auctions
from visitor import WrongAnswerError

# Seconds within which bids that were taken are decided after the load.
SETTLED = 60
# The load generators begin at the same moment, so many seconds after they were asked.
BEGIN = 0.3


def say(**what: object) -> None:
    """Print an object, at once."""
    print(json.dumps(what), flush=True)


def digits(value: float, count: int) -> float:
    """A value, rounded to some significant digits."""
    return float(f"{value:.{count}g}")


def sites(addresses: str, ports: str) -> list[str]:
    """The address of every site."""
    return [f"http://{host}:{port}" for host, port in zip(addresses.split(","), ports.split(","), strict=True)]


def books(site: str) -> dict:
    """What a site's books hold."""
    without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with without_proxy.open(f"{site}/api/books", timeout=120) as answer:
        return json.load(answer)


def check(addresses: str, ports: str, most: str, data_seed: str, poll: str, item: str, seed: str) -> None:
    """Do every operation at every site, and compare each answer with the data and with arithmetic."""
    from check import Check
    from data_set import Auctions

    for number, site in enumerate(sites(addresses, ports)):
        done = Check(site, Auctions(int(most), int(data_seed)), float(poll), float(item), int(seed)).run()
        say(checked=number, operations=done)


@contextlib.contextmanager
def generators() -> Iterator[list[subprocess.Popen[str]]]:
    """A load generator for each of the client's processors."""
    program = [sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "load.py")]
    with contextlib.ExitStack() as all_of_them:
        running = []
        for _ in os.sched_getaffinity(0):
            process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            all_of_them.enter_context(process)
            all_of_them.callback(process.kill)
            running.append(process)
        for process in running:
            assert process.stdout
            process.stdout.readline()
        yield running


def ask(running: list[subprocess.Popen[str]], asked: dict) -> list[dict]:
    """What the users of all load generators met in one probe.  Raises WrongAnswerError where something was wrong."""
    count = asked["users"] * len(asked["sites"])
    used = running[: min(count, len(running))]
    begin = time.time() + BEGIN
    for number, process in enumerate(used):
        assert process.stdin
        mine = list(range(number, count, len(used)))
        process.stdin.write(json.dumps({**asked, "begin": begin, "mine": mine}) + "\n")
        process.stdin.flush()
    told = []
    for process in used:
        assert process.stdout
        line = process.stdout.readline()
        if not line:
            raise WrongAnswerError(f"a load generator ended with exit code {process.wait()}")
        told.append(json.loads(line))
    wrong = [word for one in told for word in one["wrong"]]
    if wrong:
        raise WrongAnswerError(f"with {asked['users']} users: {wrong[0]}")
    return told


def summary(operation: str, count: int, values: list[float], cycle: float) -> dict:
    """Number, sum, mean and 99th percentile of latencies (seconds), and how many came too late."""
    within = chain.limit(operation, cycle)
    if within is None or not values:
        return {"count": count}
    values = sorted(values)
    p99 = values[max(0, math.ceil(0.99 * len(values)) - 1)]
    return {
        "count": count,
        "late": sum(value > within for value in values),
        "within_seconds": digits(within, 9),
        "sum_seconds": digits(sum(values), 9),
        "mean_ms": digits(1e3 * sum(values) / len(values), 6),
        "p99_seconds": digits(p99, 9),
        "p99_ms": digits(1e3 * p99, 6),
        "max_ms": digits(1e3 * values[-1], 6),
    }


def tell(name: str, told: list[dict], asked: dict) -> bool:
    """Print what one probe came to; returns whether it passed."""
    cycle, seconds = asked["cycle"], asked["seconds"]
    began = {operation: sum(one["began"][operation] for one in told) for operation in chain.MIX}
    late: dict[str, int] = {}
    for operation, count in began.items():
        values = [value for one in told for value in one["samples"].get(operation, [])]
        found = summary(operation, count, values, cycle)
        if operation in chain.LIMITS:
            late[operation] = found.get("late", 0)
        say(operation=operation, **found)
    lags = [lag for one in told for lag in one["lags"]]
    lag = digits(sum(lags) / len(lags), 9) if lags else 0.0
    spent, cpus = [one["cpu_seconds"] for one in told], len(os.sched_getaffinity(0))
    failing = search.failing(began, late, lag, cycle)
    total = sum(began.values())
    say(
        drove=name,
        came=sum(one["came"] for one in told),
        total=total,
        seconds=seconds,
        rate=digits(total / seconds, 6),
        bids=sum(one["bids"] for one in told),
        generators=len(told),
        cpus=cpus,
        cpu_seconds=digits(sum(spent), 9),
        share=digits(sum(spent) / (seconds * cpus), 6),
        busiest_share=digits(max(spent) / seconds, 6),
        waited=len(lags),
        late_seconds=lag,
        passed=not failing,
        failing=failing,
    )
    return not failing


def settled(hosts: list[str], bids: int) -> list[dict]:
    """The books of all sites once so many bids were decided, or when that takes too long."""
    until = time.monotonic() + SETTLED
    while True:
        found = [books(host) for host in hosts]
        if sum(one["bids"] for one in found) >= bids or time.monotonic() > until:
            return found
        time.sleep(0.1)


def find(
    addresses: str,
    ports: str,
    most: str,
    start: str,
    resolution: str,
    confirmations: str,
    cycle: str,
    ramp: str,
    seconds: str,
    seed: str,
) -> None:
    """Try one number of users after another, until the search is over."""
    hosts = sites(addresses, ports)
    opened = [books(host) for host in hosts]
    for number, found in enumerate(opened):
        say(opened=number, **found)
    looking = search.Search(int(start), int(most), float(resolution), int(confirmations))
    probes = bids = 0
    with generators() as running:
        while (users := looking.next()) is not None:
            probes += 1
            name = f"probe-{probes}"
            asked = {"users": users, "cycle": float(cycle), "ramp": float(ramp), "seconds": float(seconds)}
            # Another chance for each probe, so that one that is tried again is not the same.
            drawn = f"{seed}x{probes}"
            say(point=name, sites=len(hosts), auctions=open_auctions(users), **asked, seed=int(seed))
            told = ask(running, {**asked, "sites": hosts, "persons": PERSONS_OF_A_USER, "seed": drawn})
            bids += sum(one["bids"] for one in told)
            looking.note(users, tell(name, told, asked))
            say(end=name)
    for number, found in enumerate(settled(hosts, sum(one["bids"] for one in opened) + bids)):
        say(closed=number, **found)
    say(found=looking.found, fails=looking.fails, probes=probes, bids=bids)
    say(done=True)


def main(form: str, *words: str) -> int:
    """Do what is asked; an answer that is wrong ends it with its words and 1."""
    try:
        {"check": check, "search": find}[form](*words)
    except (WrongAnswerError, OSError) as error:
        print(f"driver.py {form}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

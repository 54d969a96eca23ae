#!/usr/bin/python3 -B
"""The client of the shops: checks what they answer, loads them, and looks at their books.

Usage: shopper.py check ADDRESSES PORTS SIZE DATA_SEED SEED
       shopper.py point ADDRESSES PORTS SIZE DATA_SEED USERS RAMP WARMUP SECONDS THINK SEED
       shopper.py finish ADDRESSES PORTS
PORTS has the ports of the first system, then those of the second, in the order of ADDRESSES.  For a point each shop has
a load generator of its own (load.py), a process, with USERS users.
"""

import collections
import contextlib
import json
import math
import os
import subprocess
import sys

from answers import WrongAnswerError

OPERATIONS = ["order", "login", "new", "browse", "purchase"]


def addresses(hosts: str, ports: str) -> list[str]:
    """The address of each shop."""
    systems, numbers = hosts.split(","), ports.split(",")
    each = len(numbers) // len(systems)
    return [f"http://{systems[index // each]}:{port}" for index, port in enumerate(numbers)]


def say(**told: object) -> None:
    """One line of the log."""
    print(json.dumps(told), flush=True)


def check(shops: list[str], size: str, data_seed: str, seed: str) -> None:
    """Check every shop, and say what its books hold from then on."""
    from check import Check, account
    from data_set import Shop

    for number, address in enumerate(shops):
        checked = Check(address, Shop(size, int(data_seed)), int(seed)).run()
        say(opened=number, checked=checked, **account(address))


def finish(shops: list[str]) -> None:
    """Say what the books of every shop hold at the end; they must balance."""
    from check import account

    for number, address in enumerate(shops):
        say(closed=number, **account(address))
    say(done=True)


def point(shops: list[str], size: str, data_seed: str, users: str, *rest: str) -> None:
    """Load all shops at the same time, and say what was measured."""
    ramp, warmup, seconds, think = (float(word) for word in rest[:4])
    seed = int(rest[4])
    name = f"threads-{users}"
    load = {"ramp": ramp, "warmup": warmup, "seconds": seconds, "think": think, "threads": int(users)}
    say(point=name, shops=len(shops), size=size, **load, seed=seed)
    asked = [
        {**load, "address": address, "size": size, "data_seed": int(data_seed), "mark": f"s{seed}x{number}x{users}"}
        for number, address in enumerate(shops)
    ]
    told = run_generators(asked)
    for number, one in enumerate(told):
        if one["failure"]:
            raise WrongAnswerError(f"shop {number} under load: {one['failure']}")
    counts = sum((collections.Counter(one["counts"]) for one in told), collections.Counter())
    if not counts["rounds"]:
        raise WrongAnswerError(f"no order was finished within {seconds:g} s")
    keys = ["rounds", "orders", "rolled_back", "searches", "found"]
    keys += ["all_orders", "all_rolled_back", "all_customers", "all_cents"]
    spent = [one["cpu_seconds"] for one in told]
    cpus = len(os.sched_getaffinity(0))
    say(
        drove=name,
        **{key: counts[key] for key in keys},
        orders_per_minute=60 * counts["rounds"] / seconds,
        driver_percent=digits(100 * sum(spent) / (cpus * seconds), 6),
        driver_cpu_seconds=digits(sum(spent), 9),
        busiest_cpu_seconds=digits(max(spent), 6),
        cpus=cpus,
    )
    for operation in OPERATIONS:
        say(operation=operation, of=name, **summary([one["operations"].get(operation) for one in told]))
    say(end=name)


def run_generators(asked: list[dict]) -> list[dict]:
    """Run a load generator for each shop; they begin at the same moment.

    Raises WrongAnswerError where one ends badly.
    """
    import time

    program = [sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "load.py")]
    with contextlib.ExitStack() as all_of_them:
        running = []
        for one in asked:
            process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            all_of_them.enter_context(process)
            all_of_them.callback(process.kill)
            tell(process, json.dumps(one))
            running.append(process)
        for process in running:
            assert process.stdout
            process.stdout.readline()
        start = time.monotonic() + 0.5
        for process in running:
            tell(process, str(start))
        told = []
        for number, process in enumerate(running):
            assert process.stdout
            words = process.stdout.read()
            if process.wait() != 0:
                raise WrongAnswerError(f"the load generator of shop {number} ended with exit code {process.returncode}")
            told.append(json.loads(words))
        return told


def tell(process: subprocess.Popen[str], line: str) -> None:
    """Give a line to a process; that it has ended already is seen later."""
    assert process.stdin
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    except (BrokenPipeError, ValueError):
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def summary(parts: list[dict | None]) -> dict:
    """Count, mean, 95th percentile (of classes that are at most 1 % wide) and longest time of an operation, in ms."""
    times: collections.Counter[float] = collections.Counter()
    for part in parts:
        for milliseconds, count in (part or {}).get("times", []):
            times[milliseconds] += count
    total = times.total()
    if total == 0:
        return {"count": 0}
    whole = [part for part in parts if part]
    spent, p95 = sum(part["sum_ms"] for part in whole), percentile(times, 0.95)
    # What is told twice cannot be changed unnoticed.
    told = {"count": total, "sum_ms": digits(spent, 9), "mean_ms": digits(spent / total, 6)}
    longest = max(part["max_ms"] for part in whole)
    return {**told, "p95_ms": p95, "p95_us": round(1000 * p95, 3), "max_ms": digits(longest, 6)}


def digits(value: float, count: int) -> float:
    """A value, rounded to some significant digits."""
    return float(f"{value:.{count}g}")


def percentile(times: collections.Counter[float], share: float) -> float:
    """The smallest time that so large a share of the times do not exceed."""
    rank, seen = math.ceil(share * times.total()), 0
    for milliseconds in sorted(times):
        seen += times[milliseconds]
        if seen >= rank:
            return milliseconds
    raise ValueError("no times")


def main(form: str, hosts: str, ports: str, *words: str) -> int:
    """Do what is asked; an answer that is wrong ends it with its words and 1."""
    try:
        {"check": check, "point": point, "finish": finish}[form](addresses(hosts, ports), *words)
    except WrongAnswerError as error:
        print(f"shopper: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

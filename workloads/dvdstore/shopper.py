#!/usr/bin/python3 -B
"""The client of the shops: tries what they do, loads them, and says what their books hold.

Usage: shopper.py check ADDRESSES PORTS SIZE DATA_SEED SEED
       shopper.py point ADDRESSES PORTS SIZE DATA_SEED USERS RAMP WARMUP SECONDS THINK SEED LAP
       shopper.py books KIND ADDRESSES PORTS
PORTS has the ports of the first system, then those of the second, in the order of ADDRESSES.
"""

from drive import generators, point, run, say_books, say_operations, sites, try_all
from said import WrongAnswerError, digits, say
from visitor import Customer

OPERATIONS = ["order", "login", "new", "browse", "purchase"]


def check(addresses: str, ports: str, size: str, data_seed: str, seed: str) -> None:
    """Buy something in every shop, as somebody whom it knows and as somebody new."""
    try_all(Customer, sites(addresses, ports), ["login", "new"], size=size, data_seed=int(data_seed), seed=seed)


def books(kind: str, addresses: str, ports: str) -> None:
    """Say what the books of every shop hold."""
    say_books(kind, sites(addresses, ports), "/account.php")


def load(addresses: str, ports: str, size: str, data_seed: str, users: str, *rest: str) -> None:
    """Load all shops at the same time, and say what was measured; rest: ramp, warm-up, seconds, think time, seed,
    lap.
    """
    shops, name, seed, lap = sites(addresses, ports), f"threads-{users}", int(rest[4]), int(rest[5])
    ramp, warmup, seconds, think = map(float, rest[:4])
    asked = {"ramp": ramp, "warmup": warmup, "seconds": seconds, "think": think}
    say(point=name, shops=len(shops), size=size, **asked, threads=int(users), seed=seed, lap=lap)
    asked |= {"sites": shops, "coming": 1, "size": size, "data_seed": int(data_seed), "seed": f"{seed}x{lap}x{users}"}
    with generators("visitor.py") as running:
        met = point(running, name, int(users), asked)
    counted, in_all = met["counted"], met["in_all"]
    if not counted.get("rounds"):
        raise WrongAnswerError(f"no order was finished within {seconds:g} s")
    say_operations(name, OPERATIONS, met, 0.95)
    counts = {key: counted.get(key, 0) for key in ("orders", "rolled_back", "searches", "found")}
    sums = {f"all_{key}": in_all.get(key, 0) for key in ("orders", "rolled_back", "customers", "cents")}
    total = counted["rounds"]
    say(drove=name, total=total, rate=digits(total / seconds), **counts, **sums, **met["load"])
    say(end=name)


if __name__ == "__main__":
    run(check=check, point=load, books=books)

#!/usr/bin/python3 -B
"""The client of the shops: checks what they answer, loads them, and looks at their books.

Usage: shopper.py check ADDRESSES PORTS SIZE DATA_SEED SEED
       shopper.py open ADDRESSES PORTS
       shopper.py point ADDRESSES PORTS SIZE DATA_SEED USERS RAMP WARMUP SECONDS THINK SEED LAP
       shopper.py finish ADDRESSES PORTS
PORTS has the ports of the first system, then those of the second, in the order of ADDRESSES.
"""

from check import compare
from drive import books, generators, point, run, say_operations, sites
from said import WrongAnswerError, digits, say
from visitor import Customer
from visits import alone

OPERATIONS = ["order", "login", "new", "browse", "purchase"]
BOOKS = "/account.php"


def check(addresses: str, ports: str, size: str, data_seed: str, seed: str) -> None:
    """Check every shop."""
    for number, shop in enumerate(sites(addresses, ports)):
        say(shop=number, checked=compare(alone(Customer, shop, size=size, data_seed=int(data_seed), seed=seed)))


def begin(addresses: str, ports: str) -> None:
    """Say what the books of every shop hold."""
    for number, shop in enumerate(sites(addresses, ports)):
        say(opened=number, **books(shop, BOOKS))


def finish(addresses: str, ports: str) -> None:
    """Say what the books of every shop hold at the end."""
    for number, shop in enumerate(sites(addresses, ports)):
        say(closed=number, **books(shop, BOOKS))
    say(done=True)


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
    run(check=check, open=begin, point=load, finish=finish)

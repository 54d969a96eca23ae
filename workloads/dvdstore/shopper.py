#!/usr/bin/python3 -B
"""The client of the shops: checks what they answer, loads them, and looks at their books.

Usage: shopper.py check ADDRESSES PORTS SIZE DATA_SEED SEED
       shopper.py point ADDRESSES PORTS SIZE DATA_SEED USERS RAMP WARMUP SECONDS THINK SEED
       shopper.py finish ADDRESSES PORTS
PORTS has the ports of the first system, then those of the second, in the order of ADDRESSES.
"""

import sys

from drive import generators, point, say_operations, sites
from said import WrongAnswerError, digits, say

OPERATIONS = ["order", "login", "new", "browse", "purchase"]


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


def load(shops: list[str], size: str, data_seed: str, users: str, *rest: str) -> None:
    """Load all shops at the same time, and say what was measured."""
    ramp, warmup, seconds, think = (float(word) for word in rest[:4])
    seed, name = int(rest[4]), f"threads-{users}"
    asked = {"ramp": ramp, "warmup": warmup, "seconds": seconds, "think": think}
    say(point=name, shops=len(shops), size=size, **asked, threads=int(users), seed=seed)
    asked |= {"sites": shops, "coming": 1, "size": size, "data_seed": int(data_seed), "seed": f"{seed}x{users}"}
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


def main(form: str, hosts: str, ports: str, *words: str) -> int:
    """Do what is asked; an answer that is wrong ends it with its words and 1."""
    try:
        {"check": check, "point": load, "finish": finish}[form](sites(hosts, ports), *words)
    except (WrongAnswerError, OSError) as error:
        print(f"shopper: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

#!/usr/bin/python3 -B
"""The client: checks what the auctions answer, and searches for the highest number of users whom they serve in time.

Usage: driver.py check ADDRESSES PORTS MOST_USERS DATA_SEED SEED
       driver.py search ADDRESSES PORTS MOST_USERS START RESOLUTION CONFIRMATIONS CYCLE RAMP SECONDS SEED
Addresses and ports have commas between them: a site for each.  Everything that is not as it should be is an error.
"""

import time
from subprocess import Popen

import chain
import search
from check import compare
from data_set import Auctions, open_auctions
from drive import books, generators, point, run, say_operations, sites
from said import digits, say
from visitor import Bidder
from visits import alone

# Seconds within which bids that were taken are decided after the load.
SETTLED = 60
BOOKS = "/api/books"


def check(addresses: str, ports: str, most: str, data_seed: str, seed: str) -> None:
    """Do every operation at every site, and compare what is answered with the data."""
    for number, site in enumerate(sites(addresses, ports)):
        compare(alone(Bidder, site, users=int(most), seed=seed), Auctions(int(most), int(data_seed)))
        say(checked=number, operations=list(chain.MIX))


def probe(running: list[Popen[str]], name: str, users: int, asked: dict) -> tuple[bool, int]:
    """Try a number of users, and say what came of it; whether it passed, and how many bids were taken."""
    cycle = asked["cycle"]
    met = point(running, name, users, asked)
    limits = {operation: limit for operation in chain.MIX if (limit := chain.limit(operation, cycle))}
    late = say_operations(name, chain.MIX, met, 0.99, limits)
    began = {operation: met["began"].get(operation, 0) for operation in chain.MIX}
    failing = search.failing(began, late, met["load"]["late_seconds"], cycle)
    total, bids = sum(began.values()), met["in_all"].get("bids", 0)
    told = {"total": total, "rate": digits(total / asked["seconds"]), "bids": bids, **met["load"]}
    say(drove=name, **told, passed=not failing, failing=failing)
    return not failing, bids


def settled(hosts: list[str], bids: int) -> list[dict]:
    """The books of all sites once so many bids were decided, or when that takes too long."""
    until = time.monotonic() + SETTLED
    while True:
        found = [books(host, BOOKS) for host in hosts]
        if sum(one["bids"] for one in found) >= bids or time.monotonic() > until:
            return found
        time.sleep(0.1)


def find(addresses: str, ports: str, most: str, start: str, resolution: str, confirmations: str, *rest: str) -> None:
    """Try one number of users after another, until the search is over; rest: cycle, ramp, seconds and seed."""
    hosts, seed = sites(addresses, ports), int(rest[3])
    cycle, ramp, seconds = map(float, rest[:3])
    opened = [books(host, BOOKS) for host in hosts]
    for number, found in enumerate(opened):
        say(opened=number, **found)
    looking = search.Search(int(start), int(most), float(resolution), int(confirmations))
    probes = bids = 0
    with generators("visitor.py") as running:
        while (users := looking.next()) is not None:
            probes += 1
            name = f"probe-{probes}"
            asked = {"users": users, "cycle": cycle, "ramp": ramp, "seconds": seconds}
            say(point=name, sites=len(hosts), auctions=open_auctions(users), **asked, seed=seed)
            # Another chance for each probe, so that one that is tried again is not the same; users come in the first
            # part of the ramp.
            asked |= {"sites": hosts, "coming": 0.75, "seed": f"{seed}x{probes} {users}"}
            passed, taken = probe(running, name, users, asked)
            bids += taken
            looking.note(users, passed)
            say(end=name)
    for number, found in enumerate(settled(hosts, sum(one["bids"] for one in opened) + bids)):
        say(closed=number, **found)
    say(found=looking.found, fails=looking.fails, probes=probes, bids=bids)
    say(done=True)


if __name__ == "__main__":
    run(check=check, search=find)

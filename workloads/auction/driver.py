#!/usr/bin/python3 -B
"""The client: tries what the auctions do, and searches for the highest number of users whom they serve in time.

Usage: driver.py check ADDRESSES PORTS MOST_USERS SEED
       driver.py search ADDRESSES PORTS MOST_USERS START RESOLUTION CONFIRMATIONS CYCLE RAMP SECONDS SEED LAP
Addresses and ports have commas between them: a site for each.  Everything that is not as it should be is an error.
"""

import time
from subprocess import Popen

import chain
import search
from data_set import open_auctions
from drive import books, generators, point, run, say_books, say_operations, sites, try_all
from said import digits, say
from visitor import Bidder

# Seconds within which bids that were taken are decided after the load.
SETTLED = 60
BOOKS = "/api/books"


def bids(hosts: list[str]) -> int:
    """How many bids all sites have decided."""
    return sum(books(host, BOOKS)["bids"] for host in hosts)


def settle(hosts: list[str], decided: int) -> None:
    """Wait until so many bids were decided; where that takes too long the books will tell."""
    until = time.monotonic() + SETTLED
    while bids(hosts) < decided and time.monotonic() < until:
        time.sleep(0.1)


def check(addresses: str, ports: str, most: str, seed: str) -> None:
    """Do every operation at every site, and let the bid of each be decided."""
    hosts = sites(addresses, ports)
    before = bids(hosts)
    try_all(Bidder, hosts, chain.MIX, users=int(most), seed=seed)
    settle(hosts, before + len(hosts))


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


def find(addresses: str, ports: str, most: str, start: str, resolution: str, confirmations: str, *rest: str) -> None:
    """Try one number of users after another, until the search is over; rest: cycle, ramp, seconds, seed and lap."""
    hosts, seed = sites(addresses, ports), int(rest[3]) + int(rest[4])
    cycle, ramp, seconds = map(float, rest[:3])
    decided = sum(one["bids"] for one in say_books("opened", hosts, BOOKS))
    looking = search.Search(int(start), int(most), float(resolution), int(confirmations))
    probes = placed = 0
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
            placed += taken
            looking.note(users, passed)
            say(end=name)
    settle(hosts, decided + placed)
    say_books("closed", hosts, BOOKS)
    say(found=looking.found, fails=looking.fails, probes=probes, bids=placed)
    say(done=True)


if __name__ == "__main__":
    run(check=check, search=find)

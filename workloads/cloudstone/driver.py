#!/usr/bin/python3 -B
"""The client: tries what the application does, loads it, and says what its tables hold.

Usage: driver.py check ADDRESSES PORTS LOADED_USERS SEED
       driver.py load ADDRESSES PORTS LOADED_USERS SEED USERS CYCLE_SECONDS RAMP_SECONDS SECONDS LAP
       driver.py books KIND ADDRESSES PORTS

Ports and addresses have commas between them: an instance of the application for each port, as many at each address.
`load` runs USERS users at every instance, and counts operations that begin after the ramp.  What is not as it should be
is an error.
"""

import chain
from drive import generators, point, run, say_books, say_operations, sites, try_all
from said import digits, say
from visitor import User


def books(kind: str, addresses: str, ports: str) -> None:
    """Say what the tables hold, and how much in them breaks a rule that should always hold."""
    say_books(kind, sites(addresses, ports), "/status")


def check(addresses: str, ports: str, loaded_users: str, seed: str) -> None:
    """Do every operation at every instance."""
    asked = {"loaded_users": int(loaded_users), "seed": f"check-{int(seed):x}"}
    try_all(User, sites(addresses, ports), chain.OPERATIONS, **asked)


def load(addresses: str, ports: str, loaded_users: str, seed: str, users: str, *rest: str) -> None:
    """Run the users of every instance, and say what they met; rest: cycle, ramp, measured time in seconds, and lap."""
    hosts, name = sites(addresses, ports), f"users-{users}"
    cycle, ramp, seconds = map(float, rest[:3])
    # Whoever is added has another name in each lap.
    own = int(seed) + int(rest[3])
    say(point=name, users=int(users), instances=len(hosts), cycle_seconds=cycle, seed=own)
    asked = {"sites": hosts, "ramp": ramp, "coming": 0.5, "seconds": seconds, "cycle": cycle}
    asked |= {"loaded_users": int(loaded_users), "seed": f"{own:x}-{users}"}
    with generators("visitor.py") as running:
        met = point(running, name, int(users), asked)
    say_operations(name, chain.OPERATIONS, met, 0.9)
    total = sum(met["began"].values())
    added = {operation: met["in_all"].get(operation, 0) for operation in ("AddPerson", "AddEvent")}
    say(drove=name, total=total, rate=digits(total / seconds), added=added, **met["load"])
    say(end=name)


if __name__ == "__main__":
    run(check=check, load=load, books=books)

"""Who and what there is at first, as the loader makes it and the driver knows it."""

import math
import random
import zlib

from rows import WORDS

# As published: persons by users, of whom there are at least so many; tags and events follow.
PERSONS_OF_A_USER = 100
LEAST_USERS = 25


def sizes(users: int) -> dict[str, int]:
    """How many persons, tags and events are loaded for a number of users."""
    users = max(users, LEAST_USERS)
    tags = round(5000 * math.tanh(users / 20000))
    return {"persons": PERSONS_OF_A_USER * users, "tags": tags, "events": 3 * tags}


def username(number: int) -> str:
    """The name of a person that was loaded, from 1."""
    return f"person{number}"


def password(number: int) -> str:
    """What that person logs in with."""
    return f"open-{number}-sesame"


def tag(number: int) -> str:
    """A tag that was loaded, from 1."""
    return f"{WORDS[number % len(WORDS)]}-{number}"


def address(chance: random.Random) -> list[str]:
    """Street, second line (mostly empty), city, state, ZIP code and country."""
    street, city = chance.choice(WORDS).capitalize(), chance.choice(WORDS).capitalize()
    second = f"Flat {chance.randint(1, 99)}" if chance.random() < 0.2 else ""
    return [
        f"{chance.randint(1, 999)} {street} Street",
        second,
        f"{city}ton",
        "CA",
        f"{chance.randint(10000, 99999)}",
        "USA",
    ]


def place(parts: list[str]) -> tuple[str, str]:
    """Latitude and longitude of an address, as the geocoder gives them."""
    checksum = zlib.crc32(", ".join(part for part in parts if part).encode())
    return f"{checksum % 120_000_001 / 1e6 - 60:.6f}", f"{checksum // 7 % 360_000_001 / 1e6 - 180:.6f}"

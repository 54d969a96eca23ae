"""The rows and files that every cell begins with; all follow from users and seed.

Usage: data_set.py FOLDER USERS SEED

As rows.write_tables; FOLDER/files gets the files that rows name.
"""

import collections
import datetime
import hashlib
import itertools
import math
import random
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from rows import WORDS, picture, text, write_tables

# As published: persons by users, of whom there are at least so many; tags and events follow.
PERSONS_OF_A_USER = 100
LEAST_USERS = 25
# Persons and events share so many pictures of each kind: more would only fill the disk.
PICTURES = 20
# The events were posted in this year, and take place in the next.
YEAR = datetime.datetime(2025, 1, 1)
MINUTES = 365 * 24 * 60


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
    first, code = f"{chance.randint(1, 999)} {street} Street", f"{chance.randint(10000, 99999)}"
    return [first, second, f"{city}ton", "CA", code, "USA"]


def place(parts: list[str]) -> tuple[str, str]:
    """Latitude and longitude of an address, as the geocoder gives them."""
    checksum = zlib.crc32(", ".join(part for part in parts if part).encode())
    latitude, longitude = checksum % 120_000_001 / 1e6 - 60, checksum // 7 % 360_000_001 / 1e6 - 180
    return f"{latitude:.6f}", f"{longitude:.6f}"


def _telephone(chance: random.Random) -> str:
    return f"555-{chance.randint(1000000, 9999999)}"


def _people(chance: random.Random, persons: range) -> Iterator[tuple]:
    for number in persons:
        salt, shown = f"{chance.getrandbits(64):016x}", f"person-{number % PICTURES}"
        secret = hashlib.sha256((salt + password(number)).encode()).hexdigest()
        names = text(chance, 2).title().split()
        contact = f"{username(number)}@example.org", _telephone(chance)
        rest = text(chance, 40), "UTC", f"{shown}.png", f"{shown}-small.png", number
        yield (number, username(number), salt, secret, *names, *contact, *rest)


def _posted(chance: random.Random, events: range, persons: range) -> Iterator[tuple]:
    for number in events:
        created = YEAR + datetime.timedelta(minutes=chance.randrange(MINUTES))
        when = YEAR + datetime.timedelta(minutes=MINUTES + chance.randrange(MINUTES))
        telephone, shown = _telephone(chance), f"event-{number % PICTURES}"
        files = f"{shown}.png", f"{shown}-small.png", f"{shown}.txt"
        texts = text(chance, 4).capitalize(), text(chance, 12), text(chance, 120)
        of = chance.choice(persons), len(persons) + number
        yield (number, *texts, telephone, when, created, *files, *of)


def _comments(chance: random.Random, events: range, persons: range) -> Iterator[tuple]:
    for number in events:
        for _ in range(chance.randint(0, 20)):
            when = YEAR + datetime.timedelta(minutes=chance.randrange(MINUTES))
            yield number, chance.choice(persons), chance.randint(1, 5), text(chance, 20), when


def tables(users: int, seed: int) -> Iterator[tuple[str, Iterable[tuple]]]:
    """Every table with its rows, in order; all rows of one are to be taken before the next."""
    chance, counts = random.Random(seed), sizes(users)
    persons, events, tags = (range(1, counts[of] + 1) for of in ("persons", "events", "tags"))
    # Every tag is on an event at least: the first three events of its number.
    tagged = {event: {(event - 1) % len(tags) + 1} for event in events}
    for more in tagged.values():
        more.update(chance.sample(tags, min(chance.randint(0, 6), len(tags))))
    had = sorted((number, event) for event, numbers in tagged.items() for number in numbers)
    count = collections.Counter(number for number, _ in had)
    addresses = (address(chance) for _ in range(len(persons) + len(events)))
    yield "address", ((number, *parts, *place(parts)) for number, parts in enumerate(addresses, 1))
    yield "person", _people(chance, persons)

    def friends(person: int) -> Iterator[tuple]:
        drawn = chance.sample(persons, min(chance.randint(2, 28), len(persons) - 1))
        return ((person, friend) for friend in sorted(drawn) if friend != person)

    def attendees(event: int) -> Iterator[tuple]:
        drawn = chance.sample(persons, chance.randint(10, 100))
        return ((person, event) for person in sorted(drawn))

    yield "person_person", itertools.chain.from_iterable(map(friends, persons))
    yield "socialevent", _posted(chance, events, persons)
    yield "socialeventtag", ((number, tag(number), count[number]) for number in tags)
    yield "socialeventtag_socialevent", had
    yield "person_socialevent", itertools.chain.from_iterable(map(attendees, events))
    comments = enumerate(_comments(chance, events, persons), 1)
    yield "comments_rating", ((number, *comment) for number, comment in comments)
    last = {"person": len(persons), "socialevent": len(events), "socialeventtag": len(tags)}
    yield "id_gen", sorted({**last, "address": len(persons) + len(events)}.items())


def files(seed: int) -> Iterator[tuple[str, bytes]]:
    """Every file that rows name."""
    chance = random.Random(-seed - 1)
    for number in range(PICTURES):
        yield f"person-{number}.png", picture(chance, 100, 100, 3)
        yield f"person-{number}-small.png", picture(chance, 60, 60, 3)
        yield f"event-{number}.png", picture(chance, 160, 120, 3)
        yield f"event-{number}-small.png", picture(chance, 60, 60, 3)
        yield f"event-{number}.txt", text(chance, 1500).encode()


if __name__ == "__main__":
    folder, seed = sys.argv[1], int(sys.argv[3])
    write_tables(folder, tables(int(sys.argv[2]), seed))
    Path(folder, "files").mkdir()
    for name, content in files(seed):
        Path(folder, "files", name).write_bytes(content)

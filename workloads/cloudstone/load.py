"""Make the data that every cell starts with: rows of all tables, and the files that they name.

Usage: load.py FOLDER USERS SEED

All follows from the number of users and the seed.  FOLDER gets a file of rows for each table, `load.sql`, which
reads them in, `count.sql`, which counts and sums up the rows that then are in the tables, `counted`, what that must
give, and `files/`.
"""

import datetime
import hashlib
import os
import random
import sys
import zlib
from collections.abc import Iterable, Iterator

from population import address, password, place, sizes, tag, username
from rows import picture, text

# The columns of each table, in the order in which the tables are filled.
TABLES = {
    "address": "addressid street1 street2 city state zip country latitude longitude",
    "person": "personid username salt password_hash firstname lastname email telephone summary timezone image thumbnail"
    " addressid",
    "person_person": "personid friendid",
    "socialevent": "socialeventid title summary description telephone takes_place created image thumbnail literature"
    " submitterid addressid",
    "socialeventtag": "socialeventtagid tag refcount",
    "socialeventtag_socialevent": "socialeventtagid socialeventid",
    "person_socialevent": "personid socialeventid",
    "comments_rating": "commentid socialeventid personid rating comment created",
    "id_gen": "gen_key gen_value",
}
# Persons and events share so many pictures of each kind: more would only fill the disk.
PICTURES = 20
# The events were posted in this year, and take place in the next.
YEAR = datetime.datetime(2025, 1, 1)
MINUTES = 365 * 24 * 60


def tables(users: int, seed: int) -> Iterator[tuple[str, Iterable[tuple]]]:
    """Every table with its rows, in order."""
    chance = random.Random(seed)
    there = sizes(users)
    persons, events = range(1, there["persons"] + 1), range(1, there["events"] + 1)

    def addresses() -> Iterator[tuple]:
        for number in range(1, len(persons) + len(events) + 1):
            parts = address(chance)
            yield (number, *parts, *place(parts))

    def people() -> Iterator[tuple]:
        for number in persons:
            salt, shown = f"{chance.getrandbits(64):016x}", f"person-{number % PICTURES}"
            secret = hashlib.sha256((salt + password(number)).encode()).hexdigest()
            names = text(chance, 2).title().split()
            mail, telephone = f"{username(number)}@example.org", f"555-{chance.randint(1000000, 9999999)}"
            pictures = f"{shown}.png", f"{shown}-small.png"
            yield (
                number,
                username(number),
                salt,
                secret,
                *names,
                mail,
                telephone,
                text(chance, 40),
                "UTC",
                *pictures,
                number,
            )

    def friends() -> Iterator[tuple]:
        for number in persons:
            some = chance.sample(persons, min(chance.randint(2, 28), len(persons) - 1))
            yield from ((number, friend) for friend in sorted(some) if friend != number)

    def posted() -> Iterator[tuple]:
        for number in events:
            created = YEAR + datetime.timedelta(minutes=chance.randrange(MINUTES))
            when = YEAR + datetime.timedelta(minutes=MINUTES + chance.randrange(MINUTES))
            telephone, shown = f"555-{chance.randint(1000000, 9999999)}", f"event-{number % PICTURES}"
            files = f"{shown}.png", f"{shown}-small.png", f"{shown}.txt"
            texts = text(chance, 4).capitalize(), text(chance, 12), text(chance, 120)
            submitter = chance.choice(persons)
            yield (number, *texts, telephone, when, created, *files, submitter, len(persons) + number)

    # Every tag is on an event at least: the first three events of its number.
    tagged = {event: {(event - 1) % there["tags"] + 1} for event in events}
    for tags in tagged.values():
        tags.update(chance.sample(range(1, there["tags"] + 1), min(chance.randint(0, 6), there["tags"])))
    had = sorted((number, event) for event, tags in tagged.items() for number in tags)
    count = dict.fromkeys(range(1, there["tags"] + 1), 0)
    for number, _ in had:
        count[number] += 1

    def attendees() -> Iterator[tuple]:
        for number in events:
            some = chance.sample(persons, chance.randint(10, 100))
            yield from ((person, number) for person in sorted(some))

    comments = 0

    def said() -> Iterator[tuple]:
        nonlocal comments
        for number in events:
            for _ in range(chance.randint(0, 20)):
                comments += 1
                when = YEAR + datetime.timedelta(minutes=chance.randrange(MINUTES))
                yield comments, number, chance.choice(persons), chance.randint(1, 5), text(chance, 20), when

    yield "address", addresses()
    yield "person", people()
    yield "person_person", friends()
    yield "socialevent", posted()
    yield "socialeventtag", [(number, tag(number), refs) for number, refs in count.items()]
    yield "socialeventtag_socialevent", had
    yield "person_socialevent", attendees()
    yield "comments_rating", said()
    last = {"address": len(persons) + len(events), "person": len(persons), "socialevent": len(events)}
    yield "id_gen", sorted((last | {"socialeventtag": len(count)}).items())


def files(seed: int) -> Iterator[tuple[str, bytes]]:
    """Every file that rows name."""
    chance = random.Random(-seed - 1)
    for number in range(PICTURES):
        yield f"person-{number}.png", picture(chance, 100, 100, 3)
        yield f"person-{number}-small.png", picture(chance, 60, 60, 3)
        yield f"event-{number}.png", picture(chance, 160, 120, 3)
        yield f"event-{number}-small.png", picture(chance, 60, 60, 3)
        yield f"event-{number}.txt", text(chance, 1500).encode()


def main(folder: str, users: int, seed: int) -> None:
    """Write all of it."""
    os.makedirs(f"{folder}/files")
    with (
        open(f"{folder}/load.sql", "w") as load,
        open(f"{folder}/count.sql", "w") as query,
        open(f"{folder}/counted", "w") as counted,
    ):
        for name, rows in tables(users, seed):
            count = total = 0
            with open(f"{folder}/{name}", "w") as file:
                for row in rows:
                    line = "\t".join(map(str, row))
                    file.write(f"{line}\n")
                    count += 1
                    total += zlib.crc32(line.encode())
            columns = TABLES[name].split()
            load.write(f"LOAD DATA LOCAL INFILE '{folder}/{name}' INTO TABLE {name} ({', '.join(columns)});\n")
            query.write(f"SELECT '{name}', COUNT(*), SUM(CRC32(CONCAT_WS('\\t', {', '.join(columns)}))) FROM {name};\n")
            counted.write(f"{name}\t{count}\t{total}\n")
    for name, content in files(seed):
        with open(f"{folder}/files/{name}", "wb") as file:
            file.write(content)


if __name__ == "__main__":
    main(sys.argv[1], max(map(int, sys.argv[2].split(","))), int(sys.argv[3]))

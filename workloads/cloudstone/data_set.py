"""Makes the rows and files with which every cell begins; all follow from users and seed.

All rows share one sequence of random numbers.  The order of the draws and of the columns of a table
(schema.sql) must stay: the data of every seed follow from them.

Usage: data_set.py FOLDER USERS SEED      (writes a file for each table: rows.write_tables)

FOLDER/files gets the pictures and texts that rows name.
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

from rows import WORDS, draw_picture, draw_text, write_tables

# As published: persons for each user, and the smallest number of users for whom data are made.
PERSONS_OF_A_USER = 100
FEWEST_USERS = 25
# All persons share so many pictures, as do all events: more would only fill the disk.
PICTURES = 20
# The events were posted in this year, and take place in the next.
YEAR = datetime.datetime(2025, 1, 1)
MINUTES_OF_A_YEAR = 365 * 24 * 60


def count_rows(users: int) -> dict[str, int]:
    """Return the numbers of `persons`, `tags` and `events` that are made for a number of users.

    The visitor draws rows of these numbers: both must count alike.
    """
    users = max(users, FEWEST_USERS)
    # As in the original's data, there are at most 5000 tags, and three events for each.
    tags = round(5000 * math.tanh(users / 20000))
    return {"persons": PERSONS_OF_A_USER * users, "tags": tags, "events": 3 * tags}


def name_person(person: int) -> str:
    """Return a person's name, which visitors log in with; persons are numbered from 1."""
    return f"person{person}"


def make_password(person: int) -> str:
    """Return a person's password, which the data set holds and visitors log in with."""
    return f"open-{person}-sesame"


def name_tag(tag: int) -> str:
    """Return the text of a tag of the data set, as links have it; tags are numbered from 1."""
    return f"{WORDS[tag % len(WORDS)]}-{tag}"


def draw_address(rng: random.Random) -> list[str]:
    """Draw an address: street, second line (mostly empty), city, state, ZIP code and country."""
    street, city = rng.choice(WORDS).capitalize(), rng.choice(WORDS).capitalize()
    second_line = f"Flat {rng.randint(1, 99)}" if rng.random() < 0.2 else ""
    house, zip_code = rng.randint(1, 999), rng.randint(10000, 99999)
    return [f"{house} {street} Street", second_line, f"{city}ton", "CA", f"{zip_code}", "USA"]


def locate_address(address: list[str]) -> tuple[str, str]:
    """Return latitude and longitude of an address, in degrees, as the geocoder does.

    address: as from draw_address.  The same formula is in geocoder/src/Geocoder.java.
    """
    checksum = zlib.crc32(", ".join(filter(None, address)).encode())
    latitude = checksum % 120_000_001 / 1e6 - 60
    longitude = checksum // 7 % 360_000_001 / 1e6 - 180
    return f"{latitude:.6f}", f"{longitude:.6f}"


def _draw_telephone(rng: random.Random) -> str:
    """Draw a telephone number, such as 555-1234567."""
    return f"555-{rng.randint(1000000, 9999999)}"


class EventData:
    """A data set for a number of users, whose rows share one sequence of random numbers.

    persons, events, tags: their numbers, from 1.
    """

    def __init__(self, users: int, seed: int) -> None:
        """Number the rows; they are drawn as they are consumed."""
        self.rng = random.Random(seed)
        counts = count_rows(users)
        self.persons = range(1, counts["persons"] + 1)
        self.events = range(1, counts["events"] + 1)
        self.tags = range(1, counts["tags"] + 1)

    def list_tables(self) -> Iterator[tuple[str, Iterable[tuple]]]:
        """Yield every table with its rows, in the order of filling.

        Rows are drawn as they are consumed: all rows of a table before the next table.
        """
        pairs = self.draw_tags()
        events_of_tag = collections.Counter(tag for tag, _ in pairs)
        addresses = len(self.persons) + len(self.events)
        yield "address", self.make_addresses(addresses)
        yield "person", map(self.make_person, self.persons)
        yield "person_person", itertools.chain.from_iterable(map(self.draw_friends, self.persons))
        yield "socialevent", map(self.make_event, self.events)
        yield "socialeventtag", ((tag, name_tag(tag), events_of_tag[tag]) for tag in self.tags)
        yield "socialeventtag_socialevent", pairs
        attendees = map(self.draw_attendees, self.events)
        yield "person_socialevent", itertools.chain.from_iterable(attendees)
        yield "comments_rating", self.make_comments()
        last_ids = {"person": len(self.persons), "socialevent": len(self.events)}
        last_ids |= {"socialeventtag": len(self.tags), "address": addresses}
        yield "id_gen", sorted(last_ids.items())

    def draw_tags(self) -> list[tuple[int, int]]:
        """Draw the tags of all events, as sorted pairs of tag and event.

        They are the first draws, since the table of tags counts the events of each.
        Every tag is on at least the three events of its number.
        """
        pairs = []
        for event in self.events:
            tags = {(event - 1) % len(self.tags) + 1}
            count = min(self.rng.randint(0, 6), len(self.tags))
            tags.update(self.rng.sample(self.tags, count))
            pairs += [(tag, event) for tag in tags]
        return sorted(pairs)

    def make_addresses(self, count: int) -> Iterator[tuple]:
        """Yield the rows of addresses, first of all persons, then of all events.

        The columns: number, the address as from draw_address, latitude and longitude.
        """
        for number in range(1, count + 1):
            address = draw_address(self.rng)
            yield number, *address, *locate_address(address)

    def make_person(self, number: int) -> tuple:
        """Return the row of a person, whose address has the same number.

        The columns are those of schema.sql, in its order.  Calls must come in the order of numbers.
        """
        rng, username = self.rng, name_person(number)
        salt = f"{rng.getrandbits(64):016x}"
        secret = hashlib.sha256((salt + make_password(number)).encode()).hexdigest()
        first_name, last_name = draw_text(rng, 2).title().split()
        account = username, salt, secret, first_name, last_name, f"{username}@example.org"
        telephone, summary = _draw_telephone(rng), draw_text(rng, 40)
        picture = f"person-{number % PICTURES}"
        pictures = f"{picture}.png", f"{picture}-small.png"
        return number, *account, telephone, summary, "UTC", *pictures, number

    def make_event(self, number: int) -> tuple:
        """Return the row of an event, whose address comes after those of all persons.

        The columns are those of schema.sql, in its order.  Calls must come in the order of numbers.
        """
        rng, name = self.rng, f"event-{number % PICTURES}"
        created = YEAR + datetime.timedelta(minutes=rng.randrange(MINUTES_OF_A_YEAR))
        minutes = MINUTES_OF_A_YEAR + rng.randrange(MINUTES_OF_A_YEAR)
        takes_place = YEAR + datetime.timedelta(minutes=minutes)
        telephone = _draw_telephone(rng)
        texts = draw_text(rng, 4).capitalize(), draw_text(rng, 12), draw_text(rng, 120)
        files = f"{name}.png", f"{name}-small.png", f"{name}.txt"
        submitter, address = rng.choice(self.persons), len(self.persons) + number
        return number, *texts, telephone, takes_place, created, *files, submitter, address

    def draw_friends(self, person: int) -> list[tuple[int, int]]:
        """Draw the friends of a person, as sorted pairs of person and friend."""
        count = min(self.rng.randint(2, 28), len(self.persons) - 1)
        friends = sorted(self.rng.sample(self.persons, count))
        # The person may be among them, and is then left out: 1 to 28 friends remain.
        return [(person, friend) for friend in friends if friend != person]

    def draw_attendees(self, event: int) -> list[tuple[int, int]]:
        """Draw the attendees of an event, as sorted pairs of person and event."""
        attendees = self.rng.sample(self.persons, self.rng.randint(10, 100))
        return [(person, event) for person in sorted(attendees)]

    def make_comments(self) -> Iterator[tuple]:
        """Yield the rows of the comments on all events, up to 20 on each.

        The columns: number, event, person, rating (1 to 5), text and moment.
        """
        number = 0
        for event in self.events:
            for _ in range(self.rng.randint(0, 20)):
                number += 1
                minutes = self.rng.randrange(MINUTES_OF_A_YEAR)
                person, rating = self.rng.choice(self.persons), self.rng.randint(1, 5)
                created = YEAR + datetime.timedelta(minutes=minutes)
                yield number, event, person, rating, draw_text(self.rng, 20), created


def make_files(seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every file that rows name, in make_person and make_event.

    The order of the draws decides the files of every seed.
    """
    # Other random numbers than those of the rows.
    rng = random.Random(-seed - 1)
    for number in range(PICTURES):
        yield f"person-{number}.png", draw_picture(rng, 100, 100, 3)
        yield f"person-{number}-small.png", draw_picture(rng, 60, 60, 3)
        yield f"event-{number}.png", draw_picture(rng, 160, 120, 3)
        yield f"event-{number}-small.png", draw_picture(rng, 60, 60, 3)
        yield f"event-{number}.txt", draw_text(rng, 1500).encode()


if __name__ == "__main__":
    folder, users, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    write_tables(folder, EventData(users, seed).list_tables())
    Path(folder, "files").mkdir()
    for name, content in make_files(seed):
        Path(folder, "files", name).write_bytes(content)

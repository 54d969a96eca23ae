"""The rows that every cell begins with; each value follows from the seed and its place alone.

Usage: data_set.py USERS SEED FOLDER: a file of rows for each table, and on the standard output a line for each with
its name, the number of its rows and their SHA-256.
"""

import datetime
import hashlib
import random
import struct
import sys
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path


def _words(text: str) -> list[str]:
    return text.split()


# As published: users of an auction.
USERS_OF_AN_AUCTION = 15
PERSONS_OF_A_USER = 2
ITEMS_OF_AN_AUCTION = 10
# Items share so many pictures: more would only fill the disk.
PICTURES = 20
# Cents that everybody has at first.
BALANCE = 1_000_000
CATEGORIES = _words("Books Clocks Coins Furniture Glass Maps Paintings Prints Stamps Toys")
WORDS = _words("""
    amber ancient antique blue brass bright carved copper delicate eastern enamel english engraved fine framed
    french gilded golden green heavy ivory large lacquered little marble northern oak old oval painted pale pearl
    plain rare red round royal rustic silver small southern square tall velvet walnut western white worn yellow
""")
THINGS = _words("""
    atlas basket bell bowl box bracelet brooch cabinet candlestick chair chest clock cup desk doll drawing etching
    fan flute globe goblet jug kettle lamp lantern lock map mask medal mirror necklace plate portrait puzzle ring
    scale screen spoon stool table teapot telescope tray vase violin watch whistle
""")
# When the auctions of the past began, one each minute.
PAST = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)
# In the order in which they are filled.
TABLES = ["people", "auctions", "items", "bids", "purchases", "attendances", "pictures", "images"]


def name(person: int) -> str:
    """What a person is called, from 1."""
    return f"user{person}"


def password(person: int) -> str:
    """What that person logs in with."""
    return f"secret-{person}"


def text(chance: random.Random, count: int) -> str:
    """Some words."""
    return " ".join(chance.choices(WORDS, k=count))


def picture(chance: random.Random, width: int = 96, height: int = 72) -> bytes:
    """A PNG of grey noise over one shade, which packs to some 4 kB."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    shade = chance.randrange(256) & 0xF0
    rows = b"".join(b"\0" + bytes(shade | noise & 0x0F for noise in chance.randbytes(width)) for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    packed = chunk(b"IDAT", zlib.compress(rows, 6))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + packed + chunk(b"IEND", b"")


class Auctions:
    """All that is loaded for a number of users.

    The first auctions are open, as many as the users need; as many more are over, all of whose items were sold.
    """

    def __init__(self, users: int, seed: int) -> None:
        self.users, self.seed = users, seed
        self.persons = PERSONS_OF_A_USER * users
        self.open = open_auctions(users)
        self.all = 2 * self.open

    def chance(self, what: str, number: int) -> random.Random:
        """What decides the values of a row."""
        return random.Random(f"{self.seed} {what} {number}")

    def person(self, number: int) -> dict:
        """A person."""
        chance = self.chance("person", number)
        salt = f"{chance.getrandbits(64):016x}"
        return {
            "id": number,
            "name": name(number),
            "salt": salt,
            "secret": hashlib.sha256((salt + password(number)).encode()).hexdigest(),
            "email": f"{name(number)}@example.org",
            "address": f"{chance.randint(1, 999)} {text(chance, 1).capitalize()} Street",
            "balance": BALANCE,
        }

    def auction(self, number: int) -> dict:
        """An auction; over, where nothing is offered there."""
        chance = self.chance("auction", number)
        kind = CATEGORIES[number % len(CATEGORIES)]
        over = number > self.open
        return {
            "id": number,
            "name": f"{text(chance, 1).capitalize()} {kind.lower()} {number}",
            "category": kind,
            "current": None if over else self.items_of(number)[0],
            "listing": ITEMS_OF_AN_AUCTION if over else 0,
            "seq": 0,
            "price": 0,
            "leader": None,
            "bids": 0,
            "closes": None,
        }

    @staticmethod
    def items_of(auction: int) -> range:
        """The numbers of an auction's items, in the order in which they are offered."""
        first = (auction - 1) * ITEMS_OF_AN_AUCTION + 1
        return range(first, first + ITEMS_OF_AN_AUCTION)

    def item(self, number: int) -> dict:
        """An item; what was sold is its buyer's."""
        chance = self.chance("item", number)
        auction, turn = (number - 1) // ITEMS_OF_AN_AUCTION + 1, (number - 1) % ITEMS_OF_AN_AUCTION
        seller = chance.randint(1, self.persons)
        over = auction > self.open
        return {
            "id": number,
            "title": f"{text(chance, 2).capitalize()} {chance.choice(THINGS)}",
            "description": text(chance, 40),
            "starting": chance.randint(100, 5000),
            "owner": self.sold(number)[-1]["person"] if over else seller,
            "auction": auction,
            "turn": None if over else turn,
        }

    def seller(self, number: int) -> int:
        """Who offered an item."""
        return self.chance("item", number).randint(1, self.persons)

    def sold(self, item: int) -> list[dict]:
        """The bids for an item of the past, the last of which got it."""
        chance = self.chance("bids", item)
        auction, listing = (item - 1) // ITEMS_OF_AN_AUCTION + 1, (item - 1) % ITEMS_OF_AN_AUCTION
        amount, bids = 5000, []
        for person in chance.sample(range(1, self.persons + 1), chance.randint(1, 4)):
            amount += chance.randint(1, 500)
            when = PAST + datetime.timedelta(minutes=auction, seconds=5 * listing + len(bids))
            bids.append({"auction": auction, "listing": listing, "item": item, "person": person, "amount": amount})
            bids[-1] |= {"placed": when, "verdict": "accepted"}
        return bids

    def past(self) -> range:
        """The numbers of the items that were sold."""
        return range(self.items_of(self.open + 1)[0], self.items_of(self.all)[-1] + 1)

    def rows(self, table: str) -> Iterator[tuple]:
        """The rows of a table, in order."""
        yield from getattr(self, f"_{table}")()

    def _people(self) -> Iterator[tuple]:
        yield from (tuple(self.person(number).values()) for number in range(1, self.persons + 1))

    def _auctions(self) -> Iterator[tuple]:
        yield from (tuple(self.auction(number).values()) for number in range(1, self.all + 1))

    def _items(self) -> Iterator[tuple]:
        yield from (tuple(self.item(number).values()) for number in range(1, self.items_of(self.all)[-1] + 1))

    def _bids(self) -> Iterator[tuple]:
        bids = (bid for item in self.past() for bid in self.sold(item))
        for number, bid in enumerate(bids, 1):
            yield number, uuid.UUID(int=self.chance("bid", number).getrandbits(128)), *bid.values()

    def _purchases(self) -> Iterator[tuple]:
        for number, item in enumerate(self.past(), 1):
            last = self.sold(item)[-1]
            amount, when = last["amount"], last["placed"] + datetime.timedelta(seconds=1)
            yield number, last["auction"], last["listing"], item, self.seller(item), last["person"], amount, when

    def _attendances(self) -> Iterator[tuple]:
        number = 0
        for auction in range(self.open + 1, self.all + 1):
            came = PAST + datetime.timedelta(minutes=auction)
            bids = [bid for item in self.items_of(auction) for bid in self.sold(item)]
            for person in sorted({bid["person"] for bid in bids}):
                number += 1
                yield number, auction, person, came, came + datetime.timedelta(minutes=1)

    def _pictures(self) -> Iterator[tuple]:
        for number in range(1, PICTURES + 1):
            yield number, "\\\\x" + self.picture(number).hex()

    def picture(self, number: int) -> bytes:
        """A picture."""
        return picture(self.chance("picture", number))

    def _images(self) -> Iterator[tuple]:
        for number in range(1, self.items_of(self.all)[-1] + 1):
            yield number, self.picture_of(number)

    @staticmethod
    def picture_of(item: int) -> int:
        """The number of an item's picture."""
        return item % PICTURES + 1

    def write(self, table: str, path: Path) -> tuple[int, str]:
        """Write a table's rows as PostgreSQL copies them; their number and SHA-256."""
        digest, count = hashlib.sha256(), 0
        with open(path, "wb") as file:
            for row in self.rows(table):
                line = "\t".join(_written(value) for value in row).encode() + b"\n"
                digest.update(line)
                file.write(line)
                count += 1
        return count, digest.hexdigest()


def open_auctions(users: int) -> int:
    """How many auctions so many users attend."""
    return -(-users // USERS_OF_AN_AUCTION)


def _written(value: object) -> str:
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S+00")
    return r"\N" if value is None else str(value)


def main(users: str, seed: str, folder: str) -> None:
    """Write all tables."""
    auctions = Auctions(int(users), int(seed))
    for table in TABLES:
        count, digest = auctions.write(table, Path(folder, table))
        print(table, count, digest)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The rows that every cell begins with; each value follows from the seed and its place alone.

Usage: data_set.py USERS SEED FOLDER: a file of rows for each table, and on the standard output a line for each with
its name, the number of its rows, their SHA-256, and the column by which they are in order.
"""

import datetime
import hashlib
import random
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

from rows import NAMES, picture, text, write

# As published: users of an auction.
USERS_OF_AN_AUCTION = 15
PERSONS_OF_A_USER = 2
ITEMS_OF_AN_AUCTION = 10
# Items share so many pictures: more would only fill the disk.
PICTURES = 20
# Their width and height.
PICTURE = (96, 72)
# Cents that everybody has at first.
BALANCE = 1_000_000
CATEGORIES = ["Books", "Clocks", "Coins", "Furniture", "Glass", "Maps", "Paintings", "Prints", "Stamps", "Toys"]
THINGS = NAMES["things"]
# The page's own files, as a browser that knows none of them fetches them.
PAGE = {"/": b"<title>Auctions</title>", "/style.css": b"body", "/site.js": b"fetch", "/logo.svg": b"<svg"}
# A page of auctions, as the site gives them.
ON_A_PAGE = 10
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
        items = range(1, self.items_of(self.all)[-1] + 1)
        match table:
            case "people":
                yield from (tuple(self.person(number).values()) for number in range(1, self.persons + 1))
            case "auctions":
                yield from (tuple(self.auction(number).values()) for number in range(1, self.all + 1))
            case "items":
                yield from (tuple(self.item(number).values()) for number in items)
            case "pictures":
                yield from ((number, "\\\\x" + self.picture(number).hex()) for number in range(1, PICTURES + 1))
            case "images":
                yield from ((number, self.picture_of(number)) for number in items)
            case "bids":
                bids = (bid for item in self.past() for bid in self.sold(item))
                for number, bid in enumerate(bids, 1):
                    yield number, uuid.UUID(int=self.chance("bid", number).getrandbits(128)), *bid.values()
            case "purchases":
                for number, item in enumerate(self.past(), 1):
                    auction, listing, _, buyer, amount, placed, _ = self.sold(item)[-1].values()
                    made = placed + datetime.timedelta(seconds=1)
                    yield number, auction, listing, item, self.seller(item), buyer, amount, made
            case "attendances":
                yield from ((number, *one) for number, one in enumerate(self._attended(), 1))

    def _attended(self) -> Iterator[tuple]:
        for auction in range(self.open + 1, self.all + 1):
            came = PAST + datetime.timedelta(minutes=auction)
            for person in sorted({bid["person"] for item in self.items_of(auction) for bid in self.sold(item)}):
                yield auction, person, came, came + datetime.timedelta(minutes=1)

    def picture(self, number: int) -> bytes:
        """A picture."""
        return picture(self.chance("picture", number), *PICTURE)

    @staticmethod
    def picture_of(item: int) -> int:
        """The number of an item's picture."""
        return item % PICTURES + 1


def open_auctions(users: int) -> int:
    """How many auctions so many users attend."""
    return -(-users // USERS_OF_AN_AUCTION)


def main(users: str, seed: str, folder: str) -> None:
    """Write all tables."""
    auctions = Auctions(int(users), int(seed))
    for table in TABLES:
        print(table, *write(Path(folder, table), auctions.rows(table)), 1)


if __name__ == "__main__":
    main(*sys.argv[1:])

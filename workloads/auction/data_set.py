"""Makes the rows with which every cell begins; each row follows from the seed and its number alone.

Usage: data_set.py FOLDER USERS SEED      (writes a file for each table: rows.write_tables)
"""

import datetime
import hashlib
import itertools
import random
import sys
import uuid
from collections.abc import Iterable, Iterator

from rows import NAMES, draw_picture, draw_text, write_tables

# As published: users who attend one auction.
USERS_OF_AN_AUCTION = 15
PERSONS_OF_A_USER = 2
ITEMS_OF_AN_AUCTION = 10
# All items share so many pictures: more would only fill the disk.
PICTURES = 20
# Width and height of a picture, in pixels.
PICTURE_SIZE = (96, 72)
# Cents that every person has at first.
BALANCE = 1_000_000
CATEGORIES = NAMES["categories"]
# The moment when the first of the past auctions began; one more begins each minute.
PAST = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)
MINUTE = datetime.timedelta(minutes=1)


def person_name(person: int) -> str:
    """Return the name of a person; persons are numbered from 1."""
    return f"user{person}"


def person_password(person: int) -> str:
    """Return the password of a person."""
    return f"secret-{person}"


def count_auctions(users: int) -> int:
    """Return the number of auctions that so many users attend."""
    return -(-users // USERS_OF_AN_AUCTION)


def auction_of_item(item: int) -> tuple[int, int]:
    """Return the auction of an item, from 1, and the item's position in it, from 0."""
    auction, position = divmod(item - 1, ITEMS_OF_AN_AUCTION)
    return auction + 1, position


class AuctionData:
    """A data set for a number of users, each with two persons.

    The users attend the first half of the auctions; all items of the others are sold.
    """

    def __init__(self, users: int, seed: int) -> None:
        self.seed = seed
        self.persons = range(1, PERSONS_OF_A_USER * users + 1)
        self.open_auctions = count_auctions(users)
        self.auctions = range(1, 2 * self.open_auctions + 1)
        self.items = range(1, len(self.auctions) * ITEMS_OF_AN_AUCTION + 1)
        self.sold_items = self.items[len(self.items) // 2 :]
        self.bids = {item: list(self._make_bids(item)) for item in self.sold_items}

    def rng(self, kind: str, number: int) -> random.Random:
        """Return the random numbers of one row: `kind` and `number` say of which."""
        return random.Random(f"{self.seed} {kind} {number}")

    def tables(self) -> Iterator[tuple[str, Iterable[tuple]]]:
        """Yield every table with its rows, in the order in which the tables are filled."""
        yield "people", map(self.make_person, self.persons)
        yield "auctions", map(self.make_auction, self.auctions)
        yield "items", map(self.make_item, self.items)
        yield "bids", self.number_bids()
        yield "purchases", itertools.starmap(self.make_purchase, enumerate(self.sold_items, 1))
        yield "attendances", self.make_attendances()
        yield "pictures", map(self.make_picture, range(1, PICTURES + 1))
        yield "images", ((item, item % PICTURES + 1) for item in self.items)

    def make_person(self, number: int) -> tuple:
        """Return the row of a person."""
        rng, name = self.rng("person", number), person_name(number)
        salt = f"{rng.getrandbits(64):016x}"
        secret = hashlib.sha256((salt + person_password(number)).encode()).hexdigest()
        address = f"{rng.randint(1, 999)} {draw_text(rng, 1).capitalize()} Street"
        return number, name, salt, secret, f"{name}@example.org", address, BALANCE

    def make_auction(self, number: int) -> tuple:
        """Return the row of an auction, which is over or offers its first item."""
        is_over = number > self.open_auctions
        category = CATEGORIES[number % len(CATEGORIES)]
        rng = self.rng("auction", number)
        title = f"{draw_text(rng, 1).capitalize()} {category.lower()} {number}"
        current = None if is_over else (number - 1) * ITEMS_OF_AN_AUCTION + 1
        listing = ITEMS_OF_AN_AUCTION if is_over else 0
        return number, title, category, current, listing, 0, 0, None, 0, None

    def make_item(self, number: int) -> tuple:
        """Return the row of an item, whose owner is the buyer if it was sold."""
        rng, (auction, turn) = self.rng("item", number), auction_of_item(number)
        seller = rng.randint(1, len(self.persons))
        title = f"{draw_text(rng, 2).capitalize()} {rng.choice(NAMES['things'])}"
        fields = number, title, draw_text(rng, 40), rng.randint(100, 5000)
        if number in self.bids:
            buyer = self.bids[number][-1][3]
            return *fields, buyer, auction, None
        return *fields, seller, auction, turn

    def _make_bids(self, item: int) -> Iterator[tuple]:
        """Yield the bids for a sold item; the last bidder bought it."""
        rng, (auction, listing) = self.rng("bids", item), auction_of_item(item)
        amount = 5000
        bidders = rng.sample(self.persons, rng.randint(1, 4))
        for position, person in enumerate(bidders):
            amount += rng.randint(1, 500)
            seconds = datetime.timedelta(seconds=5 * listing + position)
            placed = PAST + auction * MINUTE + seconds
            yield auction, listing, item, person, amount, placed, "accepted"

    def number_bids(self) -> Iterator[tuple]:
        """Yield the rows of all bids."""
        bids = itertools.chain.from_iterable(self.bids.values())
        for number, bid in enumerate(bids, 1):
            yield number, uuid.UUID(int=self.rng("bid", number).getrandbits(128)), *bid

    def make_purchase(self, number: int, item: int) -> tuple:
        """Return the row of the purchase of a sold item."""
        auction, listing, _, buyer, amount, placed, _ = self.bids[item][-1]
        seller = self.rng("item", item).randint(1, len(self.persons))
        made = placed + datetime.timedelta(seconds=1)
        return number, auction, listing, item, seller, buyer, amount, made

    def make_attendances(self) -> Iterator[tuple]:
        """Yield the rows of attendances: every bidder attended the auction, from start to end."""
        bids = itertools.chain.from_iterable(self.bids.values())
        pairs = sorted({(auction, person) for auction, _, _, person, *_ in bids})
        for number, (auction, person) in enumerate(pairs, 1):
            begun = PAST + auction * MINUTE
            yield number, auction, person, begun, begun + MINUTE

    def make_picture(self, number: int) -> tuple[int, str]:
        """Return the row of a picture."""
        content = draw_picture(self.rng("picture", number), *PICTURE_SIZE)
        return number, "\\\\x" + content.hex()


if __name__ == "__main__":
    write_tables(sys.argv[1], AuctionData(int(sys.argv[2]), int(sys.argv[3])).tables())

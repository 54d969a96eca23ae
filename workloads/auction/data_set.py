"""Makes the rows with which every cell begins.

Each row follows only from the seed and its number.  The order of the draws for a row and of the
columns of a table (schema.sql) must stay: the data of every seed follow from them.

Usage: data_set.py FOLDER USERS SEED      (writes a file for each table: rows.write_tables)
"""

import datetime
import hashlib
import itertools
import math
import random
import sys
import uuid
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from chain import USERS_OF_AN_AUCTION
from rows import NAMES, draw_picture, draw_text, write_tables

PERSONS_OF_A_USER = 2
ITEMS_OF_AN_AUCTION = 10
# All items share so many pictures: more would only fill the disk.
PICTURES = 20
# Width and height of a picture, in pixels.
PICTURE_SIZE = (96, 72)
# Cents that every person has at first, and the lowest and highest starting price of an item.
BALANCE = 1_000_000
STARTING_PRICES = (100, 5000)
CATEGORIES = NAMES["categories"]
# The moment when the first of the past auctions began; one more begins each minute.
PAST = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)
MINUTE = datetime.timedelta(minutes=1)


def name_person(person: int) -> str:
    """Return a person's name, which the visitor logs in with; persons are numbered from 1."""
    return f"user{person}"


def make_password(person: int) -> str:
    """Return a person's password, which the visitor logs in with."""
    return f"secret-{person}"


def count_auctions(users: int) -> int:
    """Return the number of auctions that so many users attend: the open ones, numbered from 1."""
    return math.ceil(users / USERS_OF_AN_AUCTION)


def locate_item(item: int) -> tuple[int, int]:
    """Return the auction of an item, from 1, and the item's position in it, from 0."""
    auction, position = divmod(item - 1, ITEMS_OF_AN_AUCTION)
    return auction + 1, position


class Bid(NamedTuple):
    """A row of the table `bids` without its number and id; the columns are in their order.

    listing: number of items that were offered in the auction before.  amount: in cents.
    """

    auction: int
    listing: int
    item: int
    person: int
    amount: int
    placed: datetime.datetime
    verdict: str = "accepted"


class AuctionData:
    """A data set for a number of users, each with two persons.

    The users attend the first half of the auctions; all items of the others are sold.
    bids: the bids for each sold item, by its number; the last bidder bought it.
    """

    def __init__(self, users: int, seed: int) -> None:
        """Number the rows, and draw all bids, since items and purchases depend on them."""
        self.seed = seed
        self.persons = range(1, PERSONS_OF_A_USER * users + 1)
        self.open_auctions = count_auctions(users)
        self.auctions = range(1, 2 * self.open_auctions + 1)
        self.items = range(1, len(self.auctions) * ITEMS_OF_AN_AUCTION + 1)
        self.sold_items = self.items[len(self.items) // 2 :]
        self.bids = {item: self._draw_bids(item) for item in self.sold_items}

    def make_rng(self, kind: str, number: int) -> random.Random:
        """Return the random numbers of one row: the same for each call with its kind and number.

        kind: such as "item".  number: the number of the row among those of its kind.
        """
        return random.Random(f"{self.seed} {kind} {number}")

    def list_tables(self) -> Iterator[tuple[str, Iterable[tuple]]]:
        """Yield the name of every table with its rows, in the order of filling.

        The columns of the rows are those of schema.sql, in its order.
        """
        yield "people", map(self.make_person, self.persons)
        yield "auctions", map(self.make_auction, self.auctions)
        yield "items", map(self.make_item, self.items)
        yield "bids", self.make_bids()
        yield "purchases", itertools.starmap(self.make_purchase, enumerate(self.sold_items, 1))
        yield "attendances", self.make_attendances()
        yield "pictures", map(self.make_picture, range(1, PICTURES + 1))
        yield "images", ((item, item % PICTURES + 1) for item in self.items)

    def make_person(self, number: int) -> tuple:
        """Return the row of a person: number, name, salt, secret, e-mail, address and balance.

        This is the order of the table's columns.  A number always gives the same person.
        The secret is the SHA-256 of salt and password; auctions.py computes it at login, too.
        """
        rng, name = self.make_rng("person", number), name_person(number)
        salt = f"{rng.getrandbits(64):016x}"
        secret = hashlib.sha256((salt + make_password(number)).encode()).hexdigest()
        address = f"{rng.randint(1, 999)} {draw_text(rng, 1).capitalize()} Street"
        return number, name, salt, secret, f"{name}@example.org", address, BALANCE

    def make_auction(self, number: int) -> tuple:
        """Return the row of an auction, which is over or offers its first item.

        The columns: number, name, category, current item, listing, seq, price, leader, bids and
        closes.  An auction that is over has no current item.
        """
        category = CATEGORIES[number % len(CATEGORIES)]
        rng = self.make_rng("auction", number)
        name = f"{draw_text(rng, 1).capitalize()} {category.lower()} {number}"
        current, listing = (number - 1) * ITEMS_OF_AN_AUCTION + 1, 0
        if number > self.open_auctions:
            current, listing = None, ITEMS_OF_AN_AUCTION
        # No change, price, leader, bids or time of a sale yet.
        return number, name, category, current, listing, 0, 0, None, 0, None

    def make_item(self, number: int) -> tuple:
        """Return the row of an item: number, title, description, price, owner, auction, turn.

        A sold item belongs to the last bidder, and has no turn.
        The order of the draws binds the data of a seed; make_purchase repeats the first one.
        """
        auction, turn = locate_item(number)
        rng = self.make_rng("item", number)
        # Drawn first, as in make_purchase.
        owner = rng.randint(1, len(self.persons))
        title = f"{draw_text(rng, 2).capitalize()} {rng.choice(NAMES['things'])}"
        description, starting = draw_text(rng, 40), rng.randint(*STARTING_PRICES)
        if number in self.bids:
            owner, turn = self.bids[number][-1].person, None
        return number, title, description, starting, owner, auction, turn

    def _draw_bids(self, item: int) -> list[Bid]:
        """Draw the bids for a sold item, in their order: one to four, each higher than the last.

        The last one bought the item.
        """
        auction, listing = locate_item(item)
        rng = self.make_rng("bids", item)
        # More than every starting price.
        amount = max(STARTING_PRICES)
        bids = []
        for position, person in enumerate(rng.sample(self.persons, rng.randint(1, 4))):
            amount += rng.randint(1, 500)
            # An item every five seconds, and a bid every second.
            seconds = datetime.timedelta(seconds=5 * listing + position)
            placed = PAST + auction * MINUTE + seconds
            bids.append(Bid(auction, listing, item, person, amount, placed))
        return bids

    def make_bids(self) -> Iterator[tuple]:
        """Yield the rows of all bids, numbered from 1: number, id, and the fields of Bid."""
        for number, bid in enumerate(itertools.chain.from_iterable(self.bids.values()), 1):
            yield number, uuid.UUID(int=self.make_rng("bid", number).getrandbits(128)), *bid

    def make_purchase(self, number: int, item: int) -> tuple:
        """Return the row of the purchase of a sold item, which the last bidder paid for.

        The columns: number, auction, listing, item, seller, buyer, amount in cents, and moment.
        """
        bid = self.bids[item][-1]
        # The owner whom make_item draws first.
        seller = self.make_rng("item", item).randint(1, len(self.persons))
        made = bid.placed + datetime.timedelta(seconds=1)
        return number, bid.auction, bid.listing, item, seller, bid.person, bid.amount, made

    def make_attendances(self) -> Iterator[tuple]:
        """Yield the rows of attendances: every bidder attended the auction, from start to end.

        The columns: number, auction, person, and the moments of coming and going.
        """
        bids = itertools.chain.from_iterable(self.bids.values())
        pairs = sorted({(bid.auction, bid.person) for bid in bids})
        for number, (auction, person) in enumerate(pairs, 1):
            begin = PAST + auction * MINUTE
            yield number, auction, person, begin, begin + MINUTE

    def make_picture(self, number: int) -> tuple[int, str]:
        """Return the row of a picture: number, and content as PostgreSQL's COPY reads bytes."""
        content = draw_picture(self.make_rng("picture", number), *PICTURE_SIZE)
        return number, "\\\\x" + content.hex()


if __name__ == "__main__":
    write_tables(sys.argv[1], AuctionData(int(sys.argv[2]), int(sys.argv[3])).list_tables())

"""The rows that every cell begins with; each row follows from the seed and its number alone.

Usage: data_set.py FOLDER USERS SEED      (as rows.write_tables)
"""

import datetime
import hashlib
import random
import sys
import uuid
from collections.abc import Iterable, Iterator

from rows import NAMES, picture, text, write_tables

# As published: users of an auction.
USERS_OF_AN_AUCTION = 15
PERSONS_OF_A_USER = 2
ITEMS_OF_AN_AUCTION = 10
# Items share so many pictures: more would only fill the disk.
PICTURES = 20
# Width and height of a picture.
PICTURE = (96, 72)
# Cents that everybody has at first.
BALANCE = 1_000_000
CATEGORIES = NAMES["categories"]
# When the auctions of the past began, one each minute.
PAST = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)


def name(person: int) -> str:
    """The name of a person, from 1."""
    return f"user{person}"


def password(person: int) -> str:
    """The password of that person."""
    return f"secret-{person}"


def open_auctions(users: int) -> int:
    """How many auctions so many users attend."""
    return -(-users // USERS_OF_AN_AUCTION)


def auction_of(item: int) -> tuple[int, int]:
    """The auction of an item, and the item's place in it from 0."""
    auction, place = divmod(item - 1, ITEMS_OF_AN_AUCTION)
    return auction + 1, place


def _person(chance: random.Random, number: int) -> tuple:
    salt = f"{chance.getrandbits(64):016x}"
    secret = hashlib.sha256((salt + password(number)).encode()).hexdigest()
    address = f"{chance.randint(1, 999)} {text(chance, 1).capitalize()} Street"
    email = f"{name(number)}@example.org"
    return number, name(number), salt, secret, email, address, BALANCE


def _auction(chance: random.Random, number: int, over: bool) -> tuple:
    category = CATEGORIES[number % len(CATEGORIES)]
    title = f"{text(chance, 1).capitalize()} {category.lower()} {number}"
    current = None if over else (number - 1) * ITEMS_OF_AN_AUCTION + 1
    listing = ITEMS_OF_AN_AUCTION if over else 0
    return number, title, category, current, listing, 0, 0, None, 0, None


def _bids(chance: random.Random, item: int, persons: range) -> list[tuple]:
    """The bids for an item of the past, the last of which bought it."""
    auction, listing = auction_of(item)
    amount, bids = 5000, []
    for person in chance.sample(persons, chance.randint(1, 4)):
        amount += chance.randint(1, 500)
        placed = PAST + datetime.timedelta(minutes=auction, seconds=5 * listing + len(bids))
        bids.append((auction, listing, item, person, amount, placed, "accepted"))
    return bids


def tables(users: int, seed: int) -> Iterator[tuple[str, Iterable[tuple]]]:
    """Every table with its rows, in the order in which the tables are filled.

    The users attend the first half of the auctions.  The others are over, and their items sold.
    """

    def chance(kind: str, number: int) -> random.Random:
        return random.Random(f"{seed} {kind} {number}")

    persons, attended = range(1, PERSONS_OF_A_USER * users + 1), open_auctions(users)
    items = range(1, 2 * attended * ITEMS_OF_AN_AUCTION + 1)
    past = items[len(items) // 2 :]
    bids = {item: _bids(chance("bids", item), item, persons) for item in past}
    yield "people", (_person(chance("person", number), number) for number in persons)
    auctions = range(1, 2 * attended + 1)
    yield "auctions", (_auction(chance("auction", n), n, n > attended) for n in auctions)

    def item(number: int) -> tuple:
        drawn, (auction, turn) = chance("item", number), auction_of(number)
        seller = drawn.randint(1, len(persons))
        title = f"{text(drawn, 2).capitalize()} {drawn.choice(NAMES['things'])}"
        texts = title, text(drawn, 40), drawn.randint(100, 5000)
        if number in bids:
            return number, *texts, bids[number][-1][3], auction, None
        return number, *texts, seller, auction, turn

    yield "items", map(item, items)
    placed = enumerate((bid for item in past for bid in bids[item]), 1)
    yield (
        "bids",
        ((n, uuid.UUID(int=chance("bid", n).getrandbits(128)), *bid) for n, bid in placed),
    )

    def purchase(number: int, item: int) -> tuple:
        auction, listing, _, buyer, amount, bid, _ = bids[item][-1]
        seller = chance("item", item).randint(1, len(persons))
        made = bid + datetime.timedelta(seconds=1)
        return number, auction, listing, item, seller, buyer, amount, made

    yield "purchases", (purchase(number, item) for number, item in enumerate(past, 1))
    attended_by = sorted({(bid[0], bid[3]) for item in past for bid in bids[item]})
    minute = datetime.timedelta(minutes=1)
    yield (
        "attendances",
        (
            (number, auction, person, PAST + auction * minute, PAST + (auction + 1) * minute)
            for number, (auction, person) in enumerate(attended_by, 1)
        ),
    )
    drawn = ((n, picture(chance("picture", n), *PICTURE)) for n in range(1, PICTURES + 1))
    yield "pictures", ((number, "\\\\x" + content.hex()) for number, content in drawn)
    yield "images", ((number, number % PICTURES + 1) for number in items)


if __name__ == "__main__":
    write_tables(sys.argv[1], tables(int(sys.argv[2]), int(sys.argv[3])))

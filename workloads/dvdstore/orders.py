"""What a customer of the shop does: one round of the order loop, drawn from a seed."""

import dataclasses
import random

from data_set import CATEGORIES, FIRST, LAST, MOST_LINES, PASSWORD, WORDS, Shop

RETURNING = 0.8
MOST_SEARCHES = 5
MOST_FOUND = 9
MOST_PIECES = 3


@dataclasses.dataclass(frozen=True)
class Round:
    """One round: log in or become a customer, look for DVDs, buy some, and think (a share of twice the think time).

    `login` has the fields of login.php, `searches` those of browse.php, `basket` product to quantity.
    """

    is_new: bool
    login: dict[str, str]
    searches: list[dict[str, str]]
    basket: dict[int, int]
    thinking: float


def draw_round(source: random.Random, shop: Shop, unused: str) -> Round:
    """A round.  unused: a name that no customer has."""
    is_new = source.random() >= RETURNING
    name = unused if is_new else f"user{source.randint(1, shop.customers)}"
    searches = [_search(source) for _ in range(source.randint(1, MOST_SEARCHES))]
    products = source.sample(range(1, shop.products + 1), source.randint(1, MOST_LINES))
    basket = {product: source.randint(1, MOST_PIECES) for product in products}
    login = {"username": name, "password": PASSWORD}
    return Round(is_new, stranger(login) if is_new else login, searches, basket, source.random())


def stranger(login: dict[str, str]) -> dict[str, str]:
    """The fields of new.php for somebody who wants to log in so."""
    first, last = "Nora", "Newman"
    address = {"street": "1 Willow Street", "city": "Wonderville", "country": "Norway", "email": "nora@example.org"}
    rest = {"phone": "5550000000", "card": "4000000000000000", "age": "30", "income": "20000", "gender": "F"}
    return {"first_name": first, "last_name": last, **address, **rest, **login}


def _search(source: random.Random) -> dict[str, str]:
    by = source.choice(["category", "actor", "title"])
    if by == "category":
        words = str(source.randint(1, len(CATEGORIES)))
    elif by == "actor":
        words = f"{source.choice(FIRST)} {source.choice(LAST)}"
    else:
        words = source.choice(WORDS)
    return {"by": by, "words": words, "limit": str(source.randint(1, MOST_FOUND))}

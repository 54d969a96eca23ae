"""A customer of the shop: goes through the order loop again and again."""

import random
import re
import time
import urllib.parse
from typing import Any, NamedTuple

from data_set import CATEGORIES, FIRST, LAST, MOST_LINES, PASSWORD, WORDS, Shop
from said import WrongAnswerError
from visits import Visitor

RETURNING = 0.8
MOST_SEARCHES = 5
MOST_FOUND = 9
MOST_PIECES = 3
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
# What a page says of itself, for programs that read it.
_MAIN = re.compile(rb"<main((?: data-[a-z]+=\"[^\"]*\")+)>")
_MARK = re.compile(r' data-([a-z]+)="([^"]*)"')


class Round(NamedTuple):
    """One round: log in or become a customer, look for DVDs, buy some, and think (a share of twice the think time).

    `entrance` is the page that gets the fields of `login`, login or new; `searches` has the fields of browse.php,
    `basket` product to quantity.
    """

    entrance: str
    login: dict[str, str]
    searches: list[dict[str, str]]
    basket: dict[int, int]
    thinking: float


def draw_round(source: random.Random, shop: Shop, unused: str, operation: str = "order") -> Round:
    """A round, which begins as the operation says where that is an entrance.  unused: a name that no customer has."""
    drawn = "login" if source.random() < RETURNING else "new"
    entrance = drawn if operation == "order" else operation
    known = {"username": f"user{source.randint(1, shop.customers)}", "password": PASSWORD}
    searches = [_search(source) for _ in range(source.randint(1, MOST_SEARCHES))]
    products = source.sample(range(1, shop.products + 1), source.randint(1, MOST_LINES))
    basket = {product: source.randint(1, MOST_PIECES) for product in products}
    login = known if entrance == "login" else stranger(unused)
    return Round(entrance, login, searches, basket, source.random())


def stranger(name: str) -> dict[str, str]:
    """The fields of new.php for somebody who wants that name."""
    first, last = "Nora", "Newman"
    address = {"street": "1 Willow Street", "city": "Wonderville", "country": "Norway", "email": "nora@example.org"}
    rest = {"phone": "5550000000", "card": "4000000000000000", "age": "30", "income": "20000", "gender": "F"}
    return {"first_name": first, "last_name": last, **address, **rest, "username": name, "password": PASSWORD}


def _search(source: random.Random) -> dict[str, str]:
    by = source.choice(["category", "actor", "title"])
    if by == "category":
        words = str(source.randint(1, len(CATEGORIES)))
    elif by == "actor":
        words = f"{source.choice(FIRST)} {source.choice(LAST)}"
    else:
        words = source.choice(WORDS)
    return {"by": by, "words": words, "limit": str(source.randint(1, MOST_FOUND))}


class Customer(Visitor):
    """Somebody who thinks after each order, and whose pages are timed one by one."""

    paced = False
    content = b""
    spent = thinking = answered = 0.0
    rounds = 0

    def __init__(self, *words: Any) -> None:
        super().__init__(*words)
        self.shop = Shop(self.asked["size"], self.asked["data_seed"])

    def next(self) -> str:
        """Always the same."""
        return "order"

    def do(self, operation: str) -> None:
        """One round of the order loop, which `login` and `new` begin as they say."""
        self.rounds += 1
        plan = draw_round(self.chance, self.shop, f"s{self.asked['seed']}x{self.number}x{self.rounds}", operation)
        self.spent, self.thinking = 0.0, plan.thinking
        self.page(plan.entrance, plan.login)
        self.count(customers=int(plan.entrance == "new"))
        for fields in plan.searches:
            told = self.search(fields)
            self.count(searches=1, found=int(told["found"] != "0"))
        told = self.buy(plan.basket)
        self.time("order", self.spent)
        bought, cents = told["order"] != "0", int(told.get("total", "0.00").replace(".", ""))
        self.count(rounds=1, orders=int(bought), rolled_back=int(not bought), cents=cents)

    def search(self, fields: dict[str, str]) -> dict[str, str]:
        """Look for products."""
        return self.page("browse", None, f"?{urllib.parse.urlencode(fields)}")

    def buy(self, basket: dict[int, int], **page: int | str) -> dict[str, str]:
        """Buy products, by number and quantity."""
        return self.page("purchase", {f"quantity[{product}]": count for product, count in basket.items()}, **page)

    def page(
        self, name: str, fields: dict | None, query: str = "", allowed: int = 200, shown: str | None = None
    ) -> dict[str, str]:
        """What a page tells of itself, which must be whole; all of it is in `content` then.

        fields: of a form that is sent.  shown: the page with which it is answered, unless it is that one.
        """
        begun = time.perf_counter()
        sent = {} if fields is None else {"data": urllib.parse.urlencode(fields), "headers": FORM}
        _, content = self.ask("GET" if fields is None else "POST", f"/{name}.php{query}", allowed, **sent)
        seconds, self.answered = time.perf_counter() - begun, time.time()
        found = _MAIN.search(content)
        told = dict(_MARK.findall(found[1].decode())) if found else {}
        if told.get("page") != (shown or name) or not content.endswith(b"</html>\n"):
            raise WrongAnswerError(f"{name}.php is not the page '{shown or name}': {content[-200:]!r}")
        self.content = content
        self.spent += seconds
        self.time(name, seconds)
        return told

    def moment(self) -> float:
        """When the last page came: all that follows from it counts, or nothing."""
        return self.answered

    def pause(self) -> float:
        """Between none and twice the think time."""
        return 2 * self.asked["think"] * self.thinking

    def first_pause(self) -> float:
        """None: they come in one after another."""
        return 0.0


if __name__ == "__main__":
    from users import serve

    serve(Customer)

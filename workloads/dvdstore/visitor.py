"""A customer of the shop, who goes through the order loop again and again."""

import re
import urllib.parse
from typing import Any

from data_set import CATEGORIES, FIRST, LAST, MOST_LINES, PASSWORD, WORDS, Shop
from report import WrongAnswerError
from user import User

RETURNING = 0.8
MOST_SEARCHES = 5
MOST_FOUND = 9
MOST_PIECES = 3
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
# What a page tells programs about itself.
_MAIN = re.compile(rb"<main((?: data-[a-z]+=\"[^\"]*\")+)>")
_MARK = re.compile(r' data-([a-z]+)="([^"]*)"')
# A new customer, but for the name.
STRANGER = dict(
    [("first_name", "Nora"), ("last_name", "Newman"), ("street", "1 Willow Street")]
    + [("city", "Wonderville"), ("country", "Norway"), ("email", "nora@example.org")]
    + [("phone", "5550000000"), ("card", "4000000000000000"), ("password", PASSWORD)]
    + [("age", "30"), ("income", "20000"), ("gender", "F")]
)


class Visitor(User):
    """A customer, who thinks after each order, and whose pages are timed one by one."""

    books = "/account.php"
    # An order is all of its pages together.
    operations = ("order", "login", "new", "browse", "purchase")
    tried = ("login", "new")
    percentile = 95
    paced = False
    content = b""
    spent = thinking = 0.0
    orders = 0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.shop = Shop(self.settings["size"], self.settings["data_seed"])

    def come(self) -> None:
        """Customers begin with an order at once."""

    def next(self) -> str:
        """Always an order."""
        return "order"

    def do(self, operation: str) -> None:
        """One round: log in or become a customer, search, buy and think.

        `login` and `new` are rounds that begin so.
        """
        self.orders += 1
        self.spent = 0.0
        entrance = "login" if self.chance.random() < RETURNING else "new"
        if operation != "order":
            entrance = operation
        if entrance == "login":
            name = f"user{self.chance.randint(1, self.shop.customers)}"
            fields = {"username": name, "password": PASSWORD}
        else:
            name = f"s{self.settings['seed']}x{self.number}x{self.orders}"
            fields = STRANGER | {"username": name}
        self.page(entrance, fields)
        self.count(customers=int(entrance == "new"))
        for _ in range(self.chance.randint(1, MOST_SEARCHES)):
            found = self.search(**self.draw_search())["found"]
            self.count(searches=1, found=int(found != "0"))
        products = range(1, self.shop.products + 1)
        chosen = self.chance.sample(products, self.chance.randint(1, MOST_LINES))
        marks = self.buy({product: self.chance.randint(1, MOST_PIECES) for product in chosen})
        self.time("order", self.spent)
        bought, cents = marks["order"] != "0", int(marks.get("total", "0.00").replace(".", ""))
        self.count(rounds=1, orders=int(bought), rolled_back=int(not bought), cents=cents)
        self.thinking = self.chance.random()

    def draw_search(self) -> dict[str, str]:
        """The fields of a search."""
        by = self.chance.choice(["category", "actor", "title"])
        if by == "category":
            words = str(self.chance.randint(1, len(CATEGORIES)))
        elif by == "actor":
            words = f"{self.chance.choice(FIRST)} {self.chance.choice(LAST)}"
        else:
            words = self.chance.choice(WORDS)
        return {"by": by, "words": words, "limit": str(self.chance.randint(1, MOST_FOUND))}

    def search(self, **fields: str) -> dict[str, str]:
        """Search for products."""
        return self.page("browse", None, f"?{urllib.parse.urlencode(fields)}")

    def buy(self, basket: dict[Any, int], **page: Any) -> dict[str, str]:
        """Buy products: number → quantity."""
        fields = {f"quantity[{product}]": count for product, count in basket.items()}
        return self.page("purchase", fields, **page)

    def page(
        self,
        name: str,
        fields: dict | None,
        query: str = "",
        status: int = 200,
        shown: str | None = None,
    ) -> dict[str, str]:
        """The marks of a page, which must be whole; all of it is in `content` then.

        fields: of a form that is sent.  shown: the page that answers, if it is another one.
        """
        more: dict[str, Any] = {}
        if fields is not None:
            more = {"data": urllib.parse.urlencode(fields), "headers": FORM}
        method = "GET" if fields is None else "POST"
        _, self.content = self.request(method, f"/{name}.php{query}", status, **more)
        found = _MAIN.search(self.content)
        marks = dict(_MARK.findall(found[1].decode())) if found else {}
        if marks.get("page") != (shown or name) or not self.content.endswith(b"</html>\n"):
            end = self.content[-200:]
            raise WrongAnswerError(f"{name}.php is not the page '{shown or name}': {end!r}")
        self.spent += self.latency
        self.time(name, self.latency)
        return marks

    def pause(self) -> float:
        """Between none and twice the think time."""
        return 2 * self.settings["think"] * self.thinking

    def first_pause(self) -> float:
        """None: customers arrive one after another."""
        return 0.0

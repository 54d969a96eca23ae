"""Asks a shop for everything it can do, and compares each answer with what the data set and arithmetic say."""

import random

import requests
from data_set import PASSWORD, Product, Shop, money, taxed
from marks import FORM, basket, cells, marks, search
from orders import draw_round
from said import WrongAnswerError, require, step

TIMEOUT = 120


class Customer:
    """Somebody at a shop's pages, with a browser's memory."""

    def __init__(self, address: str) -> None:
        self.address, self.session = address, requests.Session()
        # No proxy of the environment's is on the way; and no process of the web server is kept for who comes once.
        self.session.trust_env = False
        self.session.headers["Connection"] = "close"

    def get(self, path: str) -> requests.Response:
        """Look at a page."""
        return self.session.get(self.address + path, timeout=TIMEOUT)

    def post(self, path: str, fields: dict[str, str] | str) -> requests.Response:
        """Send a form."""
        return self.session.post(self.address + path, data=fields, headers=FORM, timeout=TIMEOUT)

    def log_in(self, name: str, password: str = PASSWORD) -> requests.Response:
        """Log in."""
        return self.post("/login.php", {"username": name, "password": password})

    def buy(self, quantities: dict[int, int]) -> requests.Response:
        """Buy products, by number and quantity."""
        return self.post("/purchase.php", basket(quantities))


def account(address: str) -> dict:
    """The shop's books.  Raises WrongAnswerError where something that must hold does not."""
    answer = Customer(address).get("/account.php")
    if answer.status_code != 200:
        raise WrongAnswerError(f"the books are answered with status {answer.status_code}")
    books = answer.json()
    for broken in ("torn", "lost", "adrift"):
        require(f"the books' {broken} rows", books[broken], 0)
    require("whether stock is negative", books["least_stock"] < 0, False)
    return books


class Check:
    """The functional check of one shop."""

    def __init__(self, address: str, shop: Shop, seed: int) -> None:
        self.address, self.shop, self.source = address, shop, random.Random(f"check {seed}")
        self.products = [shop.product(number) for number in range(1, shop.products + 1)]
        # From here on, the stock of what is bought.
        self.bought: dict[int, int] = {}

    def run(self) -> int:
        """Check everything; returns the number of answers that were compared."""
        steps = [self.history, self.searches, self.purchase, self.restock]
        for one in steps:
            with step(one.__name__.replace("_", " ")):
                one()
        return len(steps)

    def _plenty(self, count: int) -> list[Product]:
        """Products that nobody here has bought yet, with more in stock than is needed."""
        found = [one for one in self.products if one.stock > 50 and one.number not in self.bought]
        return self.source.sample(found, count)

    def history(self) -> None:
        """Old customers see their last purchases, newest first, each with a related title."""
        # The last one certainly bought something.
        wanted = {*self.source.sample(range(1, self.shop.customers + 1), 3), self.shop.buyer(self.shop.orders)}
        orders: dict[int, list[int]] = {number: [] for number in wanted}
        for order in range(self.shop.orders, 0, -1):
            orders.get(self.shop.buyer(order), []).append(order)
        for number in wanted:
            answer = Customer(self.address).log_in(f"user{number}")
            told = marks(answer.status_code, answer.content, "login")
            require("the customer's number", told["customer"], str(number))
            name = " ".join(self.shop.name(number))
            require("the greeting", f"<h1>Hello, {name}</h1>" in answer.text, True)
            products = [product for order in orders[number] for product, _ in self.shop.order(order).lines]
            expected = [self._remembered(self.shop.product(product)) for product in products[:10]]
            require(f"the purchases of customer {number}", cells(answer.content), expected)

    def _remembered(self, product: Product) -> list[str]:
        return [str(product.number), product.title, product.actor, self.shop.product(product.related).title]

    def searches(self) -> None:
        """Each kind of search finds what it should, in the order of the numbers, and no more than was asked for."""
        kinds: dict[str, dict[str, str]] = {}
        while len(kinds) < 3:
            for fields in draw_round(self.source, self.shop, "nobody").searches:
                kinds.setdefault(fields["by"], fields)
        kinds["actor"]["words"] = self.source.choice(self.products).actor
        for by, fields in kinds.items():
            found = [one for one in self.products if self._fits(one, by, fields["words"])][: int(fields["limit"])]
            answer = Customer(self.address).get(search(fields))
            told = marks(answer.status_code, answer.content, "browse")
            expected = [[str(one.number), one.title, one.actor, money(one.price), ""] for one in found]
            require(f"what is found by {by}: {fields['words']}", cells(answer.content), expected)
            require("the number of them", told["found"], str(len(found)))

    @staticmethod
    def _fits(product: Product, by: str, words: str) -> bool:
        if by == "category":
            return product.special and product.category == int(words)
        return set(words.lower().split()) <= set(getattr(product, by).lower().split())

    def purchase(self) -> None:
        """A purchase costs what its lines say, is in the books, and is remembered."""
        before = account(self.address)
        number = self.source.randint(1, self.shop.customers)
        buyer = Customer(self.address)
        buyer.log_in(f"user{number}")
        chosen = {one.number: 1 + index % 3 for index, one in enumerate(self._plenty(9))}
        self.bought |= chosen
        answer = buyer.buy(chosen)
        told = marks(answer.status_code, answer.content, "purchase")
        net = sum(self.shop.price(product) * count for product, count in chosen.items())
        tax, total = taxed(net)
        require("net, tax and total", [told[key] for key in ("net", "tax", "total")], [*map(money, (net, tax, total))])
        lines = [
            [self.shop.product(one).title, str(count), money(self.shop.price(one))] for one, count in chosen.items()
        ]
        require("the lines", cells(answer.content), lines)
        after = account(self.address)
        for key, more in (("orders", 1), ("new_cents", total), ("sold", sum(chosen.values()))):
            require(key, after[key], before[key] + more)
        seen = cells(Customer(self.address).log_in(f"user{number}").content)
        require("the purchases", seen[: len(chosen)], [self._remembered(self.shop.product(one)) for one in chosen])

    def restock(self) -> None:
        """What falls below 3 is ordered anew, up to 250."""
        scarce = next(one for one in self.products if 3 <= one.stock < 6 and one.number not in self.bought)
        before = account(self.address)
        buyer = Customer(self.address)
        buyer.log_in("user1")
        for count in (scarce.stock - 2, 3):
            answer = buyer.buy({scarce.number: count})
            told = marks(answer.status_code, answer.content, "purchase")
            require("whether it was refused", told["order"] == "0", False)
        after = account(self.address)
        require("reorders", after["reorders"], before["reorders"] + 1)

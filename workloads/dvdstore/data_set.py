"""The rows of the shop's tables.

Each value follows from the seed and its place alone, so that any row can be told by itself.
"""

import datetime
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rows import NAMES, write

# Size class: customers, orders in each of twelve months, products.
SIZES = {
    "small": (20_000, 1_000, 10_000),
    "medium": (2_000_000, 100_000, 100_000),
    "large": (200_000_000, 10_000_000, 1_000_000),
}
# In the order in which they are loaded.
TABLES = ["categories", "products", "inventory", "customers", "orders", "orderlines", "cust_hist"]
# By which columns the rows of a table are in order, where it is not their number.
ORDERED = {"inventory": "product", "orderlines": "order_id, line", "cust_hist": "order_id, line"}
CATEGORIES = [
    "Action",
    "Animation",
    "Children",
    "Classics",
    "Comedy",
    "Documentary",
    "Drama",
    "Family",
    "Foreign",
    "Games",
    "Horror",
    "Music",
    "New",
    "Science",
    "Sports",
    "Travel",
]
WORDS, FIRST, LAST, COUNTRIES = (NAMES[of] for of in ("titles", "first", "last", "countries"))
PASSWORD = "password"
TAX_PER_10000 = 825
MOST_LINES = 9
_ALL = 2**64 - 1


def money(cents: int) -> str:
    """An amount as the database prints it."""
    return f"{cents // 100}.{cents % 100:02d}"


def taxed(net: int) -> tuple[int, int]:
    """(tax, total) of a net amount, in cents; halves of a cent are rounded up."""
    tax = (net * TAX_PER_10000 + 5000) // 10000
    return tax, net + tax


class Product(NamedTuple):
    """A DVD, as its row has it."""

    number: int
    category: int
    title: str
    actor: str
    price: str
    special: str
    related: int


class Order(NamedTuple):
    """An order; `lines` are (product, quantity), `net` in cents."""

    number: int
    customer: int
    placed: datetime.date
    lines: list[tuple[int, int]]
    net: int


class Shop:
    """A data set: its size class and its seed."""

    def __init__(self, size: str, seed: int) -> None:
        self.seed = seed
        self.customers, self.monthly, self.products = SIZES[size]
        self.orders = 12 * self.monthly

    def draw(self, table: str, row: int, field: int, count: int) -> int:
        """A number from 0 to `count` − 1 for one place: the last step of the generator splitmix64, of that place."""
        mixed = self.seed * 0x9E3779B97F4A7C15 + TABLES.index(table) * 0xD1B54A32D192ED03 + row * 0x8CB92BA72F3D8DD7
        mixed = (mixed + field * 0xABC98388FB8FAC03 + 1) & _ALL
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & _ALL
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _ALL
        return (mixed ^ (mixed >> 31)) % count

    def product(self, number: int) -> Product:
        """A product by its number, from 1."""
        of = functools.partial(self.draw, "products", number)
        title = " ".join(WORDS[of(field, len(WORDS))] for field in (1, 2, 3))
        actor = f"{FIRST[of(4, len(FIRST))]} {LAST[of(5, len(LAST))]}"
        special = "t" if of(7, 100) == 0 else "f"
        category, related = 1 + of(0, len(CATEGORIES)), 1 + of(8, self.products)
        return Product(number, category, title, actor, money(self.price(number)), special, related)

    def price(self, number: int) -> int:
        """The price of a product, in cents."""
        return 999 + self.draw("products", number, 6, 2001)

    def stock(self, number: int) -> int:
        """How many there are of a product."""
        return self.draw("inventory", number, 0, 501) * (10 if number % 10_000 == 0 else 1)

    def order(self, number: int) -> Order:
        """An order by its number, from 1."""
        of = functools.partial(self.draw, "orders", number)
        month = (number - 1) // self.monthly
        lines = []
        for line in range(1 + of(2, MOST_LINES)):
            product = 1 + self.draw("orderlines", number, 2 * line, self.products)
            lines.append((product, 1 + self.draw("orderlines", number, 2 * line + 1, 3)))
        net = sum(self.price(product) * quantity for product, quantity in lines)
        return Order(number, self.buyer(number), datetime.date(2013, 1 + month, 1 + of(1, 28)), lines, net)

    def buyer(self, number: int) -> int:
        """The customer of an order."""
        return 1 + self.draw("orders", number, 0, self.customers)

    def rows(self, table: str) -> Iterator[tuple]:
        """The rows of a table, in the order of their numbers."""
        match table:
            case "categories":
                yield from enumerate(CATEGORIES, 1)
            case "products":
                yield from map(self.product, range(1, self.products + 1))
            case "inventory":
                yield from ((number, self.stock(number), 0) for number in range(1, self.products + 1))
            case "customers":
                yield from map(self._customer, range(1, self.customers + 1))
            case "orders":
                for one in map(self.order, range(1, self.orders + 1)):
                    yield one.number, one.customer, one.placed, *map(money, (one.net, *taxed(one.net)))
            case "orderlines":
                for one, line, product, quantity in self._lines():
                    yield one.number, line, product, quantity, money(self.price(product))
            case "cust_hist":
                yield from ((one.customer, one.number, line, product) for one, line, product, _ in self._lines())

    def _lines(self) -> Iterator[tuple[Order, int, int, int]]:
        for one in map(self.order, range(1, self.orders + 1)):
            yield from ((one, line, *bought) for line, bought in enumerate(one.lines, 1))

    def _customer(self, number: int) -> tuple:
        of = functools.partial(self.draw, "customers", number)
        street = f"{1 + of(2, 200)} {WORDS[of(3, len(WORDS))]} Street"
        city = f"{WORDS[of(4, len(WORDS))]}ville"
        card = f"{4000 + of(6, 1000)}{of(7, 10**12):012d}"
        return (
            *(number, FIRST[of(0, len(FIRST))], LAST[of(1, len(LAST))], street, city, COUNTRIES[of(5, len(COUNTRIES))]),
            *(f"user{number}@example.org", f"555{of(8, 10**7):07d}", card, f"user{number}", PASSWORD),
            *(18 + of(9, 73), 20_000 * (1 + of(10, 5)), "FM"[of(11, 2)]),
        )


def main(size: str, seed: str, folder: str) -> None:
    """Write all tables, and print of each its name, the number of its rows, their SHA-256, and their order."""
    shop = Shop(size, int(seed))
    for table in TABLES:
        print(table, *write(Path(folder, table), shop.rows(table)), ORDERED.get(table, "id"))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The rows of the shop's tables; each value follows from the seed and its place alone.

Usage: data_set.py FOLDER SIZE SEED      (as rows.write_tables)
"""

import datetime
import sys
from collections.abc import Iterable, Iterator

from rows import NAMES, write_tables

# Size class: customers, orders in each of twelve months, products.
SIZES = {
    "small": (20_000, 1_000, 10_000),
    "medium": (2_000_000, 100_000, 100_000),
    "large": (200_000_000, 10_000_000, 1_000_000),
}
# Each draws from a sequence of its own.
TABLES = ["categories", "products", "inventory", "customers", "orders", "orderlines"]
CATEGORIES, WORDS, COUNTRIES = (NAMES[kind] for kind in ("genres", "titles", "countries"))
FIRST, LAST = NAMES["first"], NAMES["last"]
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


class Shop:
    """A data set: its size class and its seed."""

    def __init__(self, size: str, seed: int) -> None:
        self.seed = seed
        self.customers, self.monthly, self.products = SIZES[size]

    def draw(self, table: str, row: int, field: int, count: int) -> int:
        """A number from 0 to `count` − 1 for a field: the last step of splitmix64."""
        mixed = self.seed * 0x9E3779B97F4A7C15 + TABLES.index(table) * 0xD1B54A32D192ED03
        mixed = (mixed + row * 0x8CB92BA72F3D8DD7 + field * 0xABC98388FB8FAC03 + 1) & _ALL
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & _ALL
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _ALL
        return (mixed ^ (mixed >> 31)) % count

    def pick(self, table: str, row: int, field: int, values: list[str]) -> str:
        """One of the values for a field."""
        return values[self.draw(table, row, field, len(values))]

    def product(self, number: int) -> tuple:
        """The row of a product: number, category, title, actor, price, special, related."""
        title = " ".join(self.pick("products", number, field, WORDS) for field in (1, 2, 3))
        first, last = (self.pick("products", number, *of) for of in ((4, FIRST), (5, LAST)))
        category = 1 + self.draw("products", number, 0, len(CATEGORIES))
        special = "t" if self.draw("products", number, 7, 100) == 0 else "f"
        related = 1 + self.draw("products", number, 8, self.products)
        price = money(self.price(number))
        return number, category, title, f"{first} {last}", price, special, related

    def price(self, product: int) -> int:
        """The price of a product, in cents."""
        return 999 + self.draw("products", product, 6, 2001)

    def stock(self, product: int) -> int:
        """The stock of a product."""
        return self.draw("inventory", product, 0, 501) * (10 if product % 10_000 == 0 else 1)

    def lines(self, order: int) -> list[tuple[int, int]]:
        """(product, quantity) of the lines of an order."""
        return [
            (
                1 + self.draw("orderlines", order, 2 * line, self.products),
                1 + self.draw("orderlines", order, 2 * line + 1, 3),
            )
            for line in range(1 + self.draw("orders", order, 2, MOST_LINES))
        ]

    def buyer(self, order: int) -> int:
        """The customer of an order."""
        return 1 + self.draw("orders", order, 0, self.customers)

    def order(self, number: int) -> tuple:
        """The row of an order: number, customer, date, net, tax and total."""
        month, day = 1 + (number - 1) // self.monthly, 1 + self.draw("orders", number, 1, 28)
        net = sum(self.price(product) * quantity for product, quantity in self.lines(number))
        return (
            number,
            self.buyer(number),
            datetime.date(2013, month, day),
            *map(money, (net, *taxed(net))),
        )

    def customer(self, number: int) -> tuple:
        """The row of a customer, in the order of the table's columns."""

        def draw(field: int, count: int) -> int:
            return self.draw("customers", number, field, count)

        def pick(field: int, values: list[str]) -> str:
            return self.pick("customers", number, field, values)

        name = pick(0, FIRST), pick(1, LAST)
        street, city = f"{1 + draw(2, 200)} {pick(3, WORDS)} Street", f"{pick(4, WORDS)}ville"
        card = f"{4000 + draw(6, 1000)}{draw(7, 10**12):012d}"
        contact = f"user{number}@example.org", f"555{draw(8, 10**7):07d}", card
        person = 18 + draw(9, 73), 20_000 * (1 + draw(10, 5)), "FM"[draw(11, 2)]
        address = street, city, pick(5, COUNTRIES)
        return number, *name, *address, *contact, f"user{number}", PASSWORD, *person

    def tables(self) -> Iterator[tuple[str, Iterable[tuple]]]:
        """Every table with its rows, in the order in which the tables are filled."""
        products, orders = range(1, self.products + 1), range(1, 12 * self.monthly + 1)

        def lines() -> Iterator[tuple[int, int, int, int]]:
            for order in orders:
                yield from ((order, n, *line) for n, line in enumerate(self.lines(order), 1))

        yield "categories", enumerate(CATEGORIES, 1)
        yield "products", map(self.product, products)
        yield "inventory", ((number, self.stock(number), 0) for number in products)
        yield "customers", map(self.customer, range(1, self.customers + 1))
        yield "orders", map(self.order, orders)
        yield "orderlines", ((*line, money(self.price(line[2]))) for line in lines())
        yield "cust_hist", ((self.buyer(order), order, *line[:2]) for order, *line in lines())


if __name__ == "__main__":
    write_tables(sys.argv[1], Shop(sys.argv[2], int(sys.argv[3])).tables())

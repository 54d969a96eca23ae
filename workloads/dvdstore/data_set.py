"""The rows of the shop's tables.

Each value follows from the seed and its place alone, so that any row can be told by itself.
"""

import dataclasses
import datetime
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rows import write


def _words(text: str) -> list[str]:
    return text.split()


# Size class: customers, orders in each of twelve months, products.
SIZES = {
    "small": (20_000, 1_000, 10_000),
    "medium": (2_000_000, 100_000, 100_000),
    "large": (200_000_000, 10_000_000, 1_000_000),
}
# In the order in which they are loaded.
TABLES = ["categories", "products", "inventory", "customers", "orders", "orderlines", "cust_hist"]
CATEGORIES = _words("""
    Action Animation Children Classics Comedy Documentary Drama Family Foreign Games Horror Music New Science
    Sports Travel
""")
WORDS = _words("""
    Amber Anchor Arrow Autumn Beacon Birch Border Bridge Bright Broken Canyon Castle Cedar Cherry Circle Clever
    Cloud Copper Coral Corner Crimson Crystal Dawn Desert Distant Dragon Dream Early Eastern Echo Eleven Ember
    Empty Evening Falcon Feather Ferry Final Flame Forest Forgotten Fortune Frozen Garden Gentle Ghost Giant
    Glass Golden Granite Green Hammer Harbour Harvest Hidden Hollow Honest Horizon Hundred Island Ivory Jade
    Journey Jungle Kingdom Ladder Lantern Last Laughing Letter Lightning Little Lonely Lost Lucky Marble Meadow
    Midnight Mirror Morning Mountain Narrow Night Northern Ocean Orange Orchard Paper Patient Pearl Perfect
    Phantom Pilot Pioneer Prairie Quiet Rain Raven Restless River Rocket Running Saddle Sailor Scarlet Second
    Secret Seven Shadow Silent Silver Singing Sleeping Smoke Southern Spring Station Stone Storm Stranger Summer
    Sunken Tender Thunder Tiger Timber Tower Valley Velvet Violet Wandering Western Whisper Wild Willow Winter
    Wolf Wonder
""")
FIRST = _words("""
    Ada Adam Agnes Alan Alice Anna Arthur Astrid Ben Bella Carl Clara Daniel Diana Edgar Elena Emil Emma Erik
    Eva Felix Fiona Frank Frida George Grace Gustav Hanna Henry Hugo Ida Ingrid Ivan Jack Jana Johan Julia Karin
    Karl Laura Leo Lena Lukas Lydia Marco Maria Martin Mia Nina Noah Nora Olga Oscar Otto Paula Peter Rosa Simon
    Sofia Theo Vera Viktor
""")
LAST = _words("""
    Abbot Adler Archer Baker Barton Becker Berg Bishop Black Brandt Brook Carter Chapman Cooper Cross Dahl Dale
    Dixon Falk Farmer Fischer Fletcher Ford Foster Frost Gardner Grant Green Hale Hansen Hart Hill Holm Hunter
    Keller Kent King Klein Lang Larsen Lindgren Marsh Mason Meyer Miller Moore Nash Noble Olsen Page Palmer
    Parker Porter Reed Roth Sawyer Scott Shaw Stone Taylor Vogel Walker Weaver Winter Young
""")
COUNTRIES = _words("""
    Australia Brazil Canada Denmark Egypt France Ghana India Japan Kenya Mexico Norway Peru Spain Vietnam
""")
PASSWORD = "password"
TAX_PER_10000 = 825
MOST_LINES = 9
_ALL = 2**64 - 1


def draw(seed: int, table: str, row: int, field: int, count: int) -> int:
    """A number from 0 to `count` − 1 for one place: the last step of the generator splitmix64, of that place."""
    mixed = seed * 0x9E3779B97F4A7C15 + TABLES.index(table) * 0xD1B54A32D192ED03 + row * 0x8CB92BA72F3D8DD7
    mixed = (mixed + field * 0xABC98388FB8FAC03 + 1) & _ALL
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & _ALL
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _ALL
    return (mixed ^ (mixed >> 31)) % count


def money(cents: int) -> str:
    """An amount as the database prints it."""
    return f"{cents // 100}.{cents % 100:02d}"


def taxed(net: int) -> tuple[int, int]:
    """(tax, total) of a net amount, in cents; halves of a cent are rounded up."""
    tax = (net * TAX_PER_10000 + 5000) // 10000
    return tax, net + tax


@dataclasses.dataclass(frozen=True)
class Product:
    """A DVD; `price` in cents."""

    number: int
    category: int
    title: str
    actor: str
    price: int
    special: bool
    related: int
    stock: int


@dataclasses.dataclass(frozen=True)
class Order:
    """An order; `lines` are (product, quantity), `net` in cents."""

    number: int
    customer: int
    placed: datetime.date
    lines: list[tuple[int, int]]
    net: int


class Shop:
    """A data set: its size class and its seed."""

    def __init__(self, size: str, seed: int) -> None:
        self.size, self.seed = size, seed
        self.customers, self.monthly, self.products = SIZES[size]
        self.orders = 12 * self.monthly

    def _draw(self, table: str, row: int, field: int, count: int) -> int:
        return draw(self.seed, table, row, field, count)

    def product(self, number: int) -> Product:
        """A product by its number, from 1."""

        def of(field: int, count: int) -> int:
            return self._draw("products", number, field, count)

        stock = self._draw("inventory", number, 0, 501)
        return Product(
            number,
            category=1 + of(0, len(CATEGORIES)),
            title=" ".join(WORDS[of(field, len(WORDS))] for field in (1, 2, 3)),
            actor=f"{FIRST[of(4, len(FIRST))]} {LAST[of(5, len(LAST))]}",
            price=self.price(number),
            special=of(7, 100) == 0,
            related=1 + of(8, self.products),
            stock=stock * 10 if number % 10_000 == 0 else stock,
        )

    def price(self, number: int) -> int:
        """The price of a product, in cents."""
        return 999 + self._draw("products", number, 6, 2001)

    def order(self, number: int) -> Order:
        """An order by its number, from 1."""

        def of(field: int, count: int) -> int:
            return self._draw("orders", number, field, count)

        month = (number - 1) // self.monthly
        lines = []
        for line in range(1 + of(2, MOST_LINES)):
            product = 1 + self._draw("orderlines", number, 2 * line, self.products)
            lines.append((product, 1 + self._draw("orderlines", number, 2 * line + 1, 3)))
        net = sum(self.price(product) * quantity for product, quantity in lines)
        return Order(number, self.buyer(number), datetime.date(2013, 1 + month, 1 + of(1, 28)), lines, net)

    def buyer(self, number: int) -> int:
        """The customer of an order."""
        return 1 + self._draw("orders", number, 0, self.customers)

    def name(self, number: int) -> tuple[str, str]:
        """First and last name of a customer."""
        first, last = (self._draw("customers", number, field, len(names)) for field, names in ((0, FIRST), (1, LAST)))
        return FIRST[first], LAST[last]

    def rows(self, table: str) -> Iterator[tuple]:
        """The rows of a table, in the order of their numbers."""
        if table == "categories":
            yield from enumerate(CATEGORIES, 1)
        elif table == "products":
            for one in map(self.product, range(1, self.products + 1)):
                special = "t" if one.special else "f"
                yield one.number, one.category, one.title, one.actor, money(one.price), special, one.related
        elif table == "inventory":
            for one in map(self.product, range(1, self.products + 1)):
                yield one.number, one.stock, 0
        elif table == "customers":
            yield from map(self._customer, range(1, self.customers + 1))
        else:
            for order in map(self.order, range(1, self.orders + 1)):
                yield from _of_order(table, order, self.price)

    def _customer(self, number: int) -> tuple:
        def of(field: int, count: int) -> int:
            return self._draw("customers", number, field, count)

        first, last = self.name(number)
        street = f"{1 + of(2, 200)} {WORDS[of(3, len(WORDS))]} Street"
        city = f"{WORDS[of(4, len(WORDS))]}ville"
        card = f"{4000 + of(6, 1000)}{of(7, 10**12):012d}"
        number_of_phone = f"555{of(8, 10**7):07d}"
        return (
            *(number, first, last, street, city, COUNTRIES[of(5, len(COUNTRIES))]),
            *(f"user{number}@example.org", number_of_phone, card, f"user{number}", PASSWORD),
            *(18 + of(9, 73), 20_000 * (1 + of(10, 5)), "FM"[of(11, 2)]),
        )


def _of_order(table: str, order: Order, price: Callable[[int], int]) -> Iterator[tuple]:
    """The rows that an order has in a table."""
    if table == "orders":
        tax, total = taxed(order.net)
        yield order.number, order.customer, order.placed, money(order.net), money(tax), money(total)
        return
    for line, (product, quantity) in enumerate(order.lines, 1):
        if table == "orderlines":
            yield order.number, line, product, quantity, money(price(product))
        else:
            yield order.customer, order.number, line, product


def main(size: str, seed: str, folder: str) -> None:
    """Write all tables, and print of each its name, the number of its rows and their SHA-256."""
    shop = Shop(size, int(seed))
    for table in TABLES:
        print(table, *write(Path(folder, table), shop.rows(table)))


if __name__ == "__main__":
    main(*sys.argv[1:])

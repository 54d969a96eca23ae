"""Makes the rows of the shop's tables; each value follows only from the seed and its position.

Usage: data_set.py FOLDER SIZE SEED      (writes a file for each table: rows.write_tables)
"""

import datetime
import functools
import sys
from collections.abc import Iterable, Iterator

from rows import NAMES, write_tables

# Size class: customers, orders in each month of a year, products.
SIZES = {
    "small": (20_000, 1_000, 10_000),
    "medium": (2_000_000, 100_000, 100_000),
    "large": (200_000_000, 10_000_000, 1_000_000),
}
# The position of a table decides its random numbers.
TABLES = ["categories", "products", "inventory", "customers", "orders", "orderlines"]
CATEGORIES, TITLE_WORDS, COUNTRIES = (NAMES[kind] for kind in ("genres", "titles", "countries"))
FIRST_NAMES, LAST_NAMES = NAMES["first"], NAMES["last"]
PASSWORD = "password"
# 8.25 %.
TAX_PER_10000 = 825
# The most lines of an order, each with another product.
MAX_LINES = 9
# Random numbers have 64 bits.
_MASK = 2**64 - 1


def format_money(cents: int) -> str:
    """Return an amount as the database prints it, for example 9.99.

    cents: at least 0.
    """
    return f"{cents // 100}.{cents % 100:02d}"


def add_tax(net: int) -> tuple[int, int]:
    """Return tax and total of a net amount, all in cents; halves of a cent are rounded up.

    The function purchase of procedures.sql has the same tax.
    """
    tax = (net * TAX_PER_10000 + 5000) // 10000
    return tax, net + tax


class ShopData:
    """A data set of a size class and a seed; products, orders and customers are numbered from 1."""

    def __init__(self, size: str, seed: int) -> None:
        """Number the rows; each is drawn by itself.  size: a key of SIZES."""
        self.seed = seed
        self.customers, self.monthly_orders, self.products = SIZES[size]
        self.orders = range(1, 12 * self.monthly_orders + 1)

    def draw_number(self, table: str, row: int, field: int, count: int) -> int:
        """Draw a number from 0 below `count` for a field of a row, by the last step of splitmix64.

        field: a number of the field in its table, which need not be the column's position.
        The same arguments always draw the same number: it is the data of the seed.
        """
        mixed = self.seed * 0x9E3779B97F4A7C15 + TABLES.index(table) * 0xD1B54A32D192ED03
        mixed = (mixed + row * 0x8CB92BA72F3D8DD7 + field * 0xABC98388FB8FAC03 + 1) & _MASK
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _MASK
        return (mixed ^ (mixed >> 31)) % count

    def choose_value(self, table: str, row: int, field: int, values: list[str]) -> str:
        """Choose one of the values for a field of a row, by draw_number with the same arguments."""
        return values[self.draw_number(table, row, field, len(values))]

    def make_product(self, number: int) -> tuple:
        """Return the row of a product: number, category, title, actor, price, special, related."""
        title = [self.choose_value("products", number, field, TITLE_WORDS) for field in (1, 2, 3)]
        first = self.choose_value("products", number, 4, FIRST_NAMES)
        last = self.choose_value("products", number, 5, LAST_NAMES)
        category = 1 + self.draw_number("products", number, 0, len(CATEGORIES))
        # One product in a hundred is special.
        special = "t" if self.draw_number("products", number, 7, 100) == 0 else "f"
        related = 1 + self.draw_number("products", number, 8, self.products)
        price = format_money(self.draw_price(number))
        return number, category, " ".join(title), f"{first} {last}", price, special, related

    def draw_price(self, product: int) -> int:
        """Draw the price of a product, in cents: its field 6; make_product draws the others."""
        return 999 + self.draw_number("products", product, 6, 2001)

    def draw_stock(self, product: int) -> int:
        """Draw the stock of a product, in pieces; one product in 10,000 has ten times as many."""
        pieces = self.draw_number("inventory", product, 0, 501)
        return 10 * pieces if product % 10_000 == 0 else pieces

    def draw_lines(self, order: int) -> list[tuple[int, int]]:
        """Draw product and quantity of each line of an order, at most MAX_LINES."""
        lines = []
        for line in range(1 + self.draw_number("orders", order, 2, MAX_LINES)):
            # Each line has two fields of the order.
            product = 1 + self.draw_number("orderlines", order, 2 * line, self.products)
            quantity = 1 + self.draw_number("orderlines", order, 2 * line + 1, 3)
            lines.append((product, quantity))
        return lines

    def draw_buyer(self, order: int) -> int:
        """Draw the customer of an order: a customer's number, from 1."""
        return 1 + self.draw_number("orders", order, 0, self.customers)

    def make_order(self, number: int) -> tuple:
        """Return the row of an order: number, customer, date, net, tax and total.

        The amounts are texts such as 9.99, and follow from the order's lines.
        """
        month = 1 + (number - 1) // self.monthly_orders
        date = datetime.date(2013, month, 1 + self.draw_number("orders", number, 1, 28))
        net = 0
        for product, quantity in self.draw_lines(number):
            net += quantity * self.draw_price(product)
        amounts = map(format_money, (net, *add_tax(net)))
        return number, self.draw_buyer(number), date, *amounts

    def make_customer(self, number: int) -> tuple:
        """Return the row of a customer, in the order of the table's columns (schema.sql).

        The visitor logs in by the user name and PASSWORD.
        """
        draw = functools.partial(self.draw_number, "customers", number)
        choose = functools.partial(self.choose_value, "customers", number)
        username = f"user{number}"
        names = choose(0, FIRST_NAMES), choose(1, LAST_NAMES)
        street = f"{1 + draw(2, 200)} {choose(3, TITLE_WORDS)} Street"
        address = street, f"{choose(4, TITLE_WORDS)}ville", choose(5, COUNTRIES)
        card = f"{4000 + draw(6, 1000)}{draw(7, 10**12):012d}"
        email, phone = f"{username}@example.org", f"555{draw(8, 10**7):07d}"
        age, income, gender = 18 + draw(9, 73), 20_000 * (1 + draw(10, 5)), "FM"[draw(11, 2)]
        account = email, phone, card, username, PASSWORD
        return number, *names, *address, *account, age, income, gender

    def make_lines(self) -> Iterator[tuple]:
        """Yield the rows of all lines: order, number of the line, product, quantity and price."""
        for order in self.orders:
            for number, (product, quantity) in enumerate(self.draw_lines(order), 1):
                yield order, number, product, quantity, format_money(self.draw_price(product))

    def make_history(self) -> Iterator[tuple]:
        """Yield the rows of what each customer bought: customer, order, line and product."""
        for order in self.orders:
            buyer = self.draw_buyer(order)
            for number, (product, _) in enumerate(self.draw_lines(order), 1):
                yield buyer, order, number, product

    def list_tables(self) -> Iterator[tuple[str, Iterable[tuple]]]:
        """Yield the name of every table with its rows, in the order of filling.

        The columns of the rows are those of schema.sql, in its order.
        """
        products = range(1, self.products + 1)
        yield "categories", enumerate(CATEGORIES, 1)
        yield "products", map(self.make_product, products)
        yield "inventory", ((product, self.draw_stock(product), 0) for product in products)
        yield "customers", map(self.make_customer, range(1, self.customers + 1))
        yield "orders", map(self.make_order, self.orders)
        yield "orderlines", self.make_lines()
        yield "cust_hist", self.make_history()


if __name__ == "__main__":
    write_tables(sys.argv[1], ShopData(sys.argv[2], int(sys.argv[3])).list_tables())

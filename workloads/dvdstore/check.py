"""Compares what a shop answers with the data, and does every operation once."""

import re
from html import unescape

from data_set import PASSWORD, Product, Shop, money, taxed
from said import require, step
from visitor import Customer, stranger


def compare(customer: Customer) -> int:
    """Check a shop that nobody has used; returns how many answers were compared."""
    customer.come()
    steps = [history, searches, purchase, newcomer]
    for one in steps:
        with step(one.__name__):
            one(customer, customer.shop)
    return len(steps)


def history(customer: Customer, shop: Shop) -> None:
    """Who bought last sees the last purchases, newest first, each with a related title."""
    number = shop.buyer(shop.orders)
    told = customer.page("login", {"username": f"user{number}", "password": PASSWORD})
    require("the customer's number", told["customer"], str(number))
    orders = [order for order in range(shop.orders, 0, -1) if shop.buyer(order) == number]
    bought = [shop.product(product) for order in orders for product, _ in shop.order(order).lines]
    expected = [[str(one.number), one.title, one.actor, shop.product(one.related).title] for one in bought[:10]]
    require("the last purchases", cells(customer.content), expected)


def searches(customer: Customer, shop: Shop) -> None:
    """Each kind of search finds what it should, in the order of the numbers, and no more than was asked for."""
    products = [shop.product(number) for number in range(1, shop.products + 1)]

    def fits(one: Product, by: str, words: str) -> bool:
        if by == "category":
            return one.special == "t" and one.category == int(words)
        return set(words.lower().split()) <= set(getattr(one, by).lower().split())

    for by, words in (("category", "1"), ("title", products[0].title.split()[0]), ("actor", products[0].actor)):
        told = customer.search({"by": by, "words": words, "limit": "5"})
        found = [one for one in products if fits(one, by, words)][:5]
        expected = [[str(one.number), one.title, one.actor, one.price, ""] for one in found]
        require(f"what is found by {by}: {words}", cells(customer.content), expected)
        require("the number of them", told["found"], str(len(found)))


def purchase(customer: Customer, shop: Shop) -> None:
    """A purchase costs what its lines say."""
    plenty = [number for number in range(1, 1000) if shop.stock(number) > 50]
    chosen = {number: 1 + number % 3 for number in plenty[:9]}
    told = customer.buy(chosen)
    net = sum(shop.price(product) * count for product, count in chosen.items())
    expected = [*map(money, (net, *taxed(net)))]
    require("net, tax and total", [told.get(key) for key in ("net", "tax", "total")], expected)
    lines = [[shop.product(one).title, str(count), money(shop.price(one))] for one, count in chosen.items()]
    require("the lines", cells(customer.content), lines)


def newcomer(customer: Customer, shop: Shop) -> None:
    """A new customer is known from then on, and has bought nothing."""
    login = {"username": "check", "password": PASSWORD}
    number = customer.page("new", stranger("check"))["customer"]
    require("the number", customer.page("login", login)["customer"], number)
    require("purchases of a new customer", cells(customer.content), [])


def cells(body: bytes) -> list[list[str]]:
    """The text in the cells of the rows of a page's table, without the foot; of products the number comes first."""
    rows = []
    inner = body.decode().partition("<tbody>")[2].partition("</tbody>")[0]
    for number, row in re.findall(r"<tr(?: data-product=\"(\d+)\")?>(.*?)</tr>", inner):
        texts = [unescape(re.sub(r"<[^>]*>", "", cell)) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        rows.append([number, *texts] if number else texts)
    return rows

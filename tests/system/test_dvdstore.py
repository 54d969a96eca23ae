"""The DVD shop on real servers: every operation, transactions at the same time, what must hold."""

import html
import random
import re

import pytest
import requests
import serving
from serving import together

pytestmark = pytest.mark.long

# A shop for each test that changes one for good.
PORTS = [28100 + number for number in range(3)]
SERVING = rf"""
ports={",".join(map(str, PORTS))}
inside $of/site.sh data small 1 33554432 >&2
inside $of/site.sh prepare $ports
inside $of/site.sh database $ports 33554432 >"$root/tmp/postgresql" 2>&1 &
until_ready $of/site.sh ready database $ports
inside $of/site.sh web 127.0.0.1 $ports 8 >"$root/tmp/apache" 2>&1 &
until_ready $of/site.sh ready web 127.0.0.1 $ports
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return serving.built(tmp_path_factory.mktemp("dvdstore") / "p")


shops = serving.servers("dvdstore", SERVING)


@pytest.fixture
def sql(shops):
    """Ask the database of a shop, as its own user or with the pages' account."""

    def ask(number, text, account="postgres"):
        return shops.sql(f"/data/dvdstore/{number}", "shop", account, text)

    return ask


def address(number):
    return f"http://127.0.0.1:{PORTS[number]}"


def customer(number, name=None):
    """Somebody at a shop's pages, who is logged in by a name."""
    from visitor import Customer
    from visits import alone

    found = alone(Customer, address(number), size="small", data_seed=1, seed=7)
    if name:
        log_in(found, name)
    return found


def log_in(somebody, name, password="password", **answered):
    return somebody.page("login", {"username": name, "password": password}, **answered)


def books(number):
    from drive import books

    return books(address(number), "/account.php")


def cells(body):
    """The text in the cells of the rows of a page's table, without the foot; of products the number comes first."""
    rows = []
    inner = body.decode().partition("<tbody>")[2].partition("</tbody>")[0]
    for number, row in re.findall(r"<tr(?: data-product=\"(\d+)\")?>(.*?)</tr>", inner):
        texts = [html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        rows.append([number, *texts] if number else texts)
    return rows


def test_who_bought_last_sees_the_last_purchases_each_with_a_related_title(shops):
    somebody = customer(0)
    shop, number = somebody.shop, somebody.shop.buyer(somebody.shop.orders)
    assert log_in(somebody, f"user{number}")["customer"] == str(number)
    orders = [order for order in range(shop.orders, 0, -1) if shop.buyer(order) == number]
    bought = [shop.product(product) for order in orders for product, _ in shop.order(order).lines]
    expected = [[str(one.number), one.title, one.actor, shop.product(one.related).title] for one in bought[:10]]
    assert cells(somebody.content) == expected


def test_a_search_finds_what_it_should_in_the_order_of_the_numbers(shops):
    somebody = customer(0)
    products = [somebody.shop.product(number) for number in range(1, somebody.shop.products + 1)]

    def fits(one, by, words):
        if by == "category":
            return one.special == "t" and one.category == int(words)
        return set(words.lower().split()) <= set(getattr(one, by).lower().split())

    for by, words in (("category", "1"), ("title", products[0].title.split()[0]), ("actor", products[0].actor)):
        told = somebody.search({"by": by, "words": words, "limit": "5"})
        found = [one for one in products if fits(one, by, words)][:5]
        assert cells(somebody.content) == [[str(one.number), one.title, one.actor, one.price, ""] for one in found]
        assert told["found"] == str(len(found))


def test_a_purchase_costs_what_its_lines_say_and_every_customer_can_make_one(shops):
    from data_set import money, taxed

    somebody = customer(0, "user1")
    shop = somebody.shop
    plenty = [number for number in range(1, 1000) if shop.stock(number) > 50]
    chosen = {number: 1 + number % 3 for number in plenty[:9]}
    told = somebody.buy(chosen)
    net = sum(shop.price(product) * count for product, count in chosen.items())
    assert [told.get(key) for key in ("net", "tax", "total")] == [*map(money, (net, *taxed(net)))]
    lines = [[shop.product(one).title, str(count), money(shop.price(one))] for one, count in chosen.items()]
    assert cells(somebody.content) == lines
    for operation in ("order", "login", "new"):
        somebody.do(operation)
    assert serving.said_wrong(shops, "dvdstore") == {}


REFUSED = {"allowed": 422, "shown": "refused"}


def test_nobody_gets_in_with_a_wrong_password_nor_buys_with_a_forged_mark(shops):
    for name, password in (("user1", "wrong"), ("nobody", "password"), ("", "")):
        log_in(customer(0), name, password, allowed=403, shown="refused")
    for mark in ({}, {"customer": "1.0"}, {"customer": "1"}):
        fields = {"quantity[1]": 1}
        assert requests.post(f"{address(0)}/purchase.php", fields, cookies=mark, timeout=60).status_code == 403
    known = customer(0, "user1")
    for basket in ({}, {1: 4}, {"x": 1}, {1: -1}):
        known.buy(basket, **REFUSED)


def test_a_name_is_given_once_and_what_a_visitor_writes_is_text(shops):
    from visitor import stranger

    fields, somebody = stranger("only once"), customer(0)
    somebody.page("new", fields)
    somebody.page("new", fields, allowed=409, shown="refused")
    somebody.page("new", {**fields, "city": ""}, **REFUSED)
    somebody.search({"by": "title", "words": "<script>alert('&')</script>"})
    assert b"<script>" not in somebody.content


def test_what_falls_below_three_is_ordered_anew_and_the_books_hold_it(sql):
    somebody, before = customer(1, "user1"), books(1)
    scarce = next(number for number in range(1, 10_000) if 3 <= somebody.shop.stock(number) < 6)
    count = somebody.shop.stock(scarce) - 2
    for wanted in (count, 3):
        assert somebody.buy({scarce: wanted})["order"] != "0"
    after = books(1)
    grown = {key: after[key] - before[key] for key in ("reorders", "orders", "sold", "adrift", "lost", "torn")}
    assert grown == {"reorders": 1, "orders": 2, "sold": count + 3, "adrift": 0, "lost": 0, "torn": 0}
    sql(1, "UPDATE inventory SET stock = stock + 1 WHERE product = 5")
    assert books(1)["adrift"] == 1


def test_the_database_refuses_what_must_not_be(sql):
    change = "ALTER TABLE inventory DISABLE TRIGGER restock; UPDATE inventory SET stock = -1"
    assert "inventory_stock_check" in sql(0, change).stderr
    sql(0, "ALTER TABLE inventory ENABLE TRIGGER restock")
    twice = "INSERT INTO customers SELECT * FROM customers WHERE id = 1"
    assert "duplicate key" in sql(0, twice).stderr
    for change in ("UPDATE products SET price = 0.01", "DELETE FROM orders", "DROP TABLE reorder"):
        assert re.search("permission denied|must be owner", sql(0, change, account="shop").stderr)


def test_nothing_is_lost_where_many_buy_the_same_at_the_same_time(shops):
    shop, before = customer(2).shop, books(2)
    # Few products, of which the stock is soon at its end, in baskets of other orders each.
    scarce = [number for number in range(1, shop.products + 1) if 3 <= shop.stock(number) <= 12][:6]

    def buyer(number):
        somebody, source = customer(2, f"user{number}"), random.Random(number)
        told = [somebody.buy({one: source.randint(1, 3) for one in source.sample(scarce, 4)}) for _ in range(25)]
        bought = [one for one in told if one["order"] != "0"]
        return len(bought), sum(round(100 * float(one["total"])) for one in bought)

    done = together(buyer, range(1, 9))
    after = books(2)
    assert after["new_orders"] - before["new_orders"] == sum(bought for bought, _ in done) == 200
    assert after["new_cents"] - before["new_cents"] == sum(total for _, total in done)
    assert after["reorders"] > len(scarce)
    assert after["least_stock"] >= 0
    assert "deadlock" not in shops.said("postgresql")


def test_cells_are_measured_in_a_container_as_on_the_host(project, machine_stays):
    for record in serving.measure(project, "dvdstore", "native", "docker"):
        assert [server["exit"] for server in record["servers"]] == [0, 0]

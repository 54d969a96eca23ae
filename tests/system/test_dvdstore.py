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
until_ready $of/site.sh ready $ports
inside $of/site.sh web 127.0.0.1 $ports 8 >"$root/tmp/apache" 2>&1 &
until_ready /opt/strata/bin/reach 127.0.0.1 $ports
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return serving.built(tmp_path_factory.mktemp("dvdstore") / "p")


shops = serving.servers("dvdstore", SERVING)


def address(number):
    return f"http://127.0.0.1:{PORTS[number]}"


def customer(number, name=None):
    """A customer at a shop's pages, who is logged in by a name."""
    found = serving.visitor(address(number), size="small", data_seed=1)
    if name:
        log_in(found, name)
    return found


def log_in(user, name, password="password", **page):
    return user.page("login", {"username": name, "password": password}, **page)


def books(number):
    return requests.get(f"{address(number)}/account.php", timeout=60).json()


def cells(body):
    """The text in the cells of the rows of a page's table, without the foot; of products the number comes first."""
    rows = []
    inner = body.decode().partition("<tbody>")[2].partition("</tbody>")[0]
    for number, row in re.findall(r"<tr(?: data-product=\"(\d+)\")?>(.*?)</tr>", inner):
        texts = [
            html.unescape(re.sub(r"<[^>]*>", "", cell))
            for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)
        ]
        rows.append([number, *texts] if number else texts)
    return rows


def test_who_bought_last_sees_the_last_purchases_each_with_a_related_title(shops):
    user = customer(0)
    shop, last = user.shop, 12 * user.shop.monthly
    buyer = shop.buyer(last)
    assert log_in(user, f"user{buyer}")["customer"] == str(buyer)
    orders = [order for order in range(last, 0, -1) if shop.buyer(order) == buyer]
    bought = [shop.product(product) for order in orders for product, _ in shop.lines(order)]
    expected = [
        [str(number), title, actor, shop.product(related)[2]]
        for number, _, title, actor, *_, related in bought[:10]
    ]
    assert cells(user.content) == expected


def test_a_search_finds_what_it_should_in_the_order_of_the_numbers(shops):
    user = customer(0)
    products = [user.shop.product(number) for number in range(1, user.shop.products + 1)]

    def fits(product, by, words):
        _, category, title, actor, _, special, _ = product
        if by == "category":
            return special == "t" and category == int(words)
        return set(words.lower().split()) <= set(
            (title if by == "title" else actor).lower().split()
        )

    for by, words in (
        ("category", "1"),
        ("title", products[0][2].split()[0]),
        ("actor", products[0][3]),
    ):
        marks = user.search(by=by, words=words, limit="5")
        found = [product for product in products if fits(product, by, words)][:5]
        assert cells(user.content) == [
            [str(number), *texts, ""] for number, _, *texts, _, _ in found
        ]
        assert marks["found"] == str(len(found))


def test_a_purchase_costs_what_its_lines_say_and_every_customer_can_make_one(shops):
    from data_set import money, taxed

    user = customer(0, "user1")
    shop = user.shop
    plenty = [number for number in range(1, 1000) if shop.stock(number) > 50]
    chosen = {number: 1 + number % 3 for number in plenty[:9]}
    marks = user.buy(chosen)
    net = sum(shop.price(product) * count for product, count in chosen.items())
    assert [marks.get(key) for key in ("net", "tax", "total")] == [*map(money, (net, *taxed(net)))]
    lines = [
        [shop.product(one)[2], str(count), money(shop.price(one))] for one, count in chosen.items()
    ]
    assert cells(user.content) == lines
    assert serving.check(shops, "dvdstore", PORTS[0], size="small", data_seed=1) == {}


REFUSED = {"status": 422, "shown": "refused"}


def test_what_is_wrong_is_refused_and_what_a_visitor_writes_is_text(shops):
    from visitor import STRANGER

    for name, password in (("user1", "wrong"), ("nobody", "password"), ("", "")):
        log_in(customer(0), name, password, status=403, shown="refused")
    for mark in ({}, {"customer": "1.0"}, {"customer": "1"}):
        fields = {"quantity[1]": 1}
        assert (
            requests.post(
                f"{address(0)}/purchase.php", fields, cookies=mark, timeout=60
            ).status_code
            == 403
        )
    user = customer(0, "user1")
    for basket in ({}, {1: 4}, {"x": 1}, {1: -1}):
        user.buy(basket, **REFUSED)
    fields = {**STRANGER, "username": "only once"}
    user.page("new", fields)
    user.page("new", fields, status=409, shown="refused")
    user.page("new", {**fields, "city": ""}, **REFUSED)
    user.search(by="title", words="<script>alert('&')</script>")
    assert b"<script>" not in user.content


def test_stock_that_falls_below_three_is_ordered_anew_and_the_books_hold_it(shops):
    user, before = customer(1, "user1"), books(1)
    scarce = next(number for number in range(1, 10_000) if 3 <= user.shop.stock(number) < 6)
    for wanted in (user.shop.stock(scarce) - 2, 3):
        assert user.buy({scarce: wanted})["order"] != "0"
    after = books(1)
    grown = {key: after[key] - before[key] for key in ("reorders", "orders", "adrift", "lost")}
    assert grown == {"reorders": 1, "orders": 2, "adrift": 0, "lost": 0}
    for change in ("stock = stock + 1", "sold = sold + 1, stock = stock - 1"):
        shops.sql(
            "/data/dvdstore/1",
            "shop",
            "postgres",
            f"UPDATE inventory SET {change} WHERE product = 5",
        )
    assert (books(1)["adrift"], books(1)["lost"]) == (1, 1)


def test_nothing_is_lost_where_many_buy_the_same_at_the_same_time(shops):
    shop, before = customer(2).shop, books(2)
    # Few products, of which the stock is soon at its end, in baskets of other orders each.
    scarce = [number for number in range(1, shop.products + 1) if 3 <= shop.stock(number) <= 12][:6]

    def buyer(number):
        user, chance = customer(2, f"user{number}"), random.Random(number)
        marks = [
            user.buy({one: chance.randint(1, 3) for one in chance.sample(scarce, 4)})
            for _ in range(25)
        ]
        bought = [one for one in marks if one["order"] != "0"]
        return len(bought), sum(round(100 * float(one["total"])) for one in bought)

    done = together(buyer, range(1, 9))
    after = books(2)
    assert after["orders"] - before["orders"] == sum(bought for bought, _ in done) == 200
    assert after["new_cents"] - before["new_cents"] == sum(total for _, total in done)
    assert after["reorders"] > len(scarce)
    assert (after["adrift"], after["lost"]) == (0, 0)
    assert "deadlock" not in shops.said("postgresql")


def test_cells_are_measured_in_a_container_as_on_the_host(project, machine_stays):
    for record in serving.measure(project, "dvdstore", "native", "docker"):
        assert [server["exit"] for server in record["servers"]] == [0, 0]

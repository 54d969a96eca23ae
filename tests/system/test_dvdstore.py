"""The DVD shop on real servers: every operation, transactions at the same time, what must hold, pages in Chromium."""

import random
import re

import pytest
import serving
from serving import together

pytestmark = pytest.mark.long

# A shop for each test that changes one for good.
PORTS = [28100 + number for number in range(8)]
SERVING = rf"""
ports={",".join(map(str, PORTS))}
inside $of/data.sh small 1 33554432 >&2
inside $of/prepare.sh $ports
inside $of/database.sh $ports 33554432 >"$root/tmp/postgresql" 2>&1 &
until_ready $of/ready.sh $ports
inside $of/web.sh 127.0.0.1 $ports 8 >"$root/tmp/apache" 2>&1 &
until_ready $of/reached.sh 127.0.0.1 $ports
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


def checked(number):
    from data_set import Shop
    from shop import Check

    return Check(address(number), Shop("small", 1), 7).run()


def test_every_operation_answers_as_the_data_and_arithmetic_say(shops):
    assert checked(0) == 4
    assert serving.said_wrong(shops, "dvdstore") == {}


def test_nobody_gets_in_with_a_wrong_password_nor_buys_with_a_forged_mark(shops):
    from data_set import PASSWORD
    from marks import marks
    from shop import Customer

    for name, password in (("user1", "wrong"), ("nobody", PASSWORD), ("", "")):
        answer = Customer(address(0)).log_in(name, password)
        marks(answer.status_code, answer.content, "refused", allowed=403)
    for mark in (None, "1.0", "1"):
        stranger_ = Customer(address(0))
        if mark:
            stranger_.session.cookies.set("customer", mark)
        answer = stranger_.buy({1: 1})
        marks(answer.status_code, answer.content, "refused", allowed=403)
    known = Customer(address(0))
    known.log_in("user1")
    for body, status in (("", 422), ("quantity[1]=4", 422), ("quantity[x]=1", 422), ("quantity[1]=-1", 422)):
        answer = known.post("/purchase.php", body)
        marks(answer.status_code, answer.content, "refused", allowed=status)


def test_a_name_is_given_once_and_what_a_visitor_writes_is_text(shops):
    from marks import marks, search
    from orders import stranger
    from shop import Customer

    fields = stranger({"username": "only once", "password": "fresh"})
    for changed, page, status in (({}, "new", 200), ({}, "new-form", 409), ({"city": ""}, "new-form", 422)):
        answer = Customer(address(0)).post("/new.php", {**fields, **changed})
        marks(answer.status_code, answer.content, page, allowed=status)
    answer = Customer(address(0)).get(search({"by": "title", "words": "<script>alert('&')</script>"}))
    marks(answer.status_code, answer.content, "browse")
    assert "<script>" not in answer.text


@pytest.mark.parametrize(
    ("number", "change", "step"),
    [
        (1, "UPDATE products SET price = price + 0.01", "searches"),
        (2, "DROP TRIGGER restock ON inventory", "restock"),
        (3, "DELETE FROM cust_hist WHERE order_id = (SELECT max(order_id) FROM cust_hist)", "history"),
        (4, "UPDATE inventory SET stock = stock + 1 WHERE product = 5", "purchase: the books' adrift rows"),
    ],
)
def test_the_check_notices_what_is_wrong_and_names_it(sql, number, change, step):
    assert sql(number, change).returncode == 0
    from said import WrongAnswerError

    with pytest.raises(WrongAnswerError, match=f"^{step}"):
        checked(number)


def test_the_database_refuses_what_must_not_be(sql):
    change = "ALTER TABLE inventory DISABLE TRIGGER restock; UPDATE inventory SET stock = -1"
    assert "inventory_stock_check" in sql(0, change).stderr
    sql(0, "ALTER TABLE inventory ENABLE TRIGGER restock")
    twice = "INSERT INTO customers SELECT * FROM customers WHERE id = 1"
    assert "duplicate key" in sql(0, twice).stderr
    for change in ("UPDATE products SET price = 0.01", "DELETE FROM orders", "DROP TABLE reorder"):
        assert re.search("permission denied|must be owner", sql(0, change, account="shop").stderr)


def test_nothing_is_lost_where_many_buy_the_same_at_the_same_time(shops):
    from data_set import Shop
    from marks import cents, marks
    from shop import Customer, account

    shop, place = Shop("small", 1), address(5)
    # Few products, of which the stock is soon at its end, in baskets of other orders each.
    scarce = [number for number in range(1, shop.products + 1) if 3 <= shop.product(number).stock <= 12][:6]
    before = account(place)

    def buyer(number):
        customer, source, total, bought = Customer(place), random.Random(number), 0, 0
        customer.log_in(f"user{number}")
        for _ in range(25):
            answer = customer.buy({one: source.randint(1, 3) for one in source.sample(scarce, 4)})
            told = marks(answer.status_code, answer.content, "purchase")
            bought += told["order"] != "0"
            total += cents(told.get("total", "0.00"))
        return bought, total

    done = together(buyer, range(1, 9))
    after = account(place)
    assert after["new_orders"] - before["new_orders"] == sum(bought for bought, _ in done) == 200
    assert after["new_cents"] - before["new_cents"] == sum(total for _, total in done)
    assert after["reorders"] > len(scarce)
    assert after["least_stock"] >= 0
    assert "deadlock" not in shops.said("postgresql")


def test_cells_are_measured_in_a_container_as_on_the_host(project, machine_stays):
    for record in serving.measure(project, "dvdstore", "native", "docker"):
        assert [server["exit"] for server in record["servers"]] == [0, 0]

"""The DVD shop without servers: its data, what its customers do, and how its pages are read."""

import collections
import random
import re
import sys

import projects
import pytest

from strata.experiment import workload

FOLDER = projects.ROOT / "workloads" / "dvdstore"


@pytest.fixture(autouse=True)
def programs(monkeypatch):
    """The workload's programs can be imported, as in its folder, and are forgotten again."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(FOLDER)
    yield
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def shop(programs):
    import data_set

    return data_set.Shop("small", 1)


def test_the_data_follow_from_size_and_seed_alone(tmp_path, monkeypatch):
    import data_set

    monkeypatch.setitem(data_set.SIZES, "tiny", (50, 4, 40))
    digests = {
        seed: [data_set.Shop("tiny", seed).write(table, tmp_path / table) for table in data_set.TABLES]
        for seed in (1, 2)
    }
    again = [data_set.Shop("tiny", 1).write(table, tmp_path / table) for table in data_set.TABLES]
    assert digests[1] == again
    # Categories are those of every shop.
    assert digests[1][0] == digests[2][0]
    assert not set(digests[1][1:]) & set(digests[2][1:])
    # What an image holds must not become another without notice.
    assert digests[1][TABLE_OF_ORDERS] == ORDERS_OF_SEED_1


TABLE_OF_ORDERS = 4
ORDERS_OF_SEED_1 = "7c59d06fbdd06b6f3ba0c924c097981afbdb6e9bfc54105327a34646a76bd5bd"


def test_counts_and_ranges_are_those_of_the_original(shop):
    products = [shop.product(number) for number in range(1, shop.products + 1)]
    assert len(products) == 10_000
    assert {one.price for one in products} <= set(range(999, 3000))
    assert 70 < sum(one.special for one in products) < 130
    assert {one.category for one in products} == set(range(1, 17))
    assert {one.stock for one in products[:-1]} == set(range(501))
    assert products[-1].stock % 10 == 0
    orders = [shop.order(number) for number in range(1, shop.orders + 1)]
    assert len(orders) == 12_000
    assert {len(one.lines) for one in orders} == set(range(1, 10))
    assert {quantity for one in orders for _, quantity in one.lines} == {1, 2, 3}
    assert collections.Counter(one.placed.month for one in orders) == dict.fromkeys(range(1, 13), 1000)
    assert all(1 <= one.customer <= 20_000 for one in orders)
    assert all(one.net == sum(shop.price(product) * count for product, count in one.lines) for one in orders)


def test_the_rows_of_an_order_agree(tmp_path, monkeypatch):
    import data_set

    monkeypatch.setitem(data_set.SIZES, "tiny", (50, 4, 40))
    shop = data_set.Shop("tiny", 3)
    rows = {table: list(shop.rows(table)) for table in data_set.TABLES}
    assert [len(rows[table]) for table in ("products", "inventory", "customers", "orders")] == [40, 40, 50, 48]
    lines = collections.Counter()
    for order, _, product, quantity, price in rows["orderlines"]:
        assert price == data_set.money(shop.price(product))
        lines[order] += shop.price(product) * quantity
    for number, _, _, net, tax, total in rows["orders"]:
        assert net == data_set.money(lines[number])
        assert [tax, total] == [*map(data_set.money, data_set.taxed(lines[number]))]
    assert [(row[1], row[2], row[3]) for row in rows["cust_hist"]] == [row[:3] for row in rows["orderlines"]]


@pytest.mark.parametrize(("net", "tax"), [(0, 0), (100, 8), (10_000, 825), (200, 17), (999, 82), (1000, 83)])
def test_halves_of_a_cent_are_rounded_up(net, tax):
    import data_set

    assert data_set.taxed(net) == (tax, net + tax)


def test_customers_do_what_those_of_the_original_do(shop):
    import orders

    source = random.Random("customers")
    rounds = [orders.draw_round(source, shop, "unused") for _ in range(4000)]
    new = [one for one in rounds if one.is_new]
    assert 0.17 < len(new) / len(rounds) < 0.23
    assert {one.login["username"] for one in new} == {"unused"}
    assert {len(one.searches) for one in rounds} == set(range(1, 6))
    assert {int(fields["limit"]) for one in rounds for fields in one.searches} == set(range(1, 10))
    kinds = collections.Counter(fields["by"] for one in rounds for fields in one.searches)
    assert set(kinds) == {"category", "actor", "title"}
    assert all(3600 < count < 4400 for count in kinds.values())
    assert {len(one.basket) for one in rounds} == set(range(1, 10))
    assert {count for one in rounds for count in one.basket.values()} == {1, 2, 3}
    assert 0.47 < sum(one.thinking for one in rounds) / len(rounds) < 0.53
    again = random.Random("customers")
    assert rounds[:10] == [orders.draw_round(again, shop, "unused") for _ in range(10)]


def test_what_is_searched_for_is_there(shop):
    import orders

    source = random.Random("searches")
    products = [shop.product(number) for number in range(1, shop.products + 1)]
    titles = {word for one in products for word in one.title.split()}
    actors = {one.actor for one in products}
    searches = [fields for _ in range(1000) for fields in orders.draw_round(source, shop, "x").searches]
    assert {fields["words"] for fields in searches if fields["by"] == "title"} <= titles
    by_actor = [fields["words"] in actors for fields in searches if fields["by"] == "actor"]
    assert sum(by_actor) / len(by_actor) > 0.8


PAGE = b'<main data-page="browse" data-found="1"><table><tbody>%s</tbody></table></main></body>\n</html>\n'
ROW = b'<tr data-product="7"><td>A &amp; B</td><td class="money">9.99</td></tr>'


def test_a_page_is_read():
    import answers

    body = PAGE % ROW
    assert answers.marks(200, body, "browse") == {"page": "browse", "found": "1"}
    assert answers.cells(body) == [["7", "A & B", "9.99"]]
    assert answers.cents("12.34") == 1234
    assert answers.basket({7: 2, 9: 1}) == "quantity%5B7%5D=2&quantity%5B9%5D=1"


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (500, PAGE % ROW, "status 500 instead of 200"),
        (200, PAGE % ROW + b"Warning", "A &amp; B"),
        (200, (PAGE % ROW)[:-20], "status 200 instead of 200 with the page 'browse'"),
        (200, (PAGE % ROW).replace(b'"browse"', b'"refused"'), "with the page 'browse'"),
        (200, b"", "status 200"),
        (0, None, "status 0"),
        (200, b"\xff\xfe", "status 200"),
    ],
)
def test_a_page_that_is_not_the_one_is_refused_with_its_words(status, body, words):
    import answers

    with pytest.raises(answers.WrongAnswerError, match=words):
        answers.marks(status, body, "browse")


def test_each_shop_has_the_address_of_its_system():
    import shopper

    assert shopper.addresses("10.0.0.1", "1,2") == ["http://10.0.0.1:1", "http://10.0.0.1:2"]
    assert shopper.addresses("a,b", "1,2,3,4") == ["http://a:1", "http://a:2", "http://b:3", "http://b:4"]


def test_times_of_several_load_generators_are_summed_up():
    import shopper

    one = {"times": [[1.0, 90], [2.0, 5]], "sum_ms": 100.0, "max_ms": 2.004}
    other = {"times": [[2.0, 1], [30.0, 4]], "sum_ms": 122.0, "max_ms": 30.01}
    told = shopper.summary([one, None, other])
    assert told == {"count": 100, "sum_ms": 222, "mean_ms": 2.22, "p95_ms": 2, "p95_us": 2000, "max_ms": 30.01}
    assert shopper.summary([None]) == {"count": 0}


def test_a_load_generator_that_ends_badly_is_told(monkeypatch, tmp_path):
    import shopper

    (tmp_path / "load.py").write_text("raise SystemExit(3)\n")
    monkeypatch.setattr(shopper, "__file__", str(tmp_path / "shopper.py"))
    with pytest.raises(shopper.WrongAnswerError, match="the load generator of shop 0 ended with exit code 3"):
        shopper.run_generators([{"address": "http://127.0.0.1:9"}])


@pytest.mark.parametrize(
    ("said", "trouble"),
    [
        ("[core:notice] [pid 5:tid 5] AH00094: Command line: 'apache2 -f x'", False),
        ("[core:warn] [pid 906:tid 906] AH00045: child process 912 still did not exit, sending a SIGTERM", False),
        ("[core:error] [pid 906:tid 906] AH00046: child process 912 still did not exit, sending a SIGKILL", True),
        ("[php:warn] [pid 7:tid 7] PHP Warning:  pg_query_params(): Query failed", True),
        ("ERROR: a server ended by itself", True),
    ],
)
def test_what_apache_says_of_a_slow_end_is_no_trouble_and_all_else_is(said, trouble, monkeypatch):
    monkeypatch.chdir(projects.ROOT)
    (apache,) = [server for server in workload.load("dvdstore")["servers"] if server["name"] == "apache"]
    assert bool(re.search(apache["trouble"], said)) is trouble

"""The loads of the web applications without servers: walks, searches, data sets, and customers."""

import collections
import hashlib
import importlib
import itertools
import random
import re
import subprocess
import types
import urllib.parse

import projects
import pytest

MODULES = {
    "auction": ["user", "rows", "data_set", "visitor", "chain", "search"],
    "cloudstone": ["user", "rows", "data_set", "visitor", "chain"],
    "dvdstore": ["user", "rows", "data_set", "visitor"],
}


@pytest.fixture(scope="module")
def application(request):
    """The modules of the application that the test's parameter names."""
    with projects.importable(request.param):
        modules = {name: importlib.import_module(name) for name in MODULES[request.param]}
    return types.SimpleNamespace(**modules)


def of(*names):
    return pytest.mark.parametrize("application", names, indirect=True)


def make_visitors(application, count, send=None, **settings):
    """Visitors of one site, who share a point."""
    settings = {"sites": ["one"], "seed": 1, "begin": 0, "ramp": 0, "seconds": 1, **settings}
    point = application.user.Point(settings)
    rngs = [random.Random(f"{settings['seed']} {number}") for number in range(count)]
    return [
        application.visitor.Visitor(send, number, rng, point) for number, rng in enumerate(rngs)
    ]


def find_stationary_shares(flows):
    """The share of each operation to which a chain leads."""
    shares = dict.fromkeys(flows, 1 / len(flows))
    for _ in range(500):
        after = dict.fromkeys(flows, 0.0)
        for name, row in flows.items():
            for then, weight in row.items():
                after[then] += shares[name] * weight / sum(row.values())
        # The mean of both, so that a chain with a period converges, too.
        shares = {name: (shares[name] + after[name]) / 2 for name in flows}
    return shares


def walk(application, users, count, seed=1):
    """Operations of users in random order: (user, operation before, operation)."""
    rng, mix = random.Random(seed), application.chain.MIX
    chain = application.user.Chain(application.chain.FLOWS, rng)
    last = [rng.choices(list(mix), list(mix.values()))[0] for _ in range(users)]
    for _ in range(count):
        user = rng.randrange(users)
        before, last[user] = last[user], chain.choose_next_operation(last[user])
        yield user, before, last[user]


@of("auction", "cloudstone")
@pytest.mark.parametrize(("users", "seed"), [(20, 0), (20, 1), (1000, 2)])
def test_ten_thousand_operations_have_the_published_mix(application, users, seed):
    flows, counts = application.chain.FLOWS, collections.Counter()
    for _, before, operation in walk(application, users, 10_000, seed):
        assert flows[before][operation] > 0
        counts[operation] += 1
    stationary = find_stationary_shares(flows)
    for operation, share in application.chain.MIX.items():
        assert counts[operation] / 100 == pytest.approx(share, abs=0.5)
        assert 100 * stationary[operation] == pytest.approx(share, abs=0.1)


@of("auction")
def test_users_begin_where_the_mix_has_them(application):
    users, mix = make_visitors(application, 40, users=40, cycle=1), application.chain.MIX
    for user in users:
        application.user.User.arrive(user)
    counts = collections.Counter(user.last_operation for user in users)
    for operation, share in mix.items():
        assert abs(counts[operation] - 40 * share / sum(mix.values())) < 2


ATTENDING = {"JoinAuction", "GetCurrentItem", "GetNextBid", "PlaceBid"}
# The operation that must stand directly before.
BEFORE = {"AddImageForItem": "AddItem", "GetImageForItem": "GetItemDetail"}


@of("auction")
def test_no_operation_lacks_one_that_it_needs_before(application):
    logged_in, attending = {}, {}
    for user, before, operation in walk(application, 50, 20_000):
        if user not in logged_in:
            logged_in[user] = before not in ("HomePage", "Logout")
            attending[user] = before in ATTENDING
        assert logged_in[user] == (operation not in ("HomePage", "Login"))
        if operation in ("GetCurrentItem", "GetNextBid", "PlaceBid", "LeaveAuction"):
            assert attending[user]
        if operation in ("Login", "Logout"):
            logged_in[user] = operation == "Login"
        stays = attending[user] and operation in ATTENDING
        attending[user] = operation == "JoinAuction" or stays
        assert before == BEFORE.get(operation, before)


# The relative standard deviation: a normal one of a quarter, and a negative-exponential one.
@pytest.mark.parametrize(
    ("application", "deviation", "most"),
    [("auction", 0.25, 10), ("cloudstone", 1, float("inf"))],
    indirect=["application"],
)
def test_cycles_have_the_published_distribution(application, deviation, most):
    [user] = make_visitors(application, 1, users=1, loaded_users=25, cycle=5)
    cycles = [user.draw_pause() for _ in range(20_000)]
    assert all(0 <= cycle <= most for cycle in cycles)
    mean = sum(cycles) / len(cycles)
    assert mean == pytest.approx(5, rel=0.03)
    spread = (sum((cycle - mean) ** 2 for cycle in cycles) / len(cycles)) ** 0.5
    assert spread / mean == pytest.approx(deviation, rel=0.05)


RARE = "the rarer operations"


# Answers and late ones of Login and of Logout, and the mean delay at a cycle of 5 seconds.
@of("auction")
@pytest.mark.parametrize(
    ("login", "logout", "delay", "failures"),
    [
        ((199, 1), (0, 0), 0, []),
        ((199, 2), (0, 0), 0, ["Login"]),
        ((1000, 11), (0, 0), 0, ["Login"]),
        # Of few answers none may be late, unless all rare operations together have a hundred.
        ((99, 0), (0, 0), 0, []),
        ((0, 0), (0, 0), 0, [RARE]),
        ((99, 1), (0, 0), 0, [RARE]),
        ((99, 1), (1, 0), 0, []),
        ((50, 1), (60, 1), 0, [RARE]),
        ((200, 3), (60, 1), 0, ["Login", RARE]),
        ((10, 0), (0, 0), 0.5, []),
        ((10, 0), (0, 0), 0.51, ["the load"]),
    ],
)
def test_one_answer_in_a_hundred_may_be_late(application, login, logout, delay, failures):
    counts, late = ({"Login": login[i], "Logout": logout[i]} for i in range(2))
    assert application.search.find_failures(counts, late, delay, 5) == failures


def run_search(application, passes, resolution=0.3, confirmations=0):
    """The numbers that a search tries, and the search at its end."""
    search = application.search.Search(100, 6000, resolution, confirmations)
    tried = []
    while (users := search.choose_users()) is not None:
        tried.append(users)
        assert len(tried) < 200
        search.add_outcome(users, passes(users))
    return tried, search


@of("auction")
@pytest.mark.parametrize("resolution", [0.02, 0.3])
@pytest.mark.parametrize("confirmations", [0, 2])
@pytest.mark.parametrize("capacity", [1, 3, 99, 100, 101, 799, 5999])
def test_the_search_closes_in_on_the_capacity(application, resolution, confirmations, capacity):
    tried, search = run_search(
        application, lambda users: users <= capacity, resolution, confirmations
    )
    highest, lowest = search.highest_pass, search.lowest_failure
    assert highest <= capacity < lowest
    assert lowest - highest <= max(1, resolution * highest)
    assert tried.count(highest) == confirmations + 1
    # Every other number is tried once.
    assert len(set(tried)) == len(tried) - confirmations


@of("auction")
def test_a_pass_that_is_not_confirmed_is_a_failure(application):
    outcomes = {400: [False], 350: [False], 300: [True, False]}
    remaining = {
        users: itertools.chain(outcomes.get(users, []), itertools.repeat(True))
        for users in range(1000)
    }
    tried, search = run_search(application, lambda users: next(remaining[users]), confirmations=1)
    assert tried == [100, 200, 400, 300, 350, 300, 250, 250]
    assert (search.highest_pass, search.lowest_failure) == (250, 300)


# Each with a digest of all rows, so that the rows of an image do not change without notice.
@pytest.mark.parametrize(
    ("application", "make", "digest"),
    [
        ("auction", lambda data, seed: data.AuctionData(15, seed), "13b0986b04a85289"),
        ("cloudstone", lambda data, seed: data.EventData(25, seed), "84eefbb1b6e22f46"),
        ("dvdstore", lambda data, seed: data.ShopData("tiny", seed), "f53f14d1284c775f"),
    ],
    indirect=["application"],
)
def test_the_data_follow_from_size_and_seed_alone(application, monkeypatch, tmp_path, make, digest):
    monkeypatch.setitem(vars(application.data_set).get("SIZES", {}), "tiny", (50, 4, 40))

    def digest_tables(seed):
        application.rows.write_tables(tmp_path, make(application.data_set, seed).list_tables())
        files = sorted(tmp_path.iterdir())
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

    first, second = digest_tables(1), digest_tables(2)
    assert digest_tables(1) == first
    # The only tables in which nothing is drawn.
    equal = {name for name in first if first[name] == second[name]}
    assert equal <= {"categories", "images", "id_gen", "socialeventtag"}
    assert hashlib.sha256("".join(first.values()).encode()).hexdigest()[:16] == digest


# Stands for a database: the table `loaded` is a file.
FILLING = """#!/bin/bash
set -euo pipefail
source {sourced}/data.sh
load_table() {{ {load} "$2" >"{folder}/loaded"; }}
dump_table() {{ cat "{folder}/loaded"; }}
fill_tables "{folder}"
"""


@pytest.mark.parametrize(
    ("load", "ending", "is_filled"),
    [("cat", "", True), ("head -n 1", "", False), ("cat", "raise SystemExit(3)", False)],
    ids=["whole", "a row is not loaded", "the rows are not all made"],
)
def test_tables_are_filled_with_all_rows_or_not_at_all(tmp_path, load, ending, is_filled):
    program = f"""
import sys
open(sys.argv[1] + "/people", "w").write("1\\n2\\n")
print("people")
{ending}
"""
    (tmp_path / "data_set.py").write_text(program)
    sourced = projects.ROOT / "workloads/common/sourced"
    script = tmp_path / "fill.sh"
    script.write_text(FILLING.format(sourced=sourced, folder=tmp_path, load=load))
    result = subprocess.run(["bash", script], capture_output=True, text=True, check=False)
    assert (result.returncode == 0) == is_filled, result.stderr


@of("cloudstone")
@pytest.mark.parametrize(
    ("users", "persons", "tags"),
    [(1, 2500, 6), (25, 2500, 6), (1500, 150_000, 374), (12_000, 1_200_000, 2685)],
)
def test_numbers_of_rows_follow_from_the_users(application, users, persons, tags):
    expected = {"persons": persons, "tags": tags, "events": 3 * tags}
    assert application.data_set.count_rows(users) == expected


@of("dvdstore")
def test_counts_and_ranges_are_those_of_the_original(application):
    shop = application.data_set.ShopData("small", 1)
    products = [shop.make_product(number) for number in range(1, 10_001)]
    prices = [shop.draw_price(number) for number in range(10_001)]
    assert set(prices) <= set(range(999, 3000))
    assert 70 < sum(special == "t" for *_, special, _ in products) < 130
    assert {category for _, category, *_ in products} == set(range(1, 17))
    assert {shop.draw_stock(number) for number in range(1, 10_000)} == set(range(501))
    assert shop.draw_stock(10_000) % 10 == 0
    tables = dict(shop.list_tables())
    assert list(tables["products"]) == products
    orders, lines = list(tables["orders"]), list(tables["orderlines"])
    months = collections.Counter(placed.month for _, _, placed, *_ in orders)
    assert months == dict.fromkeys(range(1, 13), 1000)
    assert all(1 <= customer <= 20_000 for _, customer, *_ in orders)
    assert set(collections.Counter(order for order, *_ in lines).values()) == set(range(1, 10))
    assert {quantity for *_, quantity, _ in lines} == {1, 2, 3}
    net = collections.Counter()
    for order, _, product, quantity, _ in lines:
        net[order] += prices[product] * quantity
    assert {number: round(100 * float(amount)) for number, _, _, amount, *_ in orders} == net


ATTRIBUTES = {"browse": ' data-found="1"', "purchase": ' data-order="1" data-total="9.99"'}


@of("dvdstore")
def test_customers_behave_as_those_of_the_original(application):
    pages = []

    def send(method, path, data="", **options):
        name, _, query = path.strip("/").partition(".php")
        pages.append((name, dict(urllib.parse.parse_qsl(data or query.strip("?")))))
        page = f'<main data-page="{name}"{ATTRIBUTES.get(name, "")}></main></html>\n'
        return 200, page.encode(), "text/html"

    [customer] = make_visitors(application, 1, send, size="small", data_seed=1, think=1)
    pauses = []
    for _ in range(4000):
        customer.do_operation(customer.choose_operation())
        pauses.append(customer.draw_pause())
    # A letter for each page: login, new, browse, purchase.
    order = "".join(name[0] for name, _ in pages)
    rounds = re.findall("[ln]b{1,5}p", order)
    assert "".join(rounds) == order
    assert {len(letters) for letters in rounds} == {3, 4, 5, 6, 7}
    assert 0.17 < order.count("n") / 4000 < 0.23
    searches = [fields for name, fields in pages if name == "browse"]
    assert {int(fields["limit"]) for fields in searches} == set(range(1, 10))
    kinds = collections.Counter(fields["by"] for fields in searches)
    assert set(kinds) == {"category", "actor", "title"}
    assert all(3600 < count < 4400 for count in kinds.values())
    baskets = [fields for name, fields in pages if name == "purchase"]
    assert {len(basket) for basket in baskets} == set(range(1, 10))
    assert {count for basket in baskets for count in basket.values()} == {"1", "2", "3"}
    assert max(pauses) < 2
    assert 0.94 < sum(pauses) / 4000 < 1.06
    assert customer.point.in_all["cents"] == 4000 * 999

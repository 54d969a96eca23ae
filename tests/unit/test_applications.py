"""The loads of the web applications without servers: walks, searches, data sets, and customers."""

import collections
import hashlib
import importlib
import itertools
import random
import re
import types
import urllib.parse

import projects
import pytest


def imported(folder, *names):
    """A workload's modules and the kit's."""
    with projects.importable(folder):
        names = ("user", "rows", "data_set", "visitor", *names)
        return types.SimpleNamespace(**{name: importlib.import_module(name) for name in names})


@pytest.fixture(scope="module")
def auction():
    return imported("auction", "chain", "search")


@pytest.fixture(scope="module")
def cloudstone():
    return imported("cloudstone", "chain")


@pytest.fixture(scope="module")
def dvdstore():
    return imported("dvdstore")


def visitors(programs, count, send=None, **settings):
    """Users of one site, who share a point."""
    settings = {"sites": ["one"], "seed": 1, "begin": 0, "ramp": 0, "seconds": 1, **settings}
    point = programs.user.Point(settings)
    return [
        programs.visitor.Visitor(send, n, random.Random(f"{settings['seed']} {n}"), point)
        for n in range(count)
    ]


def stationary(flows):
    """The share of each operation to which a chain leads."""
    shares = dict.fromkeys(flows, 1 / len(flows))
    for _ in range(500):
        after = dict.fromkeys(flows, 0.0)
        for name, row in flows.items():
            for then, part in row.items():
                after[then] += shares[name] * part / sum(row.values())
        # Half of both, so that a chain that only goes round ends too.
        shares = {name: (shares[name] + after[name]) / 2 for name in flows}
    return shares


def walk(programs, users, count, seed=1):
    """What users do who take turns at random: (user, operation before, operation)."""
    chance, flows = random.Random(seed), programs.chain.FLOWS
    steps, mix = programs.user.Chain(flows, chance), programs.chain.MIX
    last = [chance.choices(list(mix), list(mix.values()))[0] for _ in range(users)]
    for _ in range(count):
        user = chance.randrange(users)
        before, last[user] = last[user], steps.after(last[user])
        yield user, before, last[user]


@pytest.mark.parametrize("name", ["auction", "cloudstone"])
@pytest.mark.parametrize(("users", "seed"), [(20, 0), (20, 1), (1000, 2)])
def test_ten_thousand_operations_have_the_published_mix(request, name, users, seed):
    programs = request.getfixturevalue(name)
    done = collections.Counter()
    for _, before, operation in walk(programs, users, 10_000, seed):
        assert programs.chain.FLOWS[before][operation] > 0
        done[operation] += 1
    for operation, share in programs.chain.MIX.items():
        assert done[operation] / 100 == pytest.approx(share, abs=0.5)
        assert 100 * stationary(programs.chain.FLOWS)[operation] == pytest.approx(share, abs=0.1)


def test_users_begin_where_the_mix_has_them(auction):
    users = visitors(auction, 40, users=40, cycle=1)
    for user in users:
        auction.user.User.come(user)
    began, mix = collections.Counter(user.last for user in users), auction.chain.MIX
    assert all(abs(began[name] - 40 * share / sum(mix.values())) < 2 for name, share in mix.items())


ATTENDING = {"JoinAuction", "GetCurrentItem", "GetNextBid", "PlaceBid"}


def test_nobody_does_what_needs_another_operation_before(auction):
    known, attending = {}, {}
    for user, before, operation in walk(auction, 50, 20_000):
        if user not in known:
            known[user], attending[user] = before not in ("HomePage", "Logout"), before in ATTENDING
        assert known[user] == (operation not in ("HomePage", "Login"))
        if operation in ("GetCurrentItem", "GetNextBid", "PlaceBid", "LeaveAuction"):
            assert attending[user]
        if operation in ("Login", "Logout"):
            known[user] = operation == "Login"
        attending[user] = operation == "JoinAuction" or (attending[user] and operation in ATTENDING)
        assert operation != "AddImageForItem" or before == "AddItem"
        assert operation != "GetImageForItem" or before == "GetItemDetail"


# The relative standard deviation: a normal one of a quarter, and a negative-exponential one.
@pytest.mark.parametrize(
    ("name", "deviation", "most"), [("auction", 0.25, 10), ("cloudstone", 1, float("inf"))]
)
def test_cycles_have_the_published_distribution(request, name, deviation, most):
    [user] = visitors(request.getfixturevalue(name), 1, users=1, loaded_users=25, cycle=5)
    cycles = [user.pause() for _ in range(20_000)]
    assert all(0 <= cycle <= most for cycle in cycles)
    mean = sum(cycles) / len(cycles)
    assert mean == pytest.approx(5, rel=0.03)
    spread = (sum((cycle - mean) ** 2 for cycle in cycles) / len(cycles)) ** 0.5
    assert spread / mean == pytest.approx(deviation, rel=0.05)


RARE = "the rarer operations"


# Answers and late ones of Login and of Logout, and the mean delay at a cycle of 5 seconds.
@pytest.mark.parametrize(
    ("login", "logout", "delay", "slow"),
    [
        ((199, 1), (0, 0), 0, []),
        ((199, 2), (0, 0), 0, ["Login"]),
        ((1000, 10), (0, 0), 0, []),
        ((1000, 11), (0, 0), 0, ["Login"]),
        # Of few answers none may be late, unless all such operations together have a hundred.
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
def test_one_answer_in_a_hundred_may_be_late(auction, login, logout, delay, slow):
    counts, late = ({"Login": login[i], "Logout": logout[i]} for i in range(2))
    assert auction.search.failing(counts, late, delay, 5) == slow


def searched(auction, passes, resolution=0.3, confirmations=0):
    """The numbers that a search tries, and where it ends."""
    search = auction.search.Search(100, 6000, resolution, confirmations)
    tried = []
    while (users := search.next()) is not None:
        tried.append(users)
        assert len(tried) < 200
        search.note(users, passes(users))
    return tried, search


@pytest.mark.parametrize("resolution", [0.02, 0.3])
@pytest.mark.parametrize("confirmations", [0, 2])
@pytest.mark.parametrize("served", [1, 3, 99, 100, 101, 799, 5999])
def test_the_search_closes_in_on_what_passes(auction, resolution, confirmations, served):
    tried, search = searched(auction, lambda users: users <= served, resolution, confirmations)
    assert search.found <= served < search.fails
    assert search.fails - search.found <= max(1, resolution * search.found)
    assert tried.count(search.found) == confirmations + 1
    # Nothing is tried in vain: each number but the one that is confirmed once.
    assert len(set(tried)) == len(tried) - confirmations


def test_what_does_not_pass_again_is_a_failure(auction):
    outcomes = {400: [False], 350: [False], 300: [True, False]}
    again = {
        users: itertools.chain(outcomes.get(users, []), itertools.repeat(True))
        for users in range(1000)
    }
    tried, search = searched(auction, lambda users: next(again[users]), confirmations=1)
    assert tried == [100, 200, 400, 300, 350, 300, 250, 250]
    assert (search.found, search.fails) == (250, 300)


@pytest.mark.parametrize("seed", range(20))
def test_the_search_ends_where_passing_is_a_matter_of_chance(auction, seed):
    chance = random.Random(seed)
    _, search = searched(
        auction, lambda users: chance.random() < 1 / (1 + (users / 500) ** 4), 0.02, 2
    )
    assert search.fails is None or search.found < search.fails
    assert search.found == 0 or search.passes[search.found] == 3


# Each with a digest of all rows, so that the rows of an image do not change without notice.
@pytest.mark.parametrize(
    ("name", "make", "digest"),
    [
        ("auction", lambda data, seed: data.tables(15, seed), "13b0986b04a85289"),
        ("cloudstone", lambda data, seed: data.tables(25, seed), "84eefbb1b6e22f46"),
        ("dvdstore", lambda data, seed: data.Shop("tiny", seed).tables(), "f53f14d1284c775f"),
    ],
)
def test_the_data_follow_from_size_and_seed_alone(
    request, monkeypatch, tmp_path, name, make, digest
):
    programs = request.getfixturevalue(name)
    monkeypatch.setitem(vars(programs.data_set).get("SIZES", {}), "tiny", (50, 4, 40))

    def digests(seed):
        programs.rows.write_tables(tmp_path, make(programs.data_set, seed))
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(tmp_path.iterdir())
        }

    first, other = digests(1), digests(2)
    assert digests(1) == first
    # These are those of every shop.
    assert {name for name in first if first[name] == other[name]} <= {
        "categories",
        "images",
        "id_gen",
        "socialeventtag",
    }
    assert hashlib.sha256("".join(first.values()).encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize(
    ("users", "persons", "tags"),
    [(1, 2500, 6), (25, 2500, 6), (1500, 150_000, 374), (12_000, 1_200_000, 2685)],
)
def test_sizes_follow_from_the_users(cloudstone, users, persons, tags):
    assert cloudstone.data_set.sizes(users) == {
        "persons": persons,
        "tags": tags,
        "events": 3 * tags,
    }


def test_rows_name_files_and_persons_that_are_there(cloudstone):
    rows = {name: list(table) for name, table in cloudstone.data_set.tables(25, 7)}
    files = {name for name, _ in cloudstone.data_set.files(7)}
    assert {row[10] for row in rows["person"]} | {row[7] for row in rows["socialevent"]} <= files
    # The database, which refuses a row that points at none, lets a person be a friend of theirs.
    assert all(person != friend for person, friend in rows["person_person"])


@pytest.fixture
def shop(dvdstore):
    return dvdstore.data_set.Shop("small", 1)


def test_counts_and_ranges_are_those_of_the_original(shop):
    products = [shop.product(number) for number in range(1, 10_001)]
    prices = [shop.price(number) for number in range(10_001)]
    assert set(prices) <= set(range(999, 3000))
    assert 70 < sum(special == "t" for *_, special, _ in products) < 130
    assert {category for _, category, *_ in products} == set(range(1, 17))
    assert {shop.stock(number) for number in range(1, 10_000)} == set(range(501))
    assert shop.stock(10_000) % 10 == 0
    tables = {
        name: list(rows) for name, rows in shop.tables() if "order" in name or name == "products"
    }
    assert tables["products"] == products
    orders, lines = tables["orders"], tables["orderlines"]
    assert collections.Counter(placed.month for _, _, placed, *_ in orders) == dict.fromkeys(
        range(1, 13), 1000
    )
    assert all(1 <= customer <= 20_000 for _, customer, *_ in orders)
    assert set(collections.Counter(order for order, *_ in lines).values()) == set(range(1, 10))
    assert {quantity for *_, quantity, _ in lines} == {1, 2, 3}
    net = collections.Counter()
    for order, _, product, quantity, _ in lines:
        net[order] += prices[product] * quantity
    assert {number: round(100 * float(amount)) for number, _, _, amount, *_ in orders} == net


def test_customers_do_what_those_of_the_original_do(dvdstore):
    pages = []

    def send(method, path, data="", **more):
        name, _, query = path.strip("/").partition(".php")
        pages.append((name, dict(urllib.parse.parse_qsl(data or query.strip("?")))))
        marks = {"browse": ' data-found="1"', "purchase": ' data-order="1" data-total="9.99"'}.get(
            name, ""
        )
        return 200, f'<main data-page="{name}"{marks}></main></html>\n'.encode(), "text/html"

    [customer] = visitors(dvdstore, 1, send, size="small", data_seed=1, think=1)
    pauses = []
    for _ in range(4000):
        customer.do(customer.next())
        pauses.append(customer.pause())
    order = "".join(
        {"login": "l", "new": "n", "browse": "b", "purchase": "p"}[name] for name, _ in pages
    )
    rounds = re.findall("[ln]b{1,5}p", order)
    assert "".join(rounds) == order
    assert {len(one) for one in rounds} == {3, 4, 5, 6, 7}
    assert 0.17 < order.count("n") / 4000 < 0.23
    names = [fields["username"] for name, fields in pages if name == "new"]
    assert len(set(names)) == len(names)
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

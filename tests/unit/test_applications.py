"""What the applications' loads are made of, without servers: walks, searches, data, and what load generators tell."""

import collections
import importlib
import itertools
import random
import re
import subprocess
import sys
import types

import projects
import pytest

FOLDERS = projects.ROOT / "workloads"
KIT = FOLDERS / "kit" / "load"


def imported(folder, *names):
    """A workload's modules and the kit's."""
    with projects.importable(folder):
        kit = ("said", "visits", "walk", "rows", "drive")
        return types.SimpleNamespace(**{name: importlib.import_module(name) for name in (*kit, *names)})


@pytest.fixture(scope="module")
def auction():
    return imported("auction", "chain", "search", "data_set", "visitor", "driver")


@pytest.fixture(scope="module")
def cloudstone():
    return imported("cloudstone", "chain", "data_set", "visitor", "driver")


@pytest.fixture(scope="module")
def dvdstore():
    return imported("dvdstore", "data_set", "visitor", "shopper")


def stationary(flows):
    """The share of each operation to which a chain leads."""
    found = dict.fromkeys(flows, 1 / len(flows))
    for _ in range(500):
        after = dict.fromkeys(flows, 0.0)
        for name, row in flows.items():
            for then, part in row.items():
                after[then] += found[name] * part / sum(row.values())
        # Half of both, so that a chain that only goes round ends too.
        found = {name: (found[name] + after[name]) / 2 for name in flows}
    return found


def walk(programs, users, count, seed=1):
    """What users do who take turns at random: (user, operation before, operation)."""
    chance, flows = random.Random(seed), programs.chain.FLOWS
    steps, mix = programs.walk.Chain(flows, chance), programs.chain.MIX
    last = [chance.choices(list(mix), list(mix.values()))[0] for _ in range(users)]
    for _ in range(count):
        user = chance.randrange(users)
        before, last[user] = last[user], steps.after(last[user])
        yield user, before, last[user]


@pytest.mark.parametrize("name", ["auction", "cloudstone"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("users", [20, 1000])
def test_ten_thousand_operations_have_the_published_mix(request, name, users, seed):
    programs = request.getfixturevalue(name)
    published = programs.chain.MIX
    done = collections.Counter()
    for _, before, operation in walk(programs, users, 10_000, seed):
        assert programs.chain.FLOWS[before][operation] > 0
        done[operation] += 1
    for operation, share in published.items():
        assert done[operation] / 100 == pytest.approx(share, abs=0.5)
        assert 100 * stationary(programs.chain.FLOWS)[operation] == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize("name", ["auction", "cloudstone"])
def test_those_who_begin_are_spread_as_the_mix_says(request, name):
    programs = request.getfixturevalue(name)
    shared, mix = {}, programs.chain.MIX
    point = types.SimpleNamespace(asked={"sites": ["one"], "seed": 1}, shared=shared)

    class Anybody(programs.walk.Walker):
        flows = programs.chain.FLOWS

    Anybody.mix = mix
    walkers = [Anybody(None, number, random.Random(number), point) for number in range(40)]
    for walker in walkers:
        walker.come()
    began = collections.Counter(walker.last for walker in walkers)
    assert all(abs(began[operation] - 40 * share / sum(mix.values())) < 2 for operation, share in mix.items())


# Auctions.


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
        if operation == "JoinAuction":
            attending[user] = True
        elif operation not in ATTENDING:
            attending[user] = False
        if operation == "AddImageForItem":
            assert before == "AddItem"
        if operation == "GetImageForItem":
            assert before == "GetItemDetail"


def test_cycles_are_normal_within_their_limits(auction):
    chance = random.Random(4)
    cycles = [auction.chain.cycle(chance, 5) for _ in range(20_000)]
    assert all(0 <= cycle <= 10 for cycle in cycles)
    mean = sum(cycles) / len(cycles)
    assert mean == pytest.approx(5, rel=0.01)
    assert (sum((cycle - mean) ** 2 for cycle in cycles) / len(cycles)) ** 0.5 == pytest.approx(1.25, rel=0.03)


def test_one_answer_in_a_hundred_may_be_late(auction):
    def failing(count, late, lag=0.0, others=(0, 0)):
        counts, late = {"Login": count, "Logout": others[0]}, {"Login": late, "Logout": others[1]}
        return auction.search.failing(counts, late, lag, 5)

    together = [auction.search.RARE]
    assert failing(199, 1) == []
    assert failing(199, 2) == ["Login"]
    assert failing(1000, 10) == []
    assert failing(1000, 11) == ["Login"]
    # Of few answers none may be late, unless all such operations together have a hundred.
    assert failing(99, 0) == []
    assert failing(0, 0) == together
    assert failing(99, 1) == together
    assert failing(99, 1, others=(1, 0)) == []
    assert failing(50, 1, others=(60, 1)) == together
    assert failing(200, 3, others=(60, 1)) == ["Login", *together]
    assert failing(10, 0, 0.5) == []
    assert failing(10, 0, 0.51) == ["the load"]


def searched(auction, passes, start=100, most=6000, resolution=0.3, confirmations=0):
    """The numbers that a search tries, and where it ends."""
    looking = auction.search.Search(start, most, resolution, confirmations)
    tried = []
    while (users := looking.next()) is not None:
        tried.append(users)
        assert len(tried) < 200
        looking.note(users, passes(users))
    return tried, looking


@pytest.mark.parametrize("resolution", [0.02, 0.3])
@pytest.mark.parametrize("confirmations", [0, 2])
@pytest.mark.parametrize("served", [1, 2, 3, 7, 99, 100, 101, 250, 799, 4000, 5999])
def test_the_search_closes_in_on_what_passes(auction, resolution, confirmations, served):
    tried, looking = searched(auction, lambda users: users <= served, 100, 6000, resolution, confirmations)
    assert looking.found <= served < looking.fails
    assert looking.fails - looking.found <= max(1, resolution * looking.found)
    assert tried.count(looking.found) == confirmations + 1
    # Nothing is tried in vain: each number but the one that is confirmed once.
    assert len(set(tried)) == len(tried) - confirmations


def test_what_does_not_pass_again_is_a_failure(auction):
    outcomes = {400: [False], 350: [False], 300: [True, False]}
    again = {users: itertools.chain(outcomes.get(users, []), itertools.repeat(True)) for users in range(1000)}
    tried, looking = searched(auction, lambda users: next(again[users]), confirmations=1)
    assert tried == [100, 200, 400, 300, 350, 300, 250, 250]
    assert (looking.found, looking.fails) == (250, 300)


@pytest.mark.parametrize("seed", range(20))
def test_the_search_ends_where_passing_is_a_matter_of_chance(auction, seed):
    chance = random.Random(seed)
    _, looking = searched(auction, lambda users: chance.random() < 1 / (1 + (users / 500) ** 4), 100, 6000, 0.02, 2)
    assert looking.fails is None or looking.found < looking.fails
    assert looking.found == 0 or looking.passes[looking.found] == 3


def test_the_auctions_follow_from_users_and_seed_alone(auction, tmp_path):
    def digests(users, seed):
        auctions = auction.data_set.Auctions(users, seed)
        return [auction.rows.write(tmp_path / table, auctions.rows(table)) for table in auction.data_set.TABLES]

    first = digests(15, 1)
    assert digests(15, 1) == first
    assert not {digest for _, digest in digests(15, 2)[:-1]} & {digest for _, digest in first[:-1]}
    assert [count for count, _ in first[:3]] == [30, 2, 20]
    # What an image holds must not become another without notice.
    assert first[0][1] == "737b3d0653051322ffcb18c9fcac34ea565c0a916808720c394663115e884986"


# Social events.


def test_cycles_are_negative_exponential(cloudstone):
    chance = random.Random(4)
    cycles = [cloudstone.chain.cycle(chance, 5) for _ in range(20_000)]
    assert sum(cycles) / len(cycles) == pytest.approx(5, rel=0.03)
    # The share that is longer than the mean is 1/e.
    assert sum(cycle > 5 for cycle in cycles) / len(cycles) == pytest.approx(0.368, abs=0.01)


@pytest.mark.parametrize(
    ("users", "persons", "tags"), [(1, 2500, 6), (25, 2500, 6), (1500, 150_000, 374), (12_000, 1_200_000, 2685)]
)
def test_sizes_follow_from_the_users(cloudstone, users, persons, tags):
    assert cloudstone.data_set.sizes(users) == {"persons": persons, "tags": tags, "events": 3 * tags}


@pytest.fixture(scope="module")
def people(cloudstone):
    """All rows for 100 users."""
    return {name: [tuple(map(str, row)) for row in table] for name, table in cloudstone.data_set.tables(100, 7)}


def test_the_data_follow_from_the_seed_alone(cloudstone, people, tmp_path):
    def text(seed):
        return {name: [tuple(map(str, row)) for row in table] for name, table in cloudstone.data_set.tables(25, seed)}

    assert text(7) == text(7)
    assert text(8)["person"] != text(7)["person"]
    made = []
    for name in ("a", "b"):
        argv = [sys.executable, "-B", FOLDERS / "cloudstone" / "data_set.py", tmp_path / name, "25", "7"]
        done = subprocess.run(list(map(str, argv)), check=True, stdout=subprocess.PIPE, env={"PYTHONPATH": str(KIT)})
        assert done.stdout.decode().split() == list(people)
        made.append({path.name: path.read_bytes() for path in (tmp_path / name).rglob("*") if path.is_file()})
    assert made[0] == made[1]
    assert made[0]["person"].count(b"\n") == 2500
    # As the database takes a time, and gives it.
    assert re.search(rb"\t2026-\d\d-\d\d \d\d:\d\d:00\t2025-", made[0]["socialevent"])
    named = {row[10] for row in people["person"]} | {row[7] for row in people["socialevent"]}
    assert named <= {*made[0]}
    # The database, which refuses a row that points at none, lets a person be a friend of theirs.
    assert all(person != friend for person, friend in people["person_person"])


# The DVD shop.


@pytest.fixture
def shop(dvdstore):
    return dvdstore.data_set.Shop("small", 1)


def test_the_data_follow_from_size_and_seed_alone(dvdstore, tmp_path, monkeypatch):
    monkeypatch.setitem(dvdstore.data_set.SIZES, "tiny", (50, 4, 40))
    digests = {
        seed: [
            dvdstore.rows.write(tmp_path / table, dvdstore.data_set.Shop("tiny", seed).rows(table))[1]
            for table in dvdstore.data_set.TABLES
        ]
        for seed in (1, 2)
    }
    again = [
        dvdstore.rows.write(tmp_path / table, dvdstore.data_set.Shop("tiny", 1).rows(table))[1]
        for table in dvdstore.data_set.TABLES
    ]
    assert digests[1] == again
    # Categories are those of every shop.
    assert digests[1][0] == digests[2][0]
    assert not set(digests[1][1:]) & set(digests[2][1:])
    # What an image holds must not become another without notice.
    assert digests[1][4] == "7c59d06fbdd06b6f3ba0c924c097981afbdb6e9bfc54105327a34646a76bd5bd"


def test_counts_and_ranges_are_those_of_the_original(shop):
    products = [shop.product(number) for number in range(1, shop.products + 1)]
    assert len(products) == 10_000
    assert {shop.price(one.number) for one in products} <= set(range(999, 3000))
    assert 70 < sum(one.special == "t" for one in products) < 130
    assert {one.category for one in products} == set(range(1, 17))
    assert {shop.stock(number) for number in range(1, 10_000)} == set(range(501))
    assert shop.stock(10_000) % 10 == 0
    orders = [shop.order(number) for number in range(1, shop.orders + 1)]
    assert len(orders) == 12_000
    assert {len(one.lines) for one in orders} == set(range(1, 10))
    assert {quantity for one in orders for _, quantity in one.lines} == {1, 2, 3}
    assert collections.Counter(one.placed.month for one in orders) == dict.fromkeys(range(1, 13), 1000)
    assert all(1 <= one.customer <= 20_000 for one in orders)
    assert all(one.net == sum(shop.price(product) * count for product, count in one.lines) for one in orders)


def test_customers_do_what_those_of_the_original_do(dvdstore, shop):
    source = random.Random("customers")
    rounds = [dvdstore.visitor.draw_round(source, shop, "unused") for _ in range(4000)]
    new = [one for one in rounds if one.entrance == "new"]
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
    assert rounds[:10] == [dvdstore.visitor.draw_round(again, shop, "unused") for _ in range(10)]

"""The auctions without servers: what users do, the search for how many are served in time, the data, and the driver."""

import collections
import importlib
import itertools
import json
import random
import subprocess
import sys
import types

import projects
import pytest

from strata.experiment import workload

FOLDER = projects.ROOT / "workloads" / "auction"
NAMES = ("chain", "search", "data_set", "visitor", "driver")
ATTENDING = {"JoinAuction", "GetCurrentItem", "GetNextBid", "PlaceBid"}


@pytest.fixture(scope="module")
def programs():
    """The workload's modules, as they lie beside one another in the image."""
    sys.path.insert(0, str(FOLDER))
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield types.SimpleNamespace(**{name: importlib.import_module(name) for name in NAMES})
    finally:
        sys.path.remove(str(FOLDER))
        sys.dont_write_bytecode = writes
        for name in NAMES:
            sys.modules.pop(name, None)


def walk(programs, users, count, seed=1):
    """What users do who take turns at random: (user, operation before, operation)."""
    chance = random.Random(seed)
    steps = programs.chain.Chain(chance)
    last = [programs.chain.begun(chance) for _ in range(users)]
    for _ in range(count):
        user = chance.randrange(users)
        before, last[user] = last[user], steps.after(last[user])
        yield user, before, last[user]


def test_the_folder_is_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(projects.ROOT)
    workload.check("auction")


def test_as_often_as_an_operation_is_come_to_it_is_left_and_that_is_the_published_mix(programs):
    flows = programs.chain.FLOWS
    assert sum(programs.chain.MIX.values()) == pytest.approx(100)
    assert set(flows) == set(programs.chain.MIX)
    for name, share in programs.chain.MIX.items():
        assert sum(flows[name].values()) == round(100 * share)
        assert sum(then.get(name, 0) for then in flows.values()) == round(100 * share)


def test_the_limits_are_those_of_the_publication(programs):
    limits = programs.chain.LIMITS
    assert {name for name in limits if limits[name] == 3} == {"Login", "JoinAuction", "GetCurrentItem", "Logout"}
    assert {name for name in limits if limits[name] == 5} == {"GetImageForItem", "AddImageForItem"}
    assert {name for name in programs.chain.MIX if name not in limits} == {"GetNextBid"}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("users", [20, 1000])
def test_ten_thousand_operations_have_the_mix_within_a_tenth_and_half_a_point(programs, users, seed):
    done = collections.Counter(operation for _, _, operation in walk(programs, users, 10_000, seed))
    for name, share in programs.chain.MIX.items():
        assert done[name] / 100 == pytest.approx(share, abs=0.5)
        if share >= 1:
            assert done[name] / 100 == pytest.approx(share, rel=0.1)


def test_nobody_does_what_needs_another_operation_before(programs):
    known, attending = {}, {}
    for user, before, operation in walk(programs, 50, 20_000):
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


def test_cycles_are_normal_within_their_limits(programs):
    chance = random.Random(4)
    cycles = [programs.chain.cycle(chance, 5) for _ in range(20_000)]
    assert all(0 <= cycle <= 10 for cycle in cycles)
    mean = sum(cycles) / len(cycles)
    assert mean == pytest.approx(5, rel=0.01)
    assert (sum((cycle - mean) ** 2 for cycle in cycles) / len(cycles)) ** 0.5 == pytest.approx(1.25, rel=0.03)


def test_limits_are_shortened_with_the_cycle(programs):
    assert programs.chain.limit("PlaceBid", 5) == 2
    assert programs.chain.limit("Login", 0.5) == pytest.approx(0.3)
    assert programs.chain.limit("GetNextBid", 5) is None


def test_one_answer_in_a_hundred_may_be_late(programs):
    def failing(count, late, lag=0.0, others=(0, 0)):
        counts, late = {"Login": count, "Logout": others[0]}, {"Login": late, "Logout": others[1]}
        return programs.search.failing(counts, late, lag, 5)

    together = [programs.search.RARE]
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


def searched(programs, passes, start=100, most=6000, resolution=0.3, confirmations=0):
    """The numbers that a search tries, and where it ends."""
    looking = programs.search.Search(start, most, resolution, confirmations)
    tried = []
    while (users := looking.next()) is not None:
        tried.append(users)
        assert len(tried) < 200
        looking.note(users, passes(users))
    return tried, looking


@pytest.mark.parametrize("resolution", [0.02, 0.3])
@pytest.mark.parametrize("confirmations", [0, 2])
@pytest.mark.parametrize("served", [1, 2, 3, 7, 99, 100, 101, 250, 799, 4000, 5999])
def test_the_search_closes_in_on_what_passes(programs, resolution, confirmations, served):
    tried, looking = searched(programs, lambda users: users <= served, 100, 6000, resolution, confirmations)
    assert looking.found <= served < looking.fails
    assert looking.fails - looking.found <= max(1, resolution * looking.found)
    assert tried.count(looking.found) == confirmations + 1
    # Nothing is tried in vain: each number but the one that is confirmed once.
    assert len(set(tried)) == len(tried) - confirmations


def test_the_first_numbers_are_doubled_or_halved(programs):
    assert searched(programs, lambda users: users <= 300)[0] == [100, 200, 400, 300, 350]
    assert searched(programs, lambda users: users <= 30)[0] == [100, 50, 25, 37, 31]


def test_where_none_or_all_pass_the_search_says_so(programs):
    tried, looking = searched(programs, lambda users: False)
    assert (tried, looking.found, looking.fails) == ([100, 50, 25, 12, 6, 3, 1], 0, 1)
    tried, looking = searched(programs, lambda users: True, most=500, confirmations=1)
    assert (tried, looking.found, looking.fails) == ([100, 200, 400, 500, 500], 500, None)


def test_what_does_not_pass_again_is_a_failure(programs):
    outcomes = {400: [False], 350: [False], 300: [True, False]}
    again = {users: itertools.chain(outcomes.get(users, []), itertools.repeat(True)) for users in range(1000)}
    tried, looking = searched(programs, lambda users: next(again[users]), confirmations=1)
    assert tried == [100, 200, 400, 300, 350, 300, 250, 250]
    assert (looking.found, looking.fails) == (250, 300)


@pytest.mark.parametrize("seed", range(20))
def test_the_search_ends_where_passing_is_a_matter_of_chance(programs, seed):
    chance = random.Random(seed)
    _, looking = searched(programs, lambda users: chance.random() < 1 / (1 + (users / 500) ** 4), 100, 6000, 0.02, 2)
    assert looking.fails is None or looking.found < looking.fails
    assert looking.found == 0 or looking.passes[looking.found] == 3


@pytest.fixture(scope="module")
def data(programs):
    return programs.data_set.Auctions(60, 3)


@pytest.fixture(scope="module")
def rows(programs, data):
    return {table: list(data.rows(table)) for table in programs.data_set.TABLES}


def test_the_data_follow_from_users_and_seed_alone(programs, tmp_path):
    def digests(users, seed):
        auctions = programs.data_set.Auctions(users, seed)
        return [auctions.write(table, tmp_path / table) for table in programs.data_set.TABLES]

    first = digests(15, 1)
    assert digests(15, 1) == first
    assert not {digest for _, digest in digests(15, 2)[:-1]} & {digest for _, digest in first[:-1]}
    assert [count for count, _ in first[:3]] == [30, 2, 20]
    # What an image holds must not become another without notice.
    assert first[0][1] == "25a952e4415ce8ad703ecbbf127791247e6d8af7bc2e029b0741945b16e836f6"


def test_there_is_an_auction_for_fifteen_users_and_as_many_are_over(programs, data, rows):
    assert [programs.data_set.open_auctions(users) for users in (1, 15, 16, 60)] == [1, 1, 2, 4]
    assert len(rows["people"]) == 120
    assert len(rows["auctions"]) == 8
    assert [row[3] is None for row in rows["auctions"]] == [False] * 4 + [True] * 4
    assert len(rows["items"]) == len(rows["images"]) == 80
    assert len(rows["purchases"]) == 40


def test_rows_point_at_rows_that_are_there(data, rows):
    people, auctions, items = ({row[0] for row in rows[table]} for table in ("people", "auctions", "items"))
    assert people == set(range(1, 121))
    assert auctions == set(range(1, 9))
    assert items == set(range(1, 81))
    assert {row[4] for row in rows["items"]} <= people
    assert {row[5] for row in rows["items"]} == auctions
    for _, _, auction, _, item, person, amount, _, _ in rows["bids"]:
        assert auction in auctions
        assert item in data.items_of(auction)
        assert person in people
        assert amount > 0
    assert {row[1] for row in rows["images"]} <= {row[0] for row in rows["pictures"]}
    assert len({row[1] for row in rows["bids"]}) == len(rows["bids"])


def test_who_bid_most_in_the_past_bought_and_owns(data, rows):
    owners = {row[0]: row[4] for row in rows["items"]}
    highest = {}
    for _, _, auction, listing, item, person, amount, _, verdict in rows["bids"]:
        assert verdict == "accepted"
        assert amount > highest.get((auction, listing), (0, 0, 0))[0]
        highest[auction, listing] = amount, person, item
    for _, auction, listing, item, _, buyer, amount, _ in rows["purchases"]:
        assert highest.pop((auction, listing)) == (amount, buyer, item)
        assert owners[item] == buyer
    assert highest == {}


def test_a_picture_is_a_png_of_some_kilobytes(programs):
    content = programs.data_set.picture(random.Random(1))
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert content.endswith(b"IEND\xaeB`\x82")
    assert 2000 < len(content) < 8000


class Site:
    """A site that knows one auction, and answers as the real one does."""

    def __init__(self):
        self.asked = []
        self.state = {"auction": 1, "seq": 4, "item": 1, "title": "x", "starting": 150, "price": 0, "leader": None}
        self.news = iter([])
        self.other = {}

    def ask(self, method, path, body, allowed):
        self.asked.append((method, path, body))
        found = self.other.get((method, path), self.answer(method, path, body))
        status, content = found if isinstance(found, tuple) else (allowed[0], found)
        assert status in allowed
        return status, content

    def answer(self, method, path, body):
        page, _, _query = path.partition("?")
        if not page.startswith("/api/"):
            return {
                "/": b"<title>Auctions</title>",
                "/style.css": b"body {}",
                "/site.js": b"fetch()",
                "/logo.svg": b"<svg/>",
            }[page]
        if page.endswith("/next"):
            return next(self.news, (204, b""))
        if page.endswith("/image"):
            return {"item": 7} if method == "PUT" else b"\x89PNG"
        if method == "POST" and page == "/api/items":
            return {"item": 7}
        one = {"auction": 1, "items": [{"item": 3}], "item": int(page.rsplit("/")[-1]) if page[-1].isdigit() else 1}
        lists = {"auctions": "auction", "bids": "bid", "purchases": "item", "attendances": "auction"}
        if page.removeprefix("/api/") in lists:
            return [{lists[page.removeprefix("/api/")]: 1}]
        if page.endswith("/item"):
            return self.state
        person = next((fields["name"] for _, path, fields in reversed(self.asked) if path == "/api/login"), "user0")
        return one | {"person": int(person[4:]), "name": person, "bid": "b"} | (body if method == "PUT" else {})


@pytest.fixture
def site():
    return Site()


@pytest.fixture
def visitor(programs, site):
    return programs.visitor.Visitor(site.ask, random.Random(1), [5, 6], 15)


def test_every_operation_of_the_mix_is_one_of_a_visitor(programs, site, visitor):
    visitor.begin_after("GetNextBid")
    assert [path for _, path, _ in site.asked] == [
        "/api/login",
        "/api/auctions/1/attendance",
        "/api/auctions/1/item",
    ]
    for operation in programs.chain.MIX:
        before = len(site.asked)
        visitor.do(operation)
        assert len(site.asked) - before == (4 if operation == "HomePage" else 1)


def test_a_bid_is_more_than_the_highest_that_is_known(site, visitor):
    visitor.begin_after("JoinAuction")
    visitor.place_bid()
    _, path, fields = site.asked[-1]
    assert path == "/api/auctions/1/bids"
    assert fields["item"] == 1
    assert 150 <= fields["amount"] < 650
    site.news = iter([(200, site.state | {"seq": 5, "price": 9000, "item": 2})])
    visitor.get_next_bid()
    assert site.asked[-1][1] == "/api/auctions/1/next?after=4"
    visitor.place_bid()
    assert site.asked[-1][2]["item"] == 2
    assert 9001 <= site.asked[-1][2]["amount"] < 9501
    visitor.get_next_bid()
    assert site.asked[-1][1] == "/api/auctions/1/next?after=5"
    assert visitor.bids == 2


def test_somebody_else_logs_in_each_time(site, visitor):
    for _ in range(3):
        visitor.login()
    assert [fields["name"] for _, _, fields in site.asked] == ["user6", "user5", "user6"]


@pytest.mark.parametrize(
    ("operation", "method", "path", "wrong"),
    [
        ("HomePage", "GET", "/site.js", b""),
        ("Login", "POST", "/api/login", {"person": 1}),
        ("GetActiveAuctions", "GET", "/api/auctions?page=0", []),
        ("GetActiveAuctions", "GET", "/api/auctions?page=0", [{"auction": 1}] * 11),
        ("GetBidHistory", "GET", "/api/bids", [{"item": 1}]),
        ("GetNextBid", "GET", "/api/auctions/1/next?after=4", {"auction": 1, "seq": 4}),
        ("GetNextBid", "GET", "/api/auctions/1/next?after=4", {"auction": 2, "seq": 5}),
        ("GetImageForItem", "GET", "/api/items/1/image", b"GIF8"),
        ("UpdateUserProfile", "PUT", "/api/profile", {"email": "x"}),
        ("Logout", "POST", "/api/logout", {"person": 1}),
    ],
)
def test_a_wrong_answer_is_said(programs, site, visitor, operation, method, path, wrong):
    visitor.begin_after("JoinAuction")
    site.other[method, path] = wrong
    with pytest.raises(programs.visitor.WrongAnswerError):
        visitor.do(operation)


def test_latencies_are_told_with_how_many_were_late(programs):
    found = programs.driver.summary("Login", 100, [0.1] * 98 + [0.35, 0.4], 0.5)
    assert found == {
        "count": 100,
        "late": 2,
        "within_seconds": 0.3,
        "sum_seconds": 10.55,
        "mean_ms": 105.5,
        "p99_seconds": 0.35,
        "p99_ms": 350.0,
        "max_ms": 400.0,
    }
    assert programs.driver.summary("GetNextBid", 3, [], 0.5) == {"count": 3}
    assert programs.driver.summary("Login", 0, [], 0.5) == {"count": 0}


def test_a_probe_says_whether_it_passed_and_by_what_it_failed(programs, capsys):
    def told(seconds, lag):
        part = {"began": dict.fromkeys(programs.chain.MIX, 2), "lags": [lag], "came": 5, "bids": 1, "cpu_seconds": 0.25}
        return [part | {"samples": {name: [seconds] * 2 for name in programs.chain.LIMITS}}] * 2

    asked = {"cycle": 0.5, "seconds": 2.0}
    assert programs.driver.tell("probe-1", told(0.1, 0.01), asked)
    assert not programs.driver.tell("probe-2", told(0.1, 0.2), asked)
    assert not programs.driver.tell("probe-3", told(0.25, 0.01), asked)
    drove = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"drove"' in line]
    assert [one["passed"] for one in drove] == [True, False, False]
    assert drove[1]["failing"] == ["the load"]
    assert drove[2]["failing"] == ["the rarer operations"]
    assert (drove[0]["total"], drove[0]["rate"], drove[0]["came"], drove[0]["bids"]) == (76, 38.0, 10, 2)
    assert drove[0]["busiest_share"] == 0.125


def test_more_users_than_data_are_refused_before_anything_is_touched():
    done = subprocess.run([FOLDER / "prepare.sh", "16", "15"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "start_users: 16 are more than most_users (15), for whom there are data\n"


class Rests(BaseException):
    """A user begins nothing more."""


@pytest.fixture
def load(programs, monkeypatch):
    """The load generator without Locust, whose users rest where they would sleep for long."""

    def sleep(seconds):
        if seconds > 1000:
            raise Rests

    locust = types.ModuleType("locust")
    locust.FastHttpUser, locust.task = object, lambda work: work
    of_environment = types.ModuleType("locust.env")
    of_environment.Environment = None
    gevent = types.ModuleType("gevent")
    gevent.sleep = sleep
    for module in (locust, of_environment, gevent):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, "load", raising=False)
    yield importlib.import_module("load")
    sys.modules.pop("load", None)


@pytest.mark.parametrize("answers", [1, 2])
def test_who_still_comes_when_a_probe_is_over_is_waited_for_and_begins_nothing_more(load, monkeypatch, answers):
    """Otherwise a system that is overloaded would tell of somebody who left amid a request."""
    now = [1000.0]
    monkeypatch.setattr(load.time, "time", lambda: now[0])
    monkeypatch.setattr(load.chain, "begun", lambda chance: "JoinAuction")
    asked = {"begin": 1000, "ramp": 1, "seconds": 2, "cycle": 0.5, "users": 1, "sites": ["s"], "mine": [0], "seed": 1}
    user = load.OneUser()
    user.probe = probe = load.Probe({**asked, "persons": 2})
    busy = []

    class Client:
        def request(self, method, url, **_):
            busy.append(set(probe.busy))
            if len(busy) == answers:
                now[0] = probe.ends
            return Answer(json.dumps({"person": 2, "auction": int(url.split("/")[-2]) if "attendance" in url else 1}))

    class Answer:
        def __init__(self, text):
            self.content, self.headers = text.encode(), {"content-type": "application/json"}
            self.status_code = 201 if len(busy) == 2 else 200

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def success(self):
            pass

    user.client = Client()
    with pytest.raises(Rests):
        user.on_start()
    assert busy == [{0}] * answers
    assert probe.busy == set()
    assert probe.wrong == []

"""The auctions on real servers: every operation, bids at the same time, what must hold, the page in a browser."""

import concurrent.futures
import random
import time

import pages
import projects
import pytest
import requests
import serving
from projects import until
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.support.wait import WebDriverWait
from serving import together

pytestmark = pytest.mark.long

PORT, BROKER = 27100, "27200,27300,27400"
SITE = f"http://localhost:{PORT}"
USERS, POLL, ITEM = 60, 2, 4
# The application is started again where it ends.
SERVING = rf"""
inside $of/site.sh data {USERS} 1 33554432 >&2
inside $of/site.sh prepare 15 {USERS}
inside $of/site.sh database 33554432 2 >"$root/tmp/database" 2>&1 &
until_ready $of/site.sh ready database
inside $of/site.sh broker {BROKER} >"$root/tmp/broker" 2>&1 &
until_ready /opt/strata/bin/reach 127.0.0.1 {BROKER}
while :; do
    inside $of/site.sh application 2 {BROKER} {POLL} {ITEM} >>"$root/tmp/application" 2>&1 || sleep 0.2
done &
until_ready $of/site.sh ready application 2
inside $of/site.sh web 127.0.0.1 {PORT} 2 >"$root/tmp/web" 2>&1 &
until_ready /opt/strata/bin/reach 127.0.0.1 {PORT}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder, environments = (
        tmp_path_factory.mktemp("auction") / "p",
        serving.environments("docker-gvisor"),
    )
    return serving.built(folder, {"auction": {"seconds": 2}}, environments=environments)


served = serving.servers("auction", SERVING)


@pytest.fixture
def sql(served):
    """Ask the database as its own user."""
    return lambda text: served.sql("/data/auction/0", "auction", "postgres", text).stdout


def person(number=None):
    """A user at the site; logged in, where there is a number."""
    user = serving.visitor(SITE, users=USERS)
    if number:
        user.log_in(number)
    return user


def got(user, path, method="GET", status=200, **more):
    return user.request(method, f"/api{path}", status, **more)[1]


def state_of(auction):
    """The state of an auction without a bid for its item."""
    user = person(1)
    return until(
        lambda: state if not (state := got(user, f"/auctions/{auction}/item"))["price"] else None
    )


def books():
    """The books, in which nothing may be broken."""
    found = requests.get(f"{SITE}/api/books", timeout=60).json()
    assert (found["adrift"], found["wrong"]) == (0, 0)
    return found


def bidders(count, state):
    """So many persons who may bid for what is offered, and its owner."""
    owner = int(got(person(1), f"/items/{state['item']}")["owner"][4:])
    return [person(number) for number in range(1, count + 2) if number != owner][:count], person(
        owner
    )


def place(user, auction, item, amount):
    user.auction = auction
    user.place_bid(item, amount)
    return user.bid


def bid(user, auction, item, amount):
    """The verdict on a bid."""
    name = place(user, auction, item, amount)
    return until(lambda: [bid["verdict"] for bid in got(user, "/bids") if bid["bid"] == name])[0]


# The column of a table with the key of a path, and the columns that are shown.
SHOWN = {
    "/profile": ("people", {"name": 1, "email": 4, "address": 5}),
    "/purchases": ("purchases", {"auction": 1, "item": 3, "amount": 6}),
    "/bids": ("bids", {"auction": 2, "item": 4, "amount": 6, "verdict": 8}),
    "/attendances": ("attendances", {"auction": 1}),
}
OF_PERSON = {"people": 0, "purchases": 5, "bids": 5, "attendances": 2}


def test_what_was_loaded_is_shown_and_every_operation_answers(served):
    from data_set import tables

    rows = {name: list(table) for name, table in tables(USERS, 1)}
    # Who bought the last thing that was sold has a history.
    buyer = rows["purchases"][-1][5]
    user = person(buyer)
    for path, (table, columns) in SHOWN.items():
        mine = [row for row in reversed(rows[table]) if row[OF_PERSON[table]] == buyer][:10]
        found = got(user, path)
        found = found if isinstance(found, list) else [found]
        assert [[one[key] for key in columns] for one in found] == [
            [row[at] for at in columns.values()] for row in mine
        ]
    auction = rows["auctions"][-1]
    items = [row for row in rows["items"] if row[5] == auction[0]]
    shown = got(user, f"/auctions/{auction[0]}")
    assert [shown[key] for key in ("auction", "name", "category")] == list(auction[:3])
    assert [(item["item"], item["title"], item["starting"]) for item in shown["items"]] == [
        (row[0], row[1], row[3]) for row in items
    ]
    picture = rows["pictures"][dict(rows["images"])[items[0][0]] - 1][1]
    assert got(user, f"/items/{items[0][0]}/image").hex() == picture[3:]
    before = books()["bids"]
    assert serving.check(served, "auction", PORT, users=USERS) == {}
    # The bid among the operations is decided by then.
    assert books()["bids"] == before + 1


def test_a_bid_is_told_paid_for_and_given_back_and_what_is_sold_changes_hands(served):
    state, before = state_of(3), books()
    item, starting, seq = state["item"], state["starting"], state["seq"]
    (first, second), seller = bidders(2, state)
    everybody = (seller, first, second)
    had = [got(one, "/profile")["balance"] for one in everybody]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        told = pool.submit(got, second, f"/auctions/3/next?after={seq}")
        assert bid(first, 3, item, starting) == "accepted"
        one = state | {
            "seq": seq + 1,
            "price": starting,
            "leader": f"user{first.person}",
            "bids": 1,
        }
        assert told.result() == one
    assert got(first, "/profile")["balance"] == had[1] - starting
    assert bid(second, 3, item, starting + 7) == "accepted"
    two = one | {"seq": seq + 2, "price": starting + 7, "leader": f"user{second.person}", "bids": 2}
    assert got(first, f"/auctions/3/next?after={seq + 1}") == two
    assert bid(first, 3, item, starting + 7) == "low"
    assert got(first, "/profile")["balance"] == had[1]
    after = until(
        lambda: first.request("GET", f"/api/auctions/3/next?after={seq + 2}", 200, 204)[1]
    )
    assert (after["seq"], after["price"], after["leader"], after["bids"]) == (seq + 3, 0, None, 0)
    assert after["item"] != item
    more = [
        got(one, "/profile")["balance"] - balance
        for one, balance in zip(everybody, had, strict=True)
    ]
    assert more == [starting + 7, 0, -starting - 7]
    bought = got(second, "/purchases")[0]
    assert (bought["item"], bought["amount"]) == (item, starting + 7)
    assert got(first, f"/items/{item}")["owner"] == f"user{second.person}"
    # What others had bid for before may be sold meanwhile.
    grown = {key: books()[key] - before[key] for key in ("bids", "accepted")}
    assert grown == {"bids": 3, "accepted": 2}


def test_who_waits_where_nothing_happens_hears_that_and_who_logs_out_has_left(served):
    state, user, begun = state_of(1), person(9), time.monotonic()
    assert user.request("GET", f"/api/auctions/1/next?after={state['seq']}", 204)[1] == b""
    assert time.monotonic() - begun >= 0.9 * POLL
    for _ in range(2):
        got(user, "/auctions/1/attendance", "POST", 201)
    assert [one["auction"] for one in got(user, "/attendances") if one["went"] is None] == [1]
    user.do("Logout")
    got(user, "/profile", status=401)
    assert [one for one in got(person(9), "/attendances") if one["went"] is None] == []


def test_a_wrong_password_and_requests_without_a_session_are_refused(served):
    stranger = person()
    for name, password, status in [
        ("user1", "wrong", 403),
        ("nobody", "secret-1", 403),
        (1, "secret-1", 422),
    ]:
        got(stranger, "/login", "POST", status, json={"name": name, "password": password})
    for path in (
        "auctions",
        "auctions/1/next?after=0",
        "items/1/image",
        "profile",
        "bids",
        "purchases",
    ):
        got(stranger, f"/{path}", status=401)
    for path in ("logout", "items", "auctions/1/attendance", "auctions/1/bids"):
        got(stranger, f"/{path}", "POST", 401, json={"item": 1, "amount": 1})


def test_bids_that_are_too_low_too_dear_too_late_or_for_ones_own_are_not_accepted(served):
    from data_set import BALANCE

    state = state_of(1)
    item, starting = state["item"], state["starting"]
    (bidder,), seller = bidders(1, state)
    other = next(row["item"] for row in got(bidder, "/auctions/1")["items"] if row["item"] != item)
    for user, offered, amount, verdict in [
        (seller, item, starting, "own"),
        (bidder, item, starting - 1, "low"),
        (bidder, item, 2 * BALANCE, "poor"),
        (bidder, other, starting, "over"),
    ]:
        assert bid(user, 1, offered, amount) == verdict


def test_of_many_bids_at_the_same_time_none_is_lost_and_the_highest_wins(served, sql):
    before, state = books(), state_of(2)
    people, _ = bidders(8, state)

    def bids(number):
        amounts = [
            state["starting"] + random.Random(f"{number} {bid}").randrange(20_000)
            for bid in range(25)
        ]
        return [place(people[number], 2, state["item"], amount) for amount in amounts]

    names = [name for one in together(bids, range(8)) for name in one]
    assert len(set(names)) == 200
    after = until(lambda: found if (found := books())["bids"] >= before["bids"] + 200 else None)
    assert after["bids"] == before["bids"] + 200
    assert after["accepted"] > before["accepted"]
    of_item = f"auction = 2 AND item = {state['item']}"
    highest = int(sql(f"SELECT max(amount) FROM bids WHERE {of_item} AND verdict = 'accepted'"))
    until(lambda: books()["purchases"] > before["purchases"])
    assert (
        int(sql(f"SELECT amount FROM purchases WHERE {of_item} ORDER BY id DESC LIMIT 1"))
        == highest
    )
    # Accepted bids rise, and an item is its last buyer's.
    falling = """SELECT count(*) FROM (SELECT amount <= lag(amount) OVER (PARTITION BY auction, listing ORDER BY number)
                 AS falls FROM bids WHERE verdict = 'accepted') AS b WHERE falls"""
    stolen = """SELECT count(*) FROM items AS i JOIN (SELECT DISTINCT ON (item) * FROM purchases ORDER BY item, id DESC)
                AS p ON p.item = i.id WHERE i.owner <> p.buyer"""
    assert (sql(falling), sql(stolen)) == ("0\n", "0\n")
    assert "deadlock" not in served.said("database")


def test_bids_that_were_taken_survive_the_end_of_the_application(served, sql):
    before, state = books(), state_of(4)
    people, _ = bidders(4, state)
    # While its auction is held nothing is decided about a bid.
    hold = "BEGIN; SELECT FROM auctions WHERE id = 4 FOR UPDATE; SELECT pg_sleep(3); COMMIT"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        held = pool.submit(sql, hold)
        time.sleep(0.5)
        for number, user in enumerate(people):
            place(user, 4, state["item"], state["starting"] + number)
        assert books()["bids"] == before["bids"]
        found = served.inside("pgrep", "--full", "auctions:application").stdout.split()
        assert len(found) >= 2
        assert served.inside("kill", "-KILL", *found).returncode == 0
        held.result()

    def decided():
        try:
            return books()["bids"] == before["bids"] + 4
        except (OSError, ValueError):
            return False

    assert until(decided)


def test_the_page_shows_who_logs_in_the_open_auctions(served):
    with pages.chromium() as browser:
        browser.get(SITE)
        browser.find_element("css selector", "[name=name]").send_keys("user1")
        browser.find_element("css selector", "[name=password]").send_keys("secret-1")
        browser.find_element("css selector", "#login button").click()
        # Rows come into the place of others, for which Chromium has several errors.
        waiting = WebDriverWait(browser, 20, ignored_exceptions=[WebDriverException])
        waiting.until(lambda _: browser.find_elements("css selector", "tbody tr"))
        assert len(browser.find_elements("css selector", "tbody tr")) == 4


def test_cells_are_measured_in_a_container_as_on_the_host(project, machine_stays):
    for record in serving.measure(project, "auction", "native", "docker"):
        assert [server["exit"] for server in record["servers"]] == [0, 0, 0, 0]


def test_a_sandbox_that_cannot_tell_who_asks_at_a_socket_serves_them_too(project, machine_stays):
    sandbox = projects.plan(project)["environments"]["docker-gvisor"]
    if not sandbox["available"]:
        pytest.skip(sandbox["reason"])
    (record,) = serving.measure(project, "auction", "docker-gvisor")
    assert [server["exit"] for server in record["servers"]] == [0, 0, 0, 0]
    assert "cannot" not in record

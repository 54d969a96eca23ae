"""The auctions on real servers: every operation, bids at the same time, what must hold, the page in a browser."""

import concurrent.futures
import random
import re
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
USERS, SEED, POLL, ITEM = 60, 1, 2, 4
# The application is started again where it ends.
SERVING = rf"""
inside $of/site.sh data {USERS} {SEED} 33554432 >&2
inside $of/site.sh prepare 15 {USERS}
inside $of/site.sh database 33554432 2 >"$root/tmp/database" 2>&1 &
until_ready $of/site.sh ready database
inside $of/site.sh broker {BROKER} >"$root/tmp/broker" 2>&1 &
until_ready $of/site.sh ready broker {BROKER}
while :; do
    inside $of/site.sh application 2 {BROKER} {POLL} {ITEM} >>"$root/tmp/application" 2>&1 || sleep 0.2
done &
until_ready $of/site.sh ready application 2
inside $of/site.sh web 127.0.0.1 {PORT} 2 >"$root/tmp/web" 2>&1 &
until_ready $of/site.sh ready web 127.0.0.1 {PORT}
"""
BROKEN = ("adrift", "wrong", "unsold", "astray", "falling", "stolen")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder, environments = tmp_path_factory.mktemp("auction") / "p", serving.environments("docker-gvisor")
    return serving.built(folder, {"auction": {"seconds": 2}}, environments=environments)


served = serving.servers("auction", SERVING)


@pytest.fixture
def sql(served):
    """Ask the database, as its own user or with the application's account."""

    def ask(text, account="postgres"):
        return served.sql("/data/auction/store", "auction", account, text)

    return ask


def person(number):
    """Somebody at the site; logged in, where there is a number."""
    from visitor import Bidder
    from visits import alone

    found = alone(Bidder, SITE, users=USERS, seed=7)
    if number:
        found.persons = [number]
        found.do("Login")
    return found


def got(somebody, path, method="GET", allowed=200, **sent):
    return somebody.ask(method, f"/api{path}", allowed, **sent)[1]


def state_of(auction):
    """How an auction stands once nobody has bid for what it offers."""
    somebody = person(1)
    return until(lambda: found if not (found := got(somebody, f"/auctions/{auction}/item"))["price"] else None)


def books():
    """The books, in which nothing may be broken."""
    from drive import books

    found = books(SITE, "/api/books")
    assert {key: found[key] for key in BROKEN} == dict.fromkeys(BROKEN, 0)
    return found


def bidders(count, state):
    """So many persons who may bid for what is offered."""
    owner = int(got(person(1), f"/items/{state['item']}")["owner"][4:])
    return [person(number) for number in range(1, count + 2) if number != owner][:count], person(owner)


def place(somebody, auction, item, amount):
    fields = {"item": item, "amount": amount}
    return got(somebody, f"/auctions/{auction}/bids", "POST", 202, json=fields)["bid"]


def bid(somebody, auction, item, amount):
    """What is decided about a bid."""
    name = place(somebody, auction, item, amount)
    return until(lambda: [one["verdict"] for one in got(somebody, "/bids") if one["bid"] == name])[0]


def loaded(data, buyer):
    """What was loaded, by the path that shows it, of lists the first page."""

    def some(row, *keys):
        return {key: row[key] for key in keys}

    bids = [bid for item in reversed(data.past()) for bid in reversed(data.sold(item)) if bid["person"] == buyer]
    bought = [bid for bid in bids if bid == data.sold(bid["item"])[-1]]
    attended = sorted({bid["auction"] for bid in bids}, reverse=True)
    # Of those that are over, nobody changes anything.
    over = data.all
    items = [{"item": number, **some(data.item(number), "title", "starting")} for number in data.items_of(over)]
    item = data.item(items[0]["item"])
    shown = some(item, "title", "description", "starting", "auction") | {"owner": f"user{item['owner']}", "image": True}
    return {
        "/profile": [some(data.person(buyer), "name", "email", "address")],
        "/bids": [some(bid, "auction", "item", "amount", "verdict") for bid in bids[:10]],
        "/purchases": [some(bid, "auction", "item", "amount") for bid in bought[:10]],
        "/attendances": [{"auction": auction} for auction in attended[:10]],
        "/auctions?page=0": [
            {"auction": number, **some(data.auction(number), "name", "category")} for number in range(1, data.open + 1)
        ],
        f"/auctions/{over}": [{"auction": over, "items": items}],
        f"/items/{item['id']}": [shown],
    }


def test_what_was_loaded_is_shown_and_every_operation_answers(served):
    from data_set import Auctions

    data = Auctions(USERS, SEED)
    # Who bought the last thing that was sold has a history.
    buyer = data.sold(data.past()[-1])[-1]["person"]
    somebody, item = person(buyer), data.past()[0]
    for path, rows in loaded(data, buyer).items():
        found = got(somebody, path)
        found = found if isinstance(found, list) else [found]
        assert [{key: row.get(key) for key in rows[0]} for row in found] == rows
    assert got(somebody, f"/items/{item}/image") == data.picture(data.picture_of(item))
    before = books()["bids"]
    argv = ["/usr/bin/python3", "-B", "/opt/strata/workloads/auction/driver.py", "check"]
    done = served.inside(*argv, "127.0.0.1", str(PORT), str(USERS), "3")
    assert done.returncode == 0, done.stderr
    # The bid among them is decided by then.
    assert books()["bids"] == before + 1
    assert serving.said_wrong(served, "auction") == {}


def test_a_bid_is_told_paid_for_and_given_back_and_what_is_sold_changes_hands(served):
    state, before = state_of(3), books()
    item, starting, seq = state["item"], state["starting"], state["seq"]
    (first, second), seller = bidders(2, state)
    everybody = (seller, first, second)
    had = [got(one, "/profile")["balance"] for one in everybody]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        told = pool.submit(got, second, f"/auctions/3/next?after={seq}")
        assert bid(first, 3, item, starting) == "accepted"
        one = state | {"seq": seq + 1, "price": starting, "leader": f"user{first.person}", "bids": 1}
        assert told.result() == one
    assert got(first, "/profile")["balance"] == had[1] - starting
    assert bid(second, 3, item, starting + 7) == "accepted"
    two = one | {"seq": seq + 2, "price": starting + 7, "leader": f"user{second.person}", "bids": 2}
    assert got(first, f"/auctions/3/next?after={seq + 1}") == two
    assert bid(first, 3, item, starting + 7) == "low"
    assert got(first, "/profile")["balance"] == had[1]
    after = until(lambda: first.ask("GET", f"/api/auctions/3/next?after={seq + 2}", 200, 204)[1])
    assert (after["seq"], after["price"], after["leader"], after["bids"]) == (seq + 3, 0, None, 0)
    assert after["item"] != item
    more = [got(one, "/profile")["balance"] - balance for one, balance in zip(everybody, had, strict=True)]
    assert more == [starting + 7, 0, -starting - 7]
    bought = got(second, "/purchases")[0]
    assert (bought["item"], bought["amount"]) == (item, starting + 7)
    assert got(first, f"/items/{item}")["owner"] == f"user{second.person}"
    # What others had bid for before may be sold meanwhile.
    grown = {key: books()[key] - before[key] for key in ("bids", "accepted")}
    assert grown == {"bids": 3, "accepted": 2}


def test_who_waits_where_nothing_happens_hears_that_and_who_logs_out_has_left(served):
    state, somebody, begun = state_of(1), person(9), time.monotonic()
    assert somebody.ask("GET", f"/api/auctions/1/next?after={state['seq']}", 204)[1] == b""
    assert time.monotonic() - begun >= 0.9 * POLL
    for _ in range(2):
        got(somebody, "/auctions/1/attendance", "POST", 201)
    assert [one["auction"] for one in got(somebody, "/attendances") if one["went"] is None] == [1]
    somebody.do("Logout")
    got(somebody, "/profile", allowed=401)
    assert [one for one in got(person(9), "/attendances") if one["went"] is None] == []


def test_nobody_gets_in_with_a_wrong_password_nor_does_anything_without_one(served):
    stranger = person(None)
    for fields, status in [
        ({"name": "user1", "password": "wrong"}, 403),
        ({"name": "nobody", "password": "secret-1"}, 403),
        ({"name": "user1"}, 422),
        ({"name": 1, "password": "secret-1"}, 422),
    ]:
        got(stranger, "/login", "POST", status, json=fields)
    got(stranger, "/login", "POST", 422, data=b"{")
    reading = ["auctions", "auctions/1", "auctions/1/item", "auctions/1/next?after=0", "items/1", "items/1/image"]
    for path in [*reading, "profile", "bids", "purchases", "attendances"]:
        got(stranger, f"/{path}", allowed=401)
    for path in ("logout", "items", "auctions/1/attendance", "auctions/1/bids"):
        got(stranger, f"/{path}", "POST", 401, json={"item": 1, "amount": 1})
    assert requests.get(f"{SITE}/api/profile", cookies={"session": "0" * 32}, timeout=60).status_code == 401


def test_what_is_not_there_or_not_ones_own_is_refused_and_markup_stays_text(served):
    owner, other = person(1), person(2)
    fields = {"title": "<script>alert('&')</script>", "description": "one's own", "starting": 100}
    item = got(owner, "/items", "POST", 201, json=fields)["item"]
    assert got(other, f"/items/{item}")["title"] == fields["title"]
    got(owner, f"/items/{item}/image", allowed=404)
    got(other, f"/items/{item}/image", "PUT", 403, data=b"\x89PNG\r\n\x1a\n")
    got(owner, f"/items/{item}/image", "PUT", 422, data=b"GIF89a")
    got(owner, "/items", "POST", 422, json={"title": "x"})
    got(owner, "/profile", "PUT", 422, json={"email": "x"})
    for path in ("auctions/9999", "auctions/9999/item", "items/99999", "items/99999/image", "nothing"):
        got(owner, f"/{path}", allowed=404)
    for wrong in ({"item": 1, "amount": 0}, {"item": 10**9, "amount": 1}):
        got(owner, "/auctions/1/bids", "POST", 422, json=wrong)


def test_bids_that_are_too_low_too_dear_too_late_or_for_ones_own_are_not_accepted(served):
    from data_set import BALANCE, Auctions

    state = state_of(1)
    item, starting = state["item"], state["starting"]
    (bidder,), seller = bidders(1, state)
    other = next(number for number in Auctions(USERS, SEED).items_of(1) if number != item)
    for somebody, offered, amount, verdict in [
        (seller, item, starting, "own"),
        (bidder, item, starting - 1, "low"),
        (bidder, item, 2 * BALANCE, "poor"),
        (bidder, other, starting, "over"),
    ]:
        assert bid(somebody, 1, offered, amount) == verdict


def test_the_database_refuses_what_must_not_be(sql):
    assert "people_balance_check" in sql("UPDATE people SET balance = -1 WHERE id = 1").stderr
    assert "auctions_check" in sql("UPDATE auctions SET price = price + 1 WHERE leader IS NULL").stderr
    for change in ("DELETE FROM bids", "UPDATE bids SET amount = 1", "DELETE FROM purchases", "DROP TABLE bids"):
        assert re.search("permission denied|must be owner", sql(change, account="auction").stderr)
    twice = "INSERT INTO purchases SELECT 10000000, auction, listing, item, seller, buyer, amount, made FROM purchases"
    assert "duplicate key" in sql(twice).stderr


def test_of_many_bids_at_the_same_time_none_is_lost_and_the_highest_wins(served, sql):
    before, state = books(), state_of(2)
    people, _ = bidders(8, state)

    def bids(number):
        amounts = [state["starting"] + random.Random(f"{number} {bid}").randrange(20_000) for bid in range(25)]
        return [place(people[number], 2, state["item"], amount) for amount in amounts]

    names = [name for one in together(bids, range(8)) for name in one]
    assert len(set(names)) == 200
    after = until(lambda: found if (found := books())["bids"] >= before["bids"] + 200 else None)
    assert after["bids"] == before["bids"] + 200
    assert after["accepted"] > before["accepted"]
    of_item = f"auction = 2 AND item = {state['item']}"
    highest = int(sql(f"SELECT max(amount) FROM bids WHERE {of_item} AND verdict = 'accepted'").stdout)
    until(lambda: books()["purchases"] > before["purchases"])
    assert int(sql(f"SELECT amount FROM purchases WHERE {of_item} ORDER BY id DESC LIMIT 1").stdout) == highest
    assert "deadlock" not in served.said("database")


def test_bids_that_were_taken_survive_the_end_of_the_application(served, sql):
    before, state = books(), state_of(4)
    people, _ = bidders(4, state)
    # While its auction is held nothing is decided about a bid.
    hold = "BEGIN; SELECT FROM auctions WHERE id = 4 FOR UPDATE; SELECT pg_sleep(3); COMMIT"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        held = pool.submit(sql, hold)
        time.sleep(0.5)
        for number, somebody in enumerate(people):
            place(somebody, 4, state["item"], state["starting"] + number)
        assert books()["bids"] == before["bids"]
        found = served.inside("pgrep", "--full", "auctions:application").stdout.split()
        assert len(found) >= 2
        assert served.inside("kill", "-KILL", *found).returncode == 0
        assert held.result().returncode == 0

    def decided():
        try:
            return books()["bids"] == before["bids"] + 4
        except OSError:
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

"""The auctions on real servers: every operation, bids at the same time, what must hold, a page in two browsers."""

import concurrent.futures
import random
import re
import time

import pages
import projects
import pytest
import serving
from serving import together

pytestmark = pytest.mark.long

PORT, BROKER = 27100, "27200,27300,27400"
SITE = f"http://localhost:{PORT}"
USERS, SEED, POLL, ITEM = 60, 1, 2, 4
# The application is started again where it ends.
SERVING = rf"""
inside $of/data.sh {USERS} {SEED} 33554432 >&2
inside $of/prepare.sh 15 {USERS}
inside $of/database.sh 33554432 2 >"$root/tmp/database" 2>&1 &
until_ready $of/ready.sh database
inside $of/broker.sh {BROKER} >"$root/tmp/broker" 2>&1 &
until_ready $of/ready.sh broker {BROKER}
while :; do inside $of/application.sh 2 {BROKER} {POLL} {ITEM} >>"$root/tmp/application" 2>&1 || sleep 0.2; done &
until_ready $of/ready.sh application 2
inside $of/web.sh 127.0.0.1 {PORT} 2 >"$root/tmp/web" 2>&1 &
until_ready $of/ready.sh web 127.0.0.1 {PORT}
"""


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


def the_check():
    from check import Check
    from data_set import Auctions

    return Check(SITE, Auctions(USERS, SEED), POLL, ITEM, 7)


def bidders(check, count, state):
    """So many persons who may bid for what is offered."""
    owner = int(check.person(1).ask("GetItemDetail", "GET", f"/api/items/{state['item']}")["owner"][4:])
    return [check.person(number) for number in range(1, count + 2) if number != owner][:count]


def place(person, state, amount):
    fields = {"item": state["item"], "amount": amount}
    return person.ask("PlaceBid", "POST", f"/api/auctions/{state['auction']}/bids", fields, 202)["bid"]


def decided(check, count):
    """The books once so many bids were decided."""
    until = time.monotonic() + 60
    while (found := check.books())["bids"] < count:
        assert time.monotonic() < until, f"{found['bids']} of {count} bids"
        time.sleep(0.1)
    return found


def test_every_operation_answers_as_the_data_and_arithmetic_say(served):
    import chain

    assert the_check().run() == list(chain.MIX)
    assert serving.said_wrong(served, "auction") == {}


def test_nobody_gets_in_with_a_wrong_password_nor_does_anything_without_one(served):
    from check import Person
    from data_set import name, password

    stranger = Person(SITE, set())
    for fields, status in [
        ({"name": name(1), "password": "wrong"}, 403),
        ({"name": "nobody", "password": password(1)}, 403),
        ({"name": name(1)}, 422),
        ({"name": 1, "password": password(1)}, 422),
        ({"name": name(1), "password": "\0"}, 422),
    ]:
        stranger.ask("Login", "POST", "/api/login", fields, status)
    stranger.ask("Login", "POST", "/api/login", b"{", 422)
    reading = ["auctions", "auctions/1", "auctions/1/item", "auctions/1/next?after=0", "items/1", "items/1/image"]
    for path in [*reading, "profile", "bids", "purchases", "attendances"]:
        stranger.ask(path, "GET", f"/api/{path}", allowed=401)
    for path in ("logout", "items", "auctions/1/attendance", "auctions/1/bids"):
        stranger.ask(path, "POST", f"/api/{path}", {"item": 1, "amount": 1}, 401)
    stranger.session.cookies.set("session", "0" * 32)
    stranger.ask("profile", "GET", "/api/profile", allowed=401)


def test_what_makes_no_sense_is_refused_and_markup_stays_text(served):
    check = the_check()
    owner, other = check.person(1), check.person(2)
    fields = {"title": "<script>alert('&')</script>", "description": "one's own", "starting": 100}
    item = owner.ask("AddItem", "POST", "/api/items", fields, 201)["item"]
    assert other.ask("GetItemDetail", "GET", f"/api/items/{item}")["title"] == fields["title"]
    owner.ask("GetImageForItem", "GET", f"/api/items/{item}/image", allowed=404)
    other.ask("AddImageForItem", "PUT", f"/api/items/{item}/image", b"\x89PNG\r\n\x1a\n", 403)
    owner.ask("AddImageForItem", "PUT", f"/api/items/{item}/image", b"GIF89a", 422)
    for wrong in ({**fields, "starting": -1}, {**fields, "title": " "}, {"title": "x"}):
        owner.ask("AddItem", "POST", "/api/items", wrong, 422)
    for wrong in ({"email": "", "address": "x"}, {"email": "x"}, {"email": "x", "address": "x" * 2001}):
        owner.ask("UpdateUserProfile", "PUT", "/api/profile", wrong, 422)
    for path in ("auctions/999999999999", "items/999999999", "items/999999999/image", "nothing"):
        owner.ask(path, "GET", f"/api/{path}", allowed=404)
    state = owner.state(1)
    for wrong, status in (({"item": state["item"], "amount": 0}, 422), ({"item": 10**9, "amount": 1}, 404)):
        owner.ask("PlaceBid", "POST", "/api/auctions/1/bids", wrong, status)


def test_bids_that_are_too_low_too_dear_too_late_or_for_ones_own_are_not_accepted(served):
    from data_set import BALANCE

    check = the_check()
    state = check.person(1).state(1)
    item, starting = state["item"], state["starting"]
    (bidder,), seller = bidders(check, 1, state), check.person(check.data.item(item)["owner"])
    for person, offered, amount, verdict in [
        (seller, item, starting, "own"),
        (bidder, item, starting - 1, "low"),
        (bidder, item, BALANCE + 1, "poor"),
        (bidder, check.data.items_of(1)[-1], starting, "over"),
    ]:
        assert person.bid(1, offered, amount) == verdict


def test_the_database_refuses_what_must_not_be(sql):
    assert "people_balance_check" in sql("UPDATE people SET balance = -1 WHERE id = 1").stderr
    assert "auctions_check" in sql("UPDATE auctions SET price = price + 1 WHERE leader IS NULL").stderr
    for change in ("DELETE FROM bids", "UPDATE bids SET amount = 1", "DELETE FROM purchases", "DROP TABLE bids"):
        assert re.search("permission denied|must be owner", sql(change, account="auction").stderr)
    twice = "INSERT INTO purchases SELECT 10000000, auction, listing, item, seller, buyer, amount, made FROM purchases"
    assert "duplicate key" in sql(twice).stderr


def test_of_many_bids_at_the_same_time_none_is_lost_and_the_highest_wins(served, sql):
    check = the_check()
    before = check.books()
    state = check.person(1).state(2)
    people = bidders(check, 8, state)

    def bid(number):
        source = random.Random(number)
        low = state["starting"]
        return [place(people[number], state, low + source.randrange(20_000)) for _ in range(25)]

    names = [name for one in together(bid, range(8)) for name in one]
    assert len(set(names)) == 200
    after = decided(check, before["bids"] + 200)
    assert after["bids"] == before["bids"] + 200
    assert after["accepted"] > before["accepted"]
    highest = int(sql("SELECT max(amount) FROM bids WHERE auction = 2 AND verdict = 'accepted'").stdout)
    until = time.monotonic() + 60
    while check.books()["purchases"] == before["purchases"] and time.monotonic() < until:
        time.sleep(0.2)
    sold = sql(f"SELECT amount FROM purchases WHERE auction = 2 AND item = {state['item']}").stdout
    assert int(sold) == highest
    assert check.books()["purchases"] == before["purchases"] + 1
    assert "deadlock" not in served.said("database")


def test_bids_that_were_taken_survive_the_end_of_the_application(served, sql):
    check = the_check()
    before = check.books()
    state = check.person(1).state(4)
    people = bidders(check, 4, state)
    # While its auction is held nothing is decided about a bid.
    hold = "BEGIN; SELECT FROM auctions WHERE id = 4 FOR UPDATE; SELECT pg_sleep(3); COMMIT"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        held = pool.submit(sql, hold)
        time.sleep(0.5)
        for number, person in enumerate(people):
            place(person, state, state["starting"] + number)
        assert check.books()["bids"] == before["bids"]
        found = served.inside("pgrep", "--full", "auctions:application").stdout.split()
        assert len(found) >= 2
        assert served.inside("kill", "-KILL", *found).returncode == 0
        assert held.result().returncode == 0
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            after = check.books()
        except Exception:
            after = before
        if after["bids"] == before["bids"] + 4:
            break
        time.sleep(0.2)
    assert after["bids"] == before["bids"] + 4


def test_a_bid_in_one_browser_is_seen_in_another(served):
    def log_in(browser, name, number):
        browser.implicitly_wait(10)
        browser.get(SITE)
        browser.find_element("css selector", "[name=name]").send_keys(name)
        browser.find_element("css selector", "[name=password]").send_keys(f"secret-{number}")
        browser.find_element("css selector", "#login button").click()
        browser.find_element("css selector", "#list tbody tr:nth-child(2) button").click()
        pages.patient(browser).until(lambda _: browser.find_element("css selector", "#auction h2").text)

    def price(browser):
        return browser.find_element("css selector", "#price").text

    check = the_check()
    state = check.person(1).state(2)
    one, other = (person.number for person in bidders(check, 2, state))
    with pages.chromium() as first, pages.chromium() as second:
        log_in(first, f"user{one}", one)
        log_in(second, f"user{other}", other)
        assert first.find_element("css selector", "#title").text == state["title"]
        offered = f"{(state['starting'] + 123) / 100:.2f}"
        first.find_element("css selector", "[name=amount]").send_keys(offered)
        first.find_element("css selector", "#bid button").click()
        pages.patient(second).until(lambda _: price(second) == offered)
        assert second.find_element("css selector", "#leader").text == f"by user{one}"
        pages.patient(first).until(lambda _: price(first) == offered)
        # The image of what is offered is one.
        shown = "return document.querySelector('#image').naturalWidth"
        assert second.execute_script(shown) == 96
        second.find_element("css selector", "#leave").click()
        pages.patient(second).until(lambda _: second.find_element("css selector", "#list").is_displayed())
        second.find_element("css selector", "#logout").click()
        pages.patient(second).until(lambda _: second.find_element("css selector", "#login").is_displayed())


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

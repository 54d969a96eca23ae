"""The three web applications on real servers: every operation, concurrency, and what must hold."""

import concurrent.futures
import html
import random
import re
import time

import projects
import pytest
import requests
import serving
from projects import until
from serving import run_together

pytestmark = pytest.mark.long

# The ports of each application's sites; the shop has a site for each test that changes it for good.
PORTS = {"auction": [27100], "cloudstone": [28080], "dvdstore": [28100, 28101, 28102]}
# Settings of visitors: the numbers of the data sets below.
SETTINGS = {
    "auction": {"users": 60},
    "cloudstone": {"loaded_users": 25},
    "dvdstore": {"size": "small", "data_seed": 1},
}
# The keys of the books that count faults.
FAULTS = {"auction": ["adrift", "wrong"], "cloudstone": ["broken"], "dvdstore": ["adrift", "lost"]}
POLL_SECONDS, ITEM_SECONDS = 2, 4
# The auctions' application is started again whenever it ends.
COMMANDS = {
    "auction": rf"""
broker=27200,27300,27400
inside $programs/site.sh data 60 1 33554432 >&2
inside $programs/site.sh prepare 15 60
start database $programs/site.sh database 33554432 2
wait_for $programs/site.sh ready database
start broker $programs/site.sh broker $broker
wait_for /opt/strata/bin/reach 127.0.0.1 $broker
while :; do
    inside $programs/site.sh application 2 $broker {POLL_SECONDS} {ITEM_SECONDS} || sleep 0.2
done >>"$root/tmp/application" 2>&1 &
wait_for $programs/site.sh ready application 2
start web $programs/site.sh web 127.0.0.1 $4 2
""",
    "cloudstone": """
database=28480 roles=web+database
inside $programs/site.sh data 25 33554432 8388608 11 >&2
inside $programs/site.sh prepare $4 28280 25 25 $database $roles
start database $programs/site.sh database $4 33554432 8388608 127.0.0.1 $database $roles
wait_for $programs/site.sh ready database $4
start geocoder $programs/site.sh geocoder 127.0.0.1 28280
start php $programs/site.sh php 127.0.0.1 28280 16 127.0.0.1 $database $roles
wait_for $programs/site.sh ready php $4
start web $programs/site.sh web 127.0.0.1 $4 4
wait_for /opt/strata/bin/reach 127.0.0.1 28280
""",
    "dvdstore": """
inside $programs/site.sh data small 1 33554432 >&2
inside $programs/site.sh prepare $4
start postgresql $programs/site.sh database $4 33554432
wait_for $programs/site.sh ready $4
start apache $programs/site.sh web 127.0.0.1 $4 8
""",
}
# Short cells: their commands are tested, not their values.  CloudStone has two instances.
PARAMETERS = {
    "auction": {"seconds": 2},
    "cloudstone": {
        "web_ports": [18080, 18090],
        "geocoder_ports": [18280, 18290],
        "users": [5, 10],
        "seconds": 5,
        "mix_points": 3,
    },
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    environments = serving.find_environments("docker-gvisor")
    folder = tmp_path_factory.mktemp("applications") / "p"
    return serving.build_project(folder, PARAMETERS, environments=environments)


@pytest.fixture(scope="module", params=list(PORTS))
def servers(request, project, tmp_path_factory):
    """The servers of an application."""
    name, ports = request.param, PORTS[request.param]
    folder = tmp_path_factory.mktemp("servers")
    reach = "wait_for /opt/strata/bin/reach 127.0.0.1 $4\n"
    commands = f'set -- "$@" {",".join(map(str, ports))}\n{COMMANDS[name]}{reach}'
    with serving.run_servers(project, name, commands, folder, **SETTINGS[name]) as running:
        running.urls = [f"http://127.0.0.1:{port}" for port in ports]
        yield running


auction, cloudstone, dvdstore = (
    pytest.mark.parametrize("servers", [name], indirect=True) for name in PORTS
)


def read_books(servers, number=0):
    """The books of a site, in which there must be no fault."""
    books = servers.read_books(number)
    assert [books[key] for key in FAULTS[servers.workload]] == [0] * len(FAULTS[servers.workload])
    return books


def growth(before, after, *keys):
    return {key: after[key] - before[key] for key in keys}


def test_every_operation_answers_and_no_server_reports_trouble(servers):
    before = read_books(servers)
    assert servers.check_operations() == {}
    after = read_books(servers)
    # Each application's own writes, once for every operation.
    expected = {
        "auction": {"bids": 1},
        "cloudstone": {"person": 1, "socialevent": 1},
        "dvdstore": {"orders": 2, "customers": 1},
    }[servers.workload]
    assert growth(before, after, *expected) == expected


# Requests without a login: method, path, form or object, and the statuses of the application.
REFUSED = {
    "auction": [
        *[("GET", f"/api/{path}", None, 401) for path in ("profile", "bids", "items/1/image")],
        *[("POST", f"/api/{path}", {}, 401) for path in ("logout", "items", "auctions/1/bids")],
        ("POST", "/api/login", {"name": "user1", "password": "wrong"}, 403),
        ("POST", "/api/login", {"name": "nobody", "password": "secret-1"}, 403),
        ("POST", "/api/login", {"name": 1, "password": "secret-1"}, 422),
    ],
    "cloudstone": [
        ("POST", "/login", {"username": "person1", "password": "wrong"}, 403),
        ("GET", "/events/new", None, 403),
        ("GET", "/people/999999999", None, 404),
    ],
    "dvdstore": [
        ("POST", "/login.php", {"username": "user1", "password": "wrong"}, 403),
        ("POST", "/login.php", {"username": "nobody", "password": "password"}, 403),
        ("POST", "/login.php", {}, 403),
        ("POST", "/purchase.php", {"quantity[1]": 1}, 403),
        ("POST", "/new.php", {"username": "alone"}, 422),
        ("GET", "/browse.php?by=price&words=1", None, 422),
    ],
}


def test_what_a_stranger_may_not_do_is_refused_and_changes_nothing(servers):
    before = read_books(servers)
    for method, path, fields, status in REFUSED[servers.workload]:
        kind = "json" if servers.workload == "auction" else "data"
        url = servers.urls[0] + path
        answer = requests.request(method, url, **{kind: fields}, timeout=60)
        assert answer.status_code == status, (path, fields, answer.text)
    assert read_books(servers) == before


# The auctions.


def log_in_person(servers, number=1):
    person = servers.make_visitor()
    person.log_in(number)
    return person


def call(person, path, method="GET", status=200, **options):
    return person.request(method, f"/api{path}", status, **options)[1]


def wait_for_fresh_offer(servers, auction):
    """The state of an auction without a bid for its item."""
    person = log_in_person(servers)

    def fetch():
        state = call(person, f"/auctions/{auction}/item")
        return None if state["price"] else state

    return until(fetch)


def make_bidders(servers, count, state):
    """So many persons who may bid for the item on offer, and its owner."""
    owner = int(call(log_in_person(servers), f"/items/{state['item']}")["owner"][4:])
    numbers = [number for number in range(1, count + 2) if number != owner][:count]
    return [log_in_person(servers, number) for number in numbers], log_in_person(servers, owner)


def place_bid(person, auction, item, amount):
    person.auction = auction
    person.place_bid(item, amount)
    return person.bid


def wait_for_verdict(person, auction, item, amount):
    name = place_bid(person, auction, item, amount)
    return until(lambda: [row["verdict"] for row in call(person, "/bids") if row["bid"] == name])[0]


# Path, table, the column with the person, and the columns that are shown.
SHOWN = [
    ("/profile", "people", 0, {"name": 1, "email": 4, "address": 5}),
    ("/purchases", "purchases", 5, {"auction": 1, "item": 3, "amount": 6}),
    ("/bids", "bids", 5, {"auction": 2, "item": 4, "amount": 6, "verdict": 8}),
    ("/attendances", "attendances", 2, {"auction": 1}),
]


@auction
def test_the_site_shows_what_was_loaded(servers):
    from data_set import AuctionData

    rows = {name: list(table) for name, table in AuctionData(60, 1).tables()}
    # The buyer of the item that was sold last has a history.
    buyer = rows["purchases"][-1][5]
    person = log_in_person(servers, buyer)
    for path, table, column, columns in SHOWN:
        expected = [row for row in reversed(rows[table]) if row[column] == buyer][:10]
        answer = call(person, path)
        answer = answer if isinstance(answer, list) else [answer]
        assert [[line[key] for key in columns] for line in answer] == [
            [row[at] for at in columns.values()] for row in expected
        ]
    number, name, category, *_ = rows["auctions"][-1]
    items = [row for row in rows["items"] if row[5] == number]
    shown = call(person, f"/auctions/{number}")
    assert (shown["name"], shown["category"]) == (name, category)
    assert [(item["item"], item["title"], item["starting"]) for item in shown["items"]] == [
        (row[0], row[1], row[3]) for row in items
    ]
    picture = rows["pictures"][dict(rows["images"])[items[0][0]] - 1][1]
    assert call(person, f"/items/{items[0][0]}/image").hex() == picture[3:]


@auction
def test_a_bid_is_announced_paid_and_given_back_and_a_sold_item_changes_hands(servers):
    state, before = wait_for_fresh_offer(servers, 3), read_books(servers)
    item, starting, seq = state["item"], state["starting"], state["seq"]
    (first, second), seller = make_bidders(servers, 2, state)
    persons = (seller, first, second)

    def balances():
        return [call(person, "/profile")["balance"] for person in persons]

    had = balances()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        news = pool.submit(call, second, f"/auctions/3/next?after={seq}")
        assert wait_for_verdict(first, 3, item, starting) == "accepted"
        changed = {"seq": seq + 1, "price": starting, "leader": f"user{first.person}", "bids": 1}
        assert news.result() == state | changed
    assert balances()[1] == had[1] - starting
    assert wait_for_verdict(second, 3, item, starting + 7) == "accepted"
    changed = {"seq": seq + 2, "price": starting + 7, "leader": f"user{second.person}", "bids": 2}
    assert call(first, f"/auctions/3/next?after={seq + 1}") == state | changed
    assert wait_for_verdict(first, 3, item, starting + 7) == "low"
    assert balances()[1] == had[1]
    path = f"/api/auctions/3/next?after={seq + 2}"
    after = until(lambda: first.request("GET", path, 200, 204)[1])
    assert (after["seq"], after["price"], after["leader"], after["bids"]) == (seq + 3, 0, None, 0)
    assert after["item"] != item
    assert balances() == [had[0] + starting + 7, had[1], had[2] - starting - 7]
    bought = call(second, "/purchases")[0]
    assert (bought["item"], bought["amount"]) == (item, starting + 7)
    assert call(first, f"/items/{item}")["owner"] == f"user{second.person}"
    assert growth(before, read_books(servers), "bids", "accepted") == {"bids": 3, "accepted": 2}


@auction
def test_a_wait_without_news_ends_empty_and_a_logout_ends_attendances(servers):
    state, person, begun = wait_for_fresh_offer(servers, 1), log_in_person(servers, 9), time.time()
    assert call(person, f"/auctions/1/next?after={state['seq']}", status=204) == b""
    assert time.time() - begun >= 0.9 * POLL_SECONDS
    for _ in range(2):
        call(person, "/auctions/1/attendance", "POST", 201)
    rows = call(person, "/attendances")
    assert [row["auction"] for row in rows if row["went"] is None] == [1]
    person.do_operation("Logout")
    rows = call(log_in_person(servers, 9), "/attendances")
    assert [row for row in rows if row["went"] is None] == []


@auction
def test_bids_that_break_a_rule_are_decided_so(servers):
    from data_set import BALANCE

    state = wait_for_fresh_offer(servers, 1)
    item, starting = state["item"], state["starting"]
    (bidder,), seller = make_bidders(servers, 1, state)
    items = [row["item"] for row in call(bidder, "/auctions/1")["items"]]
    later = next(number for number in items if number != item)
    for person, offered, amount, verdict in [
        (seller, item, starting, "own"),
        (bidder, item, starting - 1, "low"),
        (bidder, item, 2 * BALANCE, "poor"),
        (bidder, later, starting, "over"),
    ]:
        assert wait_for_verdict(person, 1, offered, amount) == verdict


@auction
def test_of_simultaneous_bids_none_is_lost_and_the_highest_wins(servers):
    before, state = read_books(servers), wait_for_fresh_offer(servers, 2)
    persons, _ = make_bidders(servers, 8, state)

    def bid_often(number):
        rng = random.Random(number)
        amounts = [state["starting"] + rng.randrange(20_000) for _ in range(25)]
        return [place_bid(persons[number], 2, state["item"], amount) for amount in amounts]

    names = [name for bids in run_together(bid_often, range(8)) for name in bids]
    assert len(set(names)) == 200
    until(lambda: read_books(servers)["bids"] == before["bids"] + 200)
    until(lambda: read_books(servers)["purchases"] > before["purchases"])
    of_item = f"auction = 2 AND item = {state['item']}"
    # The highest accepted bid and the sale; bids that do not rise; items that their buyer lacks.
    for sql, expected in [
        (
            f"""SELECT (SELECT max(amount) FROM bids WHERE {of_item} AND verdict = 'accepted')
                - (SELECT amount FROM purchases WHERE {of_item} ORDER BY id DESC LIMIT 1)""",
            "0\n",
        ),
        (
            """SELECT count(*) FROM (SELECT amount <= lag(amount) OVER
                (PARTITION BY auction, listing ORDER BY number) AS falls
                FROM bids WHERE verdict = 'accepted') AS b WHERE falls""",
            "0\n",
        ),
        (
            """SELECT count(*) FROM items AS i JOIN
                (SELECT DISTINCT ON (item) * FROM purchases ORDER BY item, id DESC) AS p
                ON p.item = i.id WHERE i.owner <> p.buyer""",
            "0\n",
        ),
    ]:
        assert servers.query_database("auction", sql) == expected
    assert "deadlock" not in servers.read_output("database")


@auction
def test_queued_bids_survive_the_end_of_the_application(servers):
    before, state = read_books(servers), wait_for_fresh_offer(servers, 4)
    persons, _ = make_bidders(servers, 4, state)
    # While this transaction holds the auction, no bid can be decided.
    hold = "BEGIN; SELECT FROM auctions WHERE id = 4 FOR UPDATE; SELECT pg_sleep(3); COMMIT"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        held = pool.submit(servers.query_database, "auction", hold)
        time.sleep(0.5)
        for number, person in enumerate(persons):
            place_bid(person, 4, state["item"], state["starting"] + number)
        assert read_books(servers)["bids"] == before["bids"]
        processes = servers.run_inside("pgrep", "--full", "auctions:application").stdout.split()
        assert len(processes) >= 2
        assert servers.run_inside("kill", "-KILL", *processes).returncode == 0
        held.result()

    def are_decided():
        try:
            return read_books(servers)["bids"] == before["bids"] + 4
        except (OSError, ValueError):
            return False

    assert until(are_decided)


# The social events.


@cloudstone
def test_the_site_shows_what_was_loaded_and_what_was_added(servers):
    import data_set
    from visitor import TAG

    visitor, before = servers.make_visitor(seed="careful"), read_books(servers)["socialevent"]
    visitor.fetch_page("GET", "/", f"<p>{before} events</p>")
    visitor.fetch_page("GET", "/people/1", "<h1>person1</h1>")
    visitor.do_operation("Login")
    form = visitor.fill_event_form("Looked at")
    page = visitor.fetch_page("POST", "/events", "<h1>Looked at</h1>", **form)
    [address] = re.findall("<address>(.*?)<br>", page)
    [place] = re.findall('class="place">(.*?)<', page)
    assert place == " ".join(data_set.locate_address(address.split(", ")))
    for pattern in ('class="picture" src="([^"]+)"', r'href="(/files/[^"]+\.txt)"'):
        [file] = re.findall(pattern, page)
        assert visitor.request("GET", file)[1] in form["data"]
    for path in ["/", *(f"/search?tag={tag}" for tag in TAG.findall(page))]:
        visitor.fetch_page("GET", path, ">Looked at</a>")


def change_form(form, pattern, replacement):
    return form | {"data": re.sub(pattern, replacement, form["data"])}


@cloudstone
def test_simultaneous_events_are_all_there_with_their_tags(servers):
    before = read_books(servers)

    def add_event(number):
        visitor = servers.make_visitor(seed=f"at once {number}")
        visitor.do_operation("Login")
        form = visitor.fill_event_form(f"At once {number}")
        # All have two new tags in common, and one of their own.
        tags = rb"\1jazz-x museum-x only-%d" % number
        form = change_form(form, rb'(name="tags"\r\n\r\n)[^\r]*', tags)
        return visitor.fetch_page("POST", "/events", f"<h1>At once {number}</h1>", **form)

    run_together(add_event, range(12))
    grown = growth(before, read_books(servers), "socialevent", "socialeventtag")
    assert grown == {"socialevent": 12, "socialeventtag": 14}
    servers.make_visitor().fetch_page("GET", "/search?tag=jazz-x", "<p>12 events</p>")


@cloudstone
def test_a_name_is_given_once_however_many_want_it(servers):
    before = read_books(servers)

    def join(number):
        form = servers.make_visitor(seed=f"join {number}").fill_person_form("wanted")
        return requests.post(f"{servers.urls[0]}/people", **form, timeout=120).status_code

    assert sorted(run_together(join, range(8))) == [200, *[409] * 7]
    grown = growth(before, read_books(servers), "person", "address")
    assert grown == {"person": 1, "address": 1}


@cloudstone
def test_wrong_forms_are_refused_and_leave_nothing(servers):
    before, visitor = read_books(servers), servers.make_visitor(seed="wrong")
    visitor.do_operation("Login")
    form = visitor.fill_event_form("Wrong")
    for pattern, replacement, reason in [
        (rb"2030-12-24T18:00", b"tomorrow at six", b"takes_place: is no date"),
        (rb"\x89PNG", b"\x00PNG", b"picture: is no PNG"),
        (rb'(name="tags"\r\n\r\n)[^\r]*', rb"\1<b>", b"tags: may have letters"),
        (rb'(name="city"\r\n\r\n)[^\r]*', rb"\1", b"city: is missing"),
    ]:
        changed = change_form(form, pattern, replacement)
        assert reason in visitor.request("POST", "/events", 400, **changed)[1]
    assert read_books(servers) == before


# The DVD shop.


def log_in_customer(servers, name, number=0):
    customer = servers.make_visitor(number)
    customer.fetch_page("login", {"username": name, "password": "password"})
    return customer


def read_cells(content):
    """The texts of a page's table without its foot; a product's number comes first."""
    rows = []
    body = content.decode().partition("<tbody>")[2].partition("</tbody>")[0]
    for number, row in re.findall(r"<tr(?: data-product=\"(\d+)\")?>(.*?)</tr>", body):
        cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
        texts = [html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in cells]
        rows.append([number, *texts] if number else texts)
    return rows


@dvdstore
def test_a_login_shows_the_last_purchases_each_with_a_related_title(servers):
    shop = servers.make_visitor().shop
    last = 12 * shop.monthly_orders
    buyer = shop.buyer(last)
    customer = log_in_customer(servers, f"user{buyer}")
    orders = [order for order in range(last, 0, -1) if shop.buyer(order) == buyer]
    lines = [line for order in orders for line in shop.order_lines(order)]
    expected = []
    for product, _ in lines[:10]:
        number, _, title, actor, *_, related = shop.make_product(product)
        expected.append([str(number), title, actor, shop.make_product(related)[2]])
    assert read_cells(customer.content) == expected


@dvdstore
def test_a_search_finds_the_right_products_in_the_order_of_their_numbers(servers):
    customer = servers.make_visitor()
    shop = customer.shop
    products = [shop.make_product(number) for number in range(1, shop.products + 1)]
    _, _, title, actor, *_ = products[0]

    def is_match(product, by, words):
        _, category, title, actor, _, special, _ = product
        if by == "category":
            return special == "t" and category == int(words)
        text = title if by == "title" else actor
        return set(words.lower().split()) <= set(text.lower().split())

    for by, words in (("category", "1"), ("title", title.split()[0]), ("actor", actor)):
        results = customer.search(by=by, words=words, limit="5")
        matches = [product for product in products if is_match(product, by, words)][:5]
        expected = [[str(number), *texts, ""] for number, _, *texts, _, _ in matches]
        assert read_cells(customer.content) == expected
        assert results["found"] == str(len(expected))


@dvdstore
def test_a_purchase_costs_what_its_lines_say(servers):
    from data_set import add_tax, format_money

    customer = log_in_customer(servers, "user1")
    shop = customer.shop
    plenty = [number for number in range(1, 1000) if shop.stock(number) > 50]
    basket = {number: 1 + number % 3 for number in plenty[:9]}
    results = customer.buy(basket)
    net = sum(shop.price(product) * quantity for product, quantity in basket.items())
    amounts = [format_money(amount) for amount in (net, *add_tax(net))]
    assert [results[key] for key in ("net", "tax", "total")] == amounts
    assert read_cells(customer.content) == [
        [shop.make_product(product)[2], str(quantity), format_money(shop.price(product))]
        for product, quantity in basket.items()
    ]


@dvdstore
def test_wrong_fields_are_refused_and_a_visitors_text_is_no_html(servers):
    from visitor import NEW_CUSTOMER

    customer = log_in_customer(servers, "user1")
    for basket in ({}, {1: 4}, {"x": 1}, {1: -1}):
        customer.buy(basket, status=422, expected="refused")
    fields = {**NEW_CUSTOMER, "username": "only once"}
    customer.fetch_page("new", fields)
    customer.fetch_page("new", fields, status=409, expected="refused")
    customer.search(by="title", words="<script>alert('&')</script>")
    assert b"<script>" not in customer.content


@dvdstore
def test_stock_below_three_is_reordered_and_the_books_notice_sabotage(servers):
    customer, before = log_in_customer(servers, "user1", 1), read_books(servers, 1)
    shop = customer.shop
    scarce = next(number for number in range(1, 10_000) if 3 <= shop.stock(number) < 6)
    for quantity in (shop.stock(scarce) - 2, 3):
        assert customer.buy({scarce: quantity})["order"] != "0"
    grown = growth(before, read_books(servers, 1), "reorders", "orders")
    assert grown == {"reorders": 1, "orders": 2}
    for change in ("stock = stock + 1", "sold = sold + 1, stock = stock - 1"):
        sql = f"UPDATE inventory SET {change} WHERE product = 5"
        servers.query_database("shop", sql, 1)
    books = servers.read_books(1)
    assert (books["adrift"], books["lost"]) == (1, 1)


@dvdstore
def test_nothing_is_lost_where_many_buy_the_same_at_the_same_time(servers):
    shop, before = servers.make_visitor(2).shop, read_books(servers, 2)
    # Few products, whose stock soon ends, in baskets of different orders.
    products = range(1, shop.products + 1)
    scarce = [number for number in products if 3 <= shop.stock(number) <= 12][:6]

    def buy_often(number):
        customer, rng = log_in_customer(servers, f"user{number}", 2), random.Random(number)
        baskets = [
            {product: rng.randint(1, 3) for product in rng.sample(scarce, 4)} for _ in range(25)
        ]
        results = [customer.buy(basket) for basket in baskets]
        return [round(100 * float(result["total"])) for result in results if result["order"] != "0"]

    totals = [total for buyer in run_together(buy_often, range(1, 9)) for total in buyer]
    after = read_books(servers, 2)
    assert len(totals) == 200
    grown = growth(before, after, "orders", "new_cents")
    assert grown == {"orders": 200, "new_cents": sum(totals)}
    assert after["reorders"] > len(scarce)
    assert "deadlock" not in servers.read_output("postgresql")


# Cells.


@pytest.mark.parametrize(
    ("workload", "environments"),
    [
        ("auction", ["native", "docker"]),
        # A sandbox that does not tell servers which user connects to a socket.
        ("auction", ["docker-gvisor"]),
        ("dvdstore", ["native", "docker"]),
        ("cloudstone", ["native", "docker", "docker-hostnet", "docker-layered"]),
    ],
)
def test_cells_are_measured(project, machine_stays, workload, environments):
    plan = projects.plan(project)["environments"]
    for name in environments:
        if not plan[name]["available"]:
            pytest.skip(plan[name]["reason"])
    for record in serving.measure_cells(project, workload, *environments):
        assert "cannot" not in record
        assert {server["exit"] for server in record["servers"]} == {0}

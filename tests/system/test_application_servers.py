"""The three web applications on real servers: every operation, concurrency, and what must hold."""

import concurrent.futures
import html
import random
import re
import time

import projects
import pytest
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
# The auctions' application is started again whenever it ends.
COMMANDS = {
    "auction": """
broker=27200,27300,27400
inside $programs/site.sh data 60 1 33554432 >&2
inside $programs/site.sh prepare 15 60
start database $programs/site.sh database 33554432 2
wait_for $programs/site.sh ready database
start broker $programs/site.sh broker $broker
wait_for /opt/strata/bin/reach 127.0.0.1 $broker
while :; do
    inside $programs/site.sh application 2 $broker 2 4 || sleep 0.2
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
    "postgres": {},
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


def count_growth(before, after, *keys):
    """By how much values of the books have grown."""
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
    assert count_growth(before, after, *expected) == expected


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

    rows = {name: list(table) for name, table in AuctionData(60, 1).list_tables()}
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
    assert count_growth(before, read_books(servers), "bids", "accepted") == {
        "bids": 3,
        "accepted": 2,
    }


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
    # The books find every sale that was not to the highest bid.
    until(lambda: read_books(servers)["purchases"] > before["purchases"])
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


@cloudstone
def test_simultaneous_events_are_all_there_with_their_tags(servers):
    before = read_books(servers)

    def add_event(number):
        visitor = servers.make_visitor(seed=f"at once {number}")
        visitor.do_operation("Login")
        form = visitor.fill_event_form(f"At once {number}")
        # All have two new tags in common, and one of their own.
        tags = rb"\1jazz-x museum-x only-%d" % number
        form["data"] = re.sub(rb'(name="tags"\r\n\r\n)[^\r]*', tags, form["data"])
        return visitor.fetch_page("POST", "/events", f"<h1>At once {number}</h1>", **form)

    run_together(add_event, range(12))
    grown = count_growth(before, read_books(servers), "socialevent", "socialeventtag")
    assert grown == {"socialevent": 12, "socialeventtag": 14}
    servers.make_visitor().fetch_page("GET", "/search?tag=jazz-x", "<p>12 events</p>")


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
    buyer = shop.draw_buyer(last)
    customer = log_in_customer(servers, f"user{buyer}")
    orders = [order for order in range(last, 0, -1) if shop.draw_buyer(order) == buyer]
    lines = [line for order in orders for line in shop.draw_lines(order)]
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
        results = customer.search_products(by=by, words=words, limit="5")
        matches = [product for product in products if is_match(product, by, words)][:5]
        expected = [[str(number), *texts, ""] for number, _, *texts, _, _ in matches]
        assert read_cells(customer.content) == expected
        assert results["found"] == str(len(expected))


@dvdstore
def test_a_purchase_costs_what_its_lines_say(servers):
    from data_set import add_tax, format_money

    customer = log_in_customer(servers, "user1")
    shop = customer.shop
    basket = {number: 1 + number % 3 for number in range(1, 1000) if shop.draw_stock(number) > 50}
    basket = dict(list(basket.items())[:9])
    results = customer.buy_basket(basket)
    net = sum(shop.draw_price(product) * quantity for product, quantity in basket.items())
    amounts = [format_money(amount) for amount in (net, *add_tax(net))]
    assert [results[key] for key in ("net", "tax", "total")] == amounts


@dvdstore
def test_stock_below_three_is_reordered_and_the_books_notice_sabotage(servers):
    customer, before = log_in_customer(servers, "user1", 1), read_books(servers, 1)
    shop = customer.shop
    scarce = next(number for number in range(1, 10_000) if 3 <= shop.draw_stock(number) < 6)
    for quantity in (shop.draw_stock(scarce) - 2, 3):
        assert customer.buy_basket({scarce: quantity})["order"] != "0"
    grown = count_growth(before, read_books(servers, 1), "reorders", "orders")
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
    scarce = [number for number in products if 3 <= shop.draw_stock(number) <= 12][:6]

    def buy_often(number):
        customer, rng = log_in_customer(servers, f"user{number}", 2), random.Random(number)
        baskets = [
            {product: rng.randint(1, 3) for product in rng.sample(scarce, 4)} for _ in range(25)
        ]
        results = [customer.buy_basket(basket) for basket in baskets]
        return [round(100 * float(result["total"])) for result in results if result["order"] != "0"]

    totals = [total for buyer in run_together(buy_often, range(1, 9)) for total in buyer]
    after = read_books(servers, 2)
    assert len(totals) == 200
    grown = count_growth(before, after, "orders", "new_cents")
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
        ("postgres", ["native", "docker-layered", "docker-gvisor"]),
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
        # What the load generators used is the client's CPU time, not that of foreign processes.
        log = project / "results" / "raw" / record["environment"] / workload / "1.log"
        points = re.findall(r'"seconds": ([0-9.]+),.*"busiest_share": ([0-9.]+)', log.read_text())
        clients = [run["client"] for run in record["costs"]]
        used = sum(part["user_seconds"] + part["system_seconds"] for part in clients)
        assert used >= sum(float(seconds) * float(share) for seconds, share in points)

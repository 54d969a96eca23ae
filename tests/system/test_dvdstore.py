"""The DVD shop on real servers: every operation, transactions at the same time, what must hold, pages in Chromium."""

import concurrent.futures
import json
import os
import random
import re
import subprocess
import sys

import pages
import projects
import pytest
import yaml

from strata.base import places

pytestmark = pytest.mark.long

FOLDER = projects.ROOT / "workloads" / "dvdstore"
PAGE = projects.default(workloads={"dvdstore": None}, repetitions=1)
# A shop for each test that changes one for good.
PORTS = [28100 + number for number in range(8)]

# Mounts and processes of its own, which end with it; the shops listen on this machine's loopback.
SERVING = r"""
set -eu
tree=$1 root=$2 ports=$3
mount --bind "$tree" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
for name in tmp data run; do mount -t tmpfs tmpfs "$root/$name"; done
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
of=/opt/strata/workloads/dvdstore
inside $of/data.sh small 1 33554432 >/dev/null 2>&1
inside $of/prepare.sh $ports
inside $of/database.sh $ports 33554432 >"$root/tmp/database" 2>&1 &
until inside $of/ready.sh $ports; do sleep 0.2; done
inside $of/web.sh 127.0.0.1 $ports 8 >"$root/tmp/web" 2>&1 &
until inside $of/reached.sh 127.0.0.1 $ports; do sleep 0.2; done
echo ready
read -r _
"""


class Shops:
    """Served shops, and what is asked of them beside their pages."""

    def __init__(self, process, root):
        self.root = root
        children = subprocess.run(["pgrep", "--parent", str(process.pid)], capture_output=True, text=True, check=True)
        self.inner = children.stdout.split()[0]

    @staticmethod
    def address(number):
        return f"http://127.0.0.1:{PORTS[number]}"

    def inside(self, *words, text=None):
        enter = ["nsenter", f"--target={self.inner}", "--mount", "--pid", "chroot", self.root]
        return subprocess.run([*enter, *words], input=text, capture_output=True, text=True, timeout=120, check=False)

    def sql(self, number, text, role="postgres"):
        user = {"postgres": "postgres", "shop": "www-data"}[role]
        words = [
            "setpriv",
            f"--reuid={user}",
            f"--regid={user}",
            "--clear-groups",
            "psql",
            "--no-psqlrc",
            "--tuples-only",
        ]
        words += [
            "--no-align",
            "--set=ON_ERROR_STOP=1",
            f"--host=/data/dvdstore/{number}",
            f"--username={role}",
            "shop",
        ]
        return self.inside(*words, text=text)

    def said(self, server):
        return self.inside("cat", f"/tmp/{server}").stdout


@pytest.fixture(scope="module")
def programs():
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = projects.make(tmp_path_factory.mktemp("dvdstore") / "p", PAGE)
    done = projects.run(folder, "strata", "image", timeout=1800)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def shops(project, programs, tmp_path_factory):
    image = json.loads((project / "results/image.json").read_text())
    tree = os.path.join(places.home(), "images", image["recipe"], "tree")
    root = str(tmp_path_factory.mktemp("root"))
    argv = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", SERVING, "strata", tree, root]
    ports = ",".join(map(str, PORTS))
    with subprocess.Popen([*argv, ports], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield Shops(process, root)
        finally:
            process.kill()


def checked(shops, number):
    from check import Check
    from data_set import Shop

    return Check(shops.address(number), Shop("small", 1), 7).run()


def test_every_operation_answers_as_the_data_and_arithmetic_say(shops):
    assert checked(shops, 0) == 9
    trouble = {one["name"]: one["trouble"] for one in yaml.safe_load((FOLDER / "workload.yaml").read_text())["servers"]}
    assert not re.search(trouble["apache"], shops.said("web"))
    assert not re.search(trouble["postgresql"], shops.said("database"))


@pytest.mark.parametrize(
    ("number", "change", "step"),
    [
        (1, "UPDATE products SET price = price + 0.01", "searches"),
        (2, "DROP TRIGGER restock ON inventory", "restock"),
        (3, "DELETE FROM cust_hist WHERE order_id = (SELECT max(order_id) FROM cust_hist)", "history"),
        (4, "UPDATE inventory SET stock = stock + 1 WHERE product = 5", "newcomer: the books' adrift rows"),
    ],
)
def test_the_check_notices_what_is_wrong_and_names_it(shops, number, change, step):
    assert shops.sql(number, change).returncode == 0
    from answers import WrongAnswerError

    with pytest.raises(WrongAnswerError, match=f"^{step}"):
        checked(shops, number)


def test_the_database_refuses_what_must_not_be(shops):
    assert (
        "inventory_stock_check"
        in shops.sql(0, "ALTER TABLE inventory DISABLE TRIGGER restock; UPDATE inventory SET stock = -1").stderr
    )
    shops.sql(0, "ALTER TABLE inventory ENABLE TRIGGER restock")
    twice = "INSERT INTO customers SELECT * FROM customers WHERE id = 1"
    assert "duplicate key" in shops.sql(0, twice).stderr
    for change in ("UPDATE products SET price = 0.01", "DELETE FROM orders", "DROP TABLE reorder"):
        assert re.search("permission denied|must be owner", shops.sql(0, change, role="shop").stderr)


def test_nothing_is_lost_where_many_buy_the_same_at_the_same_time(shops):
    from answers import cents, marks
    from check import Customer, account
    from data_set import Shop

    shop, address = Shop("small", 1), shops.address(5)
    # Few products, of which the stock is soon at its end, in baskets of other orders each.
    scarce = [number for number in range(1, shop.products + 1) if 3 <= shop.product(number).stock <= 12][:6]
    before = account(address)

    def buyer(number):
        customer, source, total, bought = Customer(address), random.Random(number), 0, 0
        customer.log_in(f"user{number}")
        for _ in range(25):
            answer = customer.buy({one: source.randint(1, 3) for one in source.sample(scarce, 4)})
            told = marks(answer.status_code, answer.content, "purchase")
            bought += told["order"] != "0"
            total += cents(told.get("total", "0.00"))
        return bought, total

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done = list(pool.map(buyer, range(1, 9)))
    after = account(address)
    assert after["new_orders"] - before["new_orders"] == sum(bought for bought, _ in done) == 200
    assert after["new_cents"] - before["new_cents"] == sum(total for _, total in done)
    assert after["reorders"] > len(scarce)
    assert after["least_stock"] >= 0
    assert "deadlock" not in shops.said("database")


def test_two_who_want_the_last_pieces_do_not_both_get_them(shops):
    from check import Customer, account
    from data_set import Shop

    shop, address = Shop("small", 1), shops.address(6)
    # Without new pieces.
    assert shops.sql(6, "ALTER TABLE inventory DISABLE TRIGGER restock").returncode == 0
    last = next(number for number in range(1, shop.products + 1) if shop.product(number).stock == 4)

    def buyer(number):
        customer = Customer(address)
        customer.log_in(f"user{number}")
        return 'data-order="0"' in customer.buy({last: 1}).text

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        refused = list(pool.map(buyer, range(1, 9)))
    assert sum(refused) == 4
    assert account(address)["least_stock"] == 0


def test_an_error_that_a_server_logs_is_found_by_its_pattern(shops):
    from check import Customer

    assert shops.sql(7, "DROP FUNCTION browse_by_title").returncode == 0
    assert Customer(shops.address(7)).get("/browse.php?by=title&words=Wolf").status_code == 500
    servers = {one["name"]: one["trouble"] for one in yaml.safe_load((FOLDER / "workload.yaml").read_text())["servers"]}
    assert re.search(servers["apache"], shops.said("web"))
    assert re.search(servers["postgresql"], shops.said("database"))


def test_a_person_logs_in_looks_around_and_buys(shops):
    with pages.chromium() as browser:
        browser.implicitly_wait(10)

        def find(selector):
            return browser.find_element("css selector", selector)

        browser.get(f"http://localhost:{PORTS[0]}/")
        assert "Welcome" in find("h1").text
        find("[name=username]").send_keys("user17")
        find("[name=password]").send_keys("password")
        find("main form button").click()
        assert find("h1").text.startswith("Hello, ")
        find("input[name=words]").send_keys("Wolf")
        browser.find_elements("css selector", "form.search button")[1].click()
        row = find("tbody tr")
        title = row.find_element("css selector", "td").text
        assert "Wolf" in title
        quantity = row.find_element("css selector", "input")
        quantity.clear()
        quantity.send_keys("2")
        find("main > form:last-of-type button").click()
        assert find("h1").text == "Thank you"
        assert title in find("tbody").text
        amounts = [cell.text for cell in browser.find_elements("css selector", "tfoot td")]
        assert float(amounts[0]) + float(amounts[1]) == pytest.approx(float(amounts[2]))
        # The page has its style, and is no list of plain text.
        assert (
            browser.execute_script("return getComputedStyle(document.querySelector('header')).backgroundColor")
            != "rgba(0, 0, 0, 0)"
        )
        browser.get(f"http://localhost:{PORTS[0]}/")
        find("[name=username]").send_keys("user17")
        find("[name=password]").send_keys("password")
        find("main form button").click()
        assert title in find("tbody tr").text


def test_a_person_becomes_a_customer(shops):
    with pages.chromium() as browser:
        browser.get(f"http://localhost:{PORTS[0]}/new.php")
        for field in browser.find_elements("css selector", "form.rows input"):
            name = field.get_attribute("name")
            field.send_keys({"age": "41", "income": "20000", "email": "a@example.org"}.get(name, f"<b>{name}</b>"))
        browser.find_element("css selector", "form.rows button").click()
        assert browser.find_element("css selector", "h1").text == "Welcome, <b>first_name</b>"


def test_cells_are_measured_in_a_container_as_on_the_host(project, machine_stays):
    logs = [f"results/raw/{name}/dvdstore/1.log" for name in ("native", "docker")]
    done = projects.run(project, "snakemake", "--cores", "1", *logs, timeout=1200)
    assert done.returncode == 0, done.stderr
    for log in logs:
        record = json.loads((project / log.replace(".log", ".json")).read_text())
        assert [server["exit"] for server in record["servers"]] == [0, 0]
    done = projects.run(
        project, "snakemake", "--cores", "1", "--config", "partial=true", "--", "results/summary/dvdstore.csv"
    )
    assert done.returncode == 0, done.stderr

"""The load and the data of the workload cloudstone: what users do, what is loaded, what an answer must be."""

import contextlib
import importlib
import json
import random
import re
import struct
import subprocess
import sys
import types
import zlib

import projects
import pytest

from strata.experiment import workload

FOLDER = projects.ROOT / "workloads" / "cloudstone"
# As published, in per cent.
MIX = {
    "HomePage": 26.14,
    "Login": 10.22,
    "TagSearch": 33.37,
    "EventDetail": 24.71,
    "PersonDetail": 2.65,
    "AddPerson": 0.86,
    "AddEvent": 2.04,
}


@pytest.fixture(scope="module")
def programs():
    """The workload's modules, as they lie beside one another in the image."""
    names = ("chain", "population", "load", "driver")
    sys.path.insert(0, str(FOLDER))
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield types.SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    finally:
        sys.path.remove(str(FOLDER))
        sys.dont_write_bytecode = writes
        for name in names:
            sys.modules.pop(name, None)


def walk(programs, users, count, seed=1):
    """How often each operation is done by users who take turns at random."""
    chance = random.Random(seed)
    steps = programs.chain.Chain(chance)
    last = [programs.chain.begun(chance) for _ in range(users)]
    done = dict.fromkeys(MIX, 0)
    for _ in range(count):
        user = chance.randrange(users)
        last[user] = steps.after(last[user])
        done[last[user]] += 1
    return done


def test_rows_of_the_matrix_are_whole_and_lead_to_the_published_mix(programs):
    assert all(sum(row) == 100 for row in programs.chain.FOLLOWS.values())
    found = dict(zip(programs.chain.OPERATIONS, programs.chain.stationary(), strict=True))
    assert {name: pytest.approx(share, abs=0.1) for name, share in MIX.items()} == {
        name: 100 * share for name, share in found.items()
    }


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("users", [25, 1500])
def test_ten_thousand_operations_have_the_mix_within_half_a_point(programs, users, seed):
    done = walk(programs, users, 10_000, seed)
    assert {name: 100 * count / 10_000 for name, count in done.items()} == {
        name: pytest.approx(share, abs=0.5) for name, share in MIX.items()
    }


def test_an_operation_follows_only_where_the_matrix_lets_it(programs):
    chance = random.Random(3)
    steps = programs.chain.Chain(chance)
    last = "HomePage"
    for _ in range(5000):
        following = steps.after(last)
        assert programs.chain.FOLLOWS[last][programs.chain.OPERATIONS.index(following)] > 0
        last = following


def test_cycles_are_negative_exponential(programs):
    chance = random.Random(4)
    cycles = [programs.chain.cycle(chance, 5) for _ in range(20_000)]
    assert sum(cycles) / len(cycles) == pytest.approx(5, rel=0.03)
    # The share that is longer than the mean is 1/e.
    assert sum(cycle > 5 for cycle in cycles) / len(cycles) == pytest.approx(0.368, abs=0.01)


def test_two_fifths_of_the_browsers_begin_empty_and_none_asks_twice(programs):
    chance = random.Random(5)
    caches = [programs.chain.Cache(chance) for _ in range(5000)]
    assert sum(not cache.full for cache in caches) / len(caches) == pytest.approx(0.4, abs=0.03)
    for cache in caches[:50]:
        wanted = ["/static/a.css", "/files/1.png", "/files/1.png"]
        assert cache.lacks(wanted) == (["/files/1.png"] if cache.full else ["/static/a.css", "/files/1.png"])
        assert cache.lacks(wanted) == []


def test_percentiles_are_values_that_were_measured(programs):
    values = [float(value) for value in range(1, 11)]
    assert programs.chain.percentile(values, 0.9) == 9
    assert programs.chain.percentile([3.0], 0.9) == 3
    assert programs.driver.summary([0.001, 0.002]) == {
        "count": 2,
        "sum_seconds": 0.003,
        "mean_ms": 1.5,
        "p90_seconds": 0.002,
        "p90_ms": 2.0,
        "max_ms": 2.0,
    }
    assert programs.driver.summary([]) == {"count": 0}


@pytest.mark.parametrize(
    ("users", "persons", "tags"), [(1, 2500, 6), (25, 2500, 6), (1500, 150_000, 374), (12_000, 1_200_000, 2685)]
)
def test_sizes_follow_from_the_users(programs, users, persons, tags):
    assert programs.population.sizes(users) == {"persons": persons, "tags": tags, "events": 3 * tags}


@pytest.fixture(scope="module")
def rows(programs):
    """All rows for 100 users."""
    return {name: [tuple(map(str, row)) for row in table] for name, table in programs.load.tables(100, 7)}


def test_rows_point_at_rows_that_are_there(programs, rows):
    columns = {name: text.split() for name, text in programs.load.TABLES.items()}
    assert list(columns) == list(rows)

    def values(table, column):
        return [row[columns[table].index(column)] for row in rows[table]]

    for table, names in columns.items():
        assert {len(row) for row in rows[table]} == {len(names)}
    keys = {"person": "personid", "socialevent": "socialeventid", "socialeventtag": "socialeventtagid"}
    keys |= {"address": "addressid", "comments_rating": "commentid"}
    for table, key in keys.items():
        assert values(table, key) == [str(number) for number in range(1, len(rows[table]) + 1)]
    points = [
        ("person", "addressid", "address"),
        ("socialevent", "addressid", "address"),
        ("socialevent", "submitterid", "person"),
        ("person_person", "friendid", "person"),
        ("socialeventtag_socialevent", "socialeventid", "socialevent"),
        ("person_socialevent", "personid", "person"),
        ("comments_rating", "personid", "person"),
    ]
    for table, column, other in points:
        assert set(values(table, column)) <= set(values(other, keys[other]))
    for table in ("person_person", "socialeventtag_socialevent", "person_socialevent"):
        assert len(set(rows[table])) == len(rows[table])
    assert dict(rows["id_gen"]) == {
        name: str(len(rows[name])) for name in ("address", "person", "socialevent", "socialeventtag")
    }
    assert all(person != friend for person, friend in rows["person_person"])


def test_events_have_as_many_tags_attendees_and_comments_as_published(rows):
    def each(table, column):
        found = {}
        for row in rows[table]:
            found.setdefault(row[column], []).append(row)
        return found

    tags, attendees = each("socialeventtag_socialevent", 1), each("person_socialevent", 1)
    assert len(tags) == len(attendees) == len(rows["socialevent"])
    assert {len(one) for one in tags.values()} <= set(range(1, 8))
    assert {len(one) for one in attendees.values()} <= set(range(10, 101))
    assert max(len(one) for one in each("comments_rating", 1).values()) <= 20
    friends = [len(one) for one in each("person_person", 0).values()]
    assert 1 <= min(friends) <= 2
    assert max(friends) <= 28
    counted = {number: str(len(had)) for number, had in each("socialeventtag_socialevent", 0).items()}
    assert {number: refs for number, _, refs in rows["socialeventtag"]} == counted


def test_the_data_follow_from_the_seed_alone(programs, rows, tmp_path):
    def text(seed):
        return {name: [tuple(map(str, row)) for row in table] for name, table in programs.load.tables(25, seed)}

    assert text(7) == text(7)
    assert text(8)["person"] != text(7)["person"]
    made = []
    for name in ("a", "b"):
        argv = [sys.executable, "-B", FOLDER / "load.py", tmp_path / name, "25", "7"]
        subprocess.run(list(map(str, argv)), check=True)
        files = {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.png")}
        made.append((files, (tmp_path / name / "counted").read_text()))
    assert made[0] == made[1]
    counted = dict(line.split("\t")[:2] for line in made[0][1].splitlines())
    assert counted["person"] == "2500"
    named = {row[10] for row in rows["person"]} | {row[7] for row in rows["socialevent"]}
    assert named <= {path.name for path in made[0][0]}


def test_every_picture_is_a_png_that_unpacks(programs):
    content = programs.population.picture(random.Random(1), 30, 20)
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    at, data = 8, b""
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at : at + 8])
        chunk = content[at + 8 : at + 8 + length]
        assert struct.unpack(">I", content[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + chunk)
        data += chunk if kind == b"IDAT" else b""
        at += 12 + length
    assert len(zlib.decompress(data)) == 20 * (1 + 3 * 30)


class Answers:
    """Stands for Locust's client: gives prepared answers, and notes what was asked."""

    def __init__(self, answers):
        self.answers, self.asked = answers, []

    @contextlib.contextmanager
    def request(self, method, path, **more):
        self.asked.append(f"{method} {path}")
        status, text = self.answers.get(f"{method} {path}", (404, "nothing"))
        yield types.SimpleNamespace(status_code=status, content=text.encode(), error=None, success=lambda: None)


def browser(programs, answers):
    session = Answers(answers)
    made = programs.driver.Browser(session, random.Random(1), programs.population.sizes(25), "x")
    made.cache.full = False
    return made, session


HOME = '<link href="/static/style.css"><h1>Events</h1><img src="/files/event-1-small.png"></html>'
FILES = {"GET /static/style.css": (200, "body {}"), "GET /files/event-1-small.png": (200, "png")}


def test_a_page_is_fetched_with_its_files_once(programs):
    user, session = browser(programs, {"GET /": (200, HOME), **FILES})
    user.do("HomePage")
    assert session.asked == ["GET /", "GET /static/style.css", "GET /files/event-1-small.png"]
    user.do("HomePage")
    assert session.asked[3:] == ["GET /"]
    assert user.requests == 4


@pytest.mark.parametrize(
    ("answers", "what"),
    [
        ({"GET /": (500, "<p>it broke</p>")}, "GET / was answered with 500, not 200:  it broke"),
        ({"GET /": (200, "<h1>Other</h1></html>")}, "the page lacks '<h1>Events</h1>'"),
        ({"GET /": (200, HOME.removesuffix("</html>")), **FILES}, "the page lacks"),
        ({"GET /": (200, HOME)}, "GET /static/style.css was answered with 404"),
        ({"GET /": (200, HOME), **FILES, "GET /static/style.css": (200, "")}, "/static/style.css is empty"),
    ],
)
def test_a_wrong_answer_is_told(programs, answers, what):
    user, _ = browser(programs, answers)
    with pytest.raises(programs.driver.Wrong, match="(?s)" + what.replace("(", r"\(")):
        user.do("HomePage")


def test_a_tag_or_event_is_one_that_the_page_before_shows(programs):
    page = '<a href="/events/17"></a><a href="/search?tag=jazz-3">jazz-3</a></html>'
    answers = {"GET /search?tag=jazz-3": (200, f"<h1>Events with the tag jazz-3</h1>{page}")}
    answers["GET /events/17"] = (200, "<h2>0 attend</h2></html>")
    user, session = browser(programs, answers)
    user.text = page
    user.do("TagSearch")
    user.do("EventDetail")
    assert session.asked == ["GET /search?tag=jazz-3", "GET /events/17"]


def test_instances_are_as_many_at_each_address(programs):
    assert programs.driver.instances("10.0.0.1,10.0.0.2", "80,81,180,181") == [
        "http://10.0.0.1:80",
        "http://10.0.0.1:81",
        "http://10.0.0.2:180",
        "http://10.0.0.2:181",
    ]


def test_a_form_holds_every_field_and_file(programs):
    user, _ = browser(programs, {})
    sent = user.event_form("A title")
    assert sent["headers"]["Content-Type"].startswith("multipart/form-data; boundary=")
    for name in (
        "title",
        "summary",
        "tags",
        "description",
        "takes_place",
        "street1",
        "street2",
        "picture",
        "literature",
    ):
        assert f'name="{name}"'.encode() in sent["data"]
    assert json.loads(json.dumps(user.address()))["country"] == "USA"


# What the servers say, as captured; and what they say of an error.
SAID = {
    "database": (
        "[Warning] Could not increase number of max_open_files to more than 20000 (request: 32289)",
        "2026-11-22 13:55:08 0 [ERROR] InnoDB: Cannot allocate memory for the buffer pool",
    ),
    "geocoder": ("INFO: Server startup in [753] milliseconds", "SEVERE: Unable to create directory for deployment"),
    "php": (
        "[22-Nov-2026 13:55:03] NOTICE: Terminating ...",
        "[22-Nov-2026 13:55:03] WARNING: [pool application] child 7 exited on signal 11 (SIGSEGV)",
    ),
    "web": (
        "2026/11/22 13:53:55 [warn] 30070#30070: *5 a client request body is buffered to a temporary file",
        '2026/11/22 13:53:55 [error] 9#9: *1 FastCGI sent in stderr: "PHP message: ERROR: PDOException: gone away"',
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_an_error_that_a_server_logs_fails_the_cell_and_nothing_else_does(name):
    (server,) = [one for one in workload.load("cloudstone")["servers"] if one["name"] == name]
    good, bad = SAID[name]
    assert not re.search(server["trouble"], good)
    assert re.search(server["trouble"], bad)
    ended_by_itself = "ERROR: a server ended by itself"
    assert re.search(server["trouble"], ended_by_itself)

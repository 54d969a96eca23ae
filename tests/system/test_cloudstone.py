"""The application of the workload cloudstone, on its real servers: transactions and refusals."""

import json
import re

import pytest
import requests
import serving
from serving import together

pytestmark = pytest.mark.long
WEB, GEOCODER, DATABASE = 28080, 28280, 28480
SITE = f"http://127.0.0.1:{WEB}"
SERVING = rf"""
inside $of/site.sh data 25 33554432 8388608 11 >&2
inside $of/site.sh prepare {WEB} {GEOCODER} 25 25 {DATABASE} web+database
inside $of/site.sh database {WEB} 33554432 8388608 127.0.0.1 {DATABASE} web+database >"$root/tmp/database" 2>&1 &
until_ready $of/site.sh ready database {WEB}
inside $of/site.sh geocoder 127.0.0.1 {GEOCODER} >"$root/tmp/geocoder" 2>&1 &
inside $of/site.sh php 127.0.0.1 {GEOCODER} 16 127.0.0.1 {DATABASE} web+database >"$root/tmp/php" 2>&1 &
inside $of/site.sh web 127.0.0.1 {WEB} 4 >"$root/tmp/web" 2>&1 &
until_ready $of/site.sh ready http '/geocode?address=x' 127.0.0.1 {GEOCODER}
until_ready $of/site.sh ready http / 127.0.0.1 {WEB}
"""
# Two instances in a system, for a short time: what a cell does, not what it measures.
SHORT = {"web_ports": [18080, 18090], "geocoder_ports": [18280, 18290], "users": [5, 10], "seconds": 5, "mix_points": 3}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return serving.built(tmp_path_factory.mktemp("stone") / "p", {"cloudstone": SHORT})


servers = serving.servers("cloudstone", SERVING)


@pytest.fixture(scope="module")
def site(servers):
    """The application, up; what its servers said is looked at in the end."""
    yield servers
    assert serving.said_wrong(servers, "cloudstone") == {}


def status():
    return requests.get(f"{SITE}/status", timeout=60).json()


def logged_in(number):
    session = requests.Session()
    page = session.post(
        f"{SITE}/login", {"username": f"person{number}", "password": f"open-{number}-sesame"}, timeout=60
    )
    assert f">person{number}</a>" in page.text
    return session


def user(name):
    from visitor import User
    from visits import alone

    return alone(User, SITE, loaded_users=25, seed=name)


def test_every_operation_answers_as_the_driver_expects(site):
    argv = ["/usr/bin/python3", "-B", "/opt/strata/workloads/cloudstone/driver.py", "check"]
    done = site.inside(*argv, "127.0.0.1", str(WEB), "25", "3")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["operations"]) == 7


def test_what_was_loaded_is_there_and_what_is_added_is_as_it_was_sent(site):
    import data_set
    from visitor import TAG

    somebody, before = user("careful"), status()["socialevent"]
    somebody.page("GET", "/", f"<p>{before} events</p>")
    somebody.page("GET", "/people/1", "<h1>person1</h1>")
    somebody.do("Login")
    form = somebody.event_form("Looked at")
    page = somebody.page("POST", "/events", "<h1>Looked at</h1>", **form)
    patterns = (
        "<address>(.*?)<br>",
        'class="place">(.*?)<',
        'class="picture" src="([^"]+)"',
        r'href="(/files/[^"]+\.txt)"',
    )
    ((address,), (place,), (picture,), (text,)) = (re.findall(pattern, page) for pattern in patterns)
    assert place == " ".join(data_set.place(address.split(", ")))
    for file in (picture, text):
        assert somebody.get("GET", file) in form["data"]
    for path in ["/", *(f"/search?tag={tag}" for tag in TAG.findall(page))]:
        somebody.page("GET", path, ">Looked at</a>")


def test_events_that_are_added_at_the_same_time_are_all_there_with_their_tags(site):
    before = status()
    sessions = together(logged_in, range(1, 13))

    def add(number):
        form = user(f"at once {number}").event_form(f"At once {number}")
        # All have one new tag and one old one in common.
        kind = form["headers"]["Content-Type"]
        tags = rb'(name="tags"\r\n\r\n)[^\r]*'
        data = re.sub(tags, rb"\1jazz-x museum-x only-%d" % number, form["data"])
        page = sessions[number].post(f"{SITE}/events", data=data, headers={"Content-Type": kind}, timeout=120)
        assert f"<h1>At once {number}</h1>" in page.text
        return page.url

    urls = together(add, range(12))
    after = status()
    assert len(set(urls)) == 12
    assert after["socialevent"] == before["socialevent"] + 12
    assert after["socialeventtag"] == before["socialeventtag"] + 14
    assert after["broken"] == 0
    assert "<p>12 events</p>" in requests.get(f"{SITE}/search?tag=jazz-x", timeout=60).text


def test_a_name_is_given_once_however_many_want_it(site):
    before = status()

    def join(number):
        return requests.post(f"{SITE}/people", **user(f"join {number}").person_form("wanted"), timeout=120)

    answers = together(join, range(8))
    assert sorted(answer.status_code for answer in answers) == [200, *[409] * 7]
    after = status()
    assert (after["person"], after["address"]) == (before["person"] + 1, before["address"] + 1)
    assert after["broken"] == 0


@pytest.mark.parametrize(
    ("change", "status_code", "said"),
    [
        (lambda data: data.replace(b"2030-12-24T18:00", b"tomorrow at six"), 400, "takes_place: is no date"),
        (lambda data: data.replace(b"\x89PNG", b"\x00PNG"), 400, "picture: is no PNG"),
        (lambda data: re.sub(rb'(name="tags"\r\n\r\n)[^\r]*', rb"\1<b>", data), 400, "tags: may have letters"),
        (lambda data: re.sub(rb'(name="city"\r\n\r\n)[^\r]*', rb"\1", data), 400, "city: is missing"),
        (lambda data: re.sub(rb'(name="title"\r\n\r\n)[^\r]*', rb"\1" + b"x" * 101, data), 400, "more than 100"),
    ],
    ids=["date", "picture", "tags", "missing", "long"],
)
def test_an_event_that_makes_no_sense_is_refused_and_leaves_nothing(site, change, status_code, said):
    before = status()
    form = user("wrong").event_form("Wrong")
    answer = logged_in(40).post(f"{SITE}/events", data=change(form["data"]), headers=form["headers"], timeout=60)
    assert (answer.status_code, said in answer.text) == (status_code, True), answer.text
    assert status() == before


def test_a_wrong_password_and_what_is_not_there_are_refused(site):
    def answered(path, fields=None):
        answer = requests.request("POST" if fields else "GET", SITE + path, data=fields, timeout=60)
        return answer.status_code, answer.text

    status_code, text = answered("/login", {"username": "person1", "password": "wrong"})
    assert (status_code, "do not go together" in text) == (403, True)
    assert answered("/events/new")[0] == 403
    assert answered("/people/999999999")[0] == 404
    assert "<p>0 events</p>" in answered("/search?tag=none-has-this")[1]


SERVERS = ["database", "geocoder", "php", "web"]


def test_a_cell_of_two_instances_is_measured_in_every_environment_without_a_machine(project, machine_stays):
    for record in serving.measure(project, "cloudstone", "native", "docker", "docker-hostnet", "docker-layered"):
        assert [(server["name"], server["exit"]) for server in record["servers"]] == [(name, 0) for name in SERVERS]

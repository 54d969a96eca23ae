"""The application of the workload cloudstone, on its real servers: transactions and refusals."""

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
until_ready $of/site.sh ready php {WEB}
inside $of/site.sh web 127.0.0.1 {WEB} 4 >"$root/tmp/web" 2>&1 &
until_ready /opt/strata/bin/reach 127.0.0.1 {GEOCODER}
until_ready /opt/strata/bin/reach 127.0.0.1 {WEB}
"""
# Two instances in a system, for a short time: what a cell does, not what it measures.
SHORT = {
    "web_ports": [18080, 18090],
    "geocoder_ports": [18280, 18290],
    "users": [5, 10],
    "seconds": 5,
    "mix_points": 3,
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return serving.built(tmp_path_factory.mktemp("stone") / "p", {"cloudstone": SHORT})


site = serving.servers("cloudstone", SERVING)


def status():
    return requests.get(f"{SITE}/status", timeout=60).json()


def logged_in(number):
    session = requests.Session()
    page = session.post(
        f"{SITE}/login",
        {"username": f"person{number}", "password": f"open-{number}-sesame"},
        timeout=60,
    )
    assert f">person{number}</a>" in page.text
    return session


def user(name):
    return serving.visitor(SITE, loaded_users=25, seed=name)


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
    ((address,), (place,), (picture,), (text,)) = (
        re.findall(pattern, page) for pattern in patterns
    )
    assert place == " ".join(data_set.place(address.split(", ")))
    for file in (picture, text):
        assert somebody.request("GET", file)[1] in form["data"]
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
        page = sessions[number].post(
            f"{SITE}/events", data=data, headers={"Content-Type": kind}, timeout=120
        )
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
        return requests.post(
            f"{SITE}/people", **user(f"join {number}").person_form("wanted"), timeout=120
        )

    answers = together(join, range(8))
    assert sorted(answer.status_code for answer in answers) == [200, *[409] * 7]
    after = status()
    assert (after["person"], after["address"]) == (before["person"] + 1, before["address"] + 1)
    assert after["broken"] == 0


def test_forms_that_make_no_sense_are_refused_and_leave_nothing(site):
    before, session = status(), logged_in(40)
    form = user("wrong").event_form("Wrong")
    for change, reason in [
        ((rb"2030-12-24T18:00", b"tomorrow at six"), "takes_place: is no date"),
        ((rb"\x89PNG", b"\x00PNG"), "picture: is no PNG"),
        ((rb'(name="tags"\r\n\r\n)[^\r]*', rb"\1<b>"), "tags: may have letters"),
        ((rb'(name="city"\r\n\r\n)[^\r]*', rb"\1"), "city: is missing"),
    ]:
        answer = session.post(
            f"{SITE}/events",
            data=re.sub(*change, form["data"]),
            headers=form["headers"],
            timeout=60,
        )
        assert (answer.status_code, reason in answer.text) == (400, True), answer.text
    wrong = {"username": "person1", "password": "wrong"}
    assert requests.post(f"{SITE}/login", wrong, timeout=60).status_code == 403
    assert [
        requests.get(SITE + path, timeout=60).status_code
        for path in ("/events/new", "/people/999999999")
    ] == [
        403,
        404,
    ]
    assert status() == before


def test_every_operation_answers_and_no_server_reports_trouble(site):
    assert serving.check(site, "cloudstone", WEB, loaded_users=25) == {}


SERVERS = ["database", "geocoder", "php", "web"]


def test_a_cell_of_two_instances_is_measured_in_every_environment_without_a_machine(
    project, machine_stays
):
    for record in serving.measure(
        project, "cloudstone", "native", "docker", "docker-hostnet", "docker-layered"
    ):
        assert [(server["name"], server["exit"]) for server in record["servers"]] == [
            (name, 0) for name in SERVERS
        ]

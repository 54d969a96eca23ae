#!/usr/bin/python3 -B
"""The client: checks what the application answers, loads it, and says what its tables hold.

Usage: driver.py check ADDRESSES PORTS LOADED_USERS SEED
       driver.py load ADDRESSES PORTS LOADED_USERS SEED USERS CYCLE_SECONDS RAMP_SECONDS SECONDS
       driver.py counts KIND ADDRESSES PORTS

Ports and addresses have commas between them: an instance of the application for each port, as many at each address.
`check` does every operation once at every instance and looks at each answer.  `load` runs USERS users at every
instance, and counts operations that begin after the ramp.  `counts` says what the tables hold.
Everything that is not as it should be is an error.
"""

import json
import random
import re
import sys
import urllib.request
from typing import Any

import chain
import population
from browser import EVENT, PERSON, TAG, Browser
from drive import generators, point, say_operations, sites
from said import WrongAnswerError, digits, say


def counts(kind: str, addresses: str, ports: str) -> None:
    """What the tables hold, and that nothing in them breaks a rule that should always hold."""
    without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for number, host in enumerate(sites(addresses, ports)):
        with without_proxy.open(f"{host}/status", timeout=60) as answer:
            found = json.load(answer)
        say(**{kind: number}, **found)


def check(addresses: str, ports: str, loaded_users: str, seed: str) -> None:
    """Do every operation at every instance, and look at each answer."""
    import requests

    loaded = population.sizes(int(loaded_users))
    for number, host in enumerate(sites(addresses, ports)):
        session = requests.Session()
        # No proxy of the environment's is on the way.
        session.trust_env = False

        def send(
            method: str, path: str, status: int, host: str = host, session: requests.Session = session, **sent: Any
        ) -> tuple[int, bytes]:
            answer = session.request(method, host + path, timeout=300, **sent)
            if answer.status_code != status:
                raise WrongAnswerError(f"{method} {path} was answered with {answer.status_code}, not {status}")
            return status, answer.content

        browser = Browser(send, random.Random(f"check {seed}"), loaded, f"check-{int(seed):x}")
        browser.cache.full = False
        _check_reading(browser)
        _check_login(browser)
        _check_adding(browser)
        say(checked=number, operations=chain.OPERATIONS, requests=browser.requests)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise WrongAnswerError(what)


def _check_reading(browser: Browser) -> None:
    """HomePage, TagSearch, EventDetail and PersonDetail, of what was loaded."""
    browser.home_page()
    _require(f"<p>{browser.loaded['events']} events</p>" in browser.text, "the first page does not count the events")
    _require(len(set(EVENT.findall(browser.text))) == min(10, browser.loaded["events"]), "it should show ten events")
    _require(
        all(path in browser.cache.fetched for path in ("/static/style.css", "/static/site.js")), "files are missing"
    )
    tag = TAG.findall(browser.text)[0]
    count = re.search(rf"tag={tag}\">{tag}</a> \((\d+)\)", browser.text)
    browser.tag_search()
    browser.page("GET", f"/search?tag={tag}", f"<p>{count[1] if count else '?'} events</p>")
    event = EVENT.findall(browser.text)[0]
    browser.page("GET", f"/events/{event}", f'tag={tag}">')
    for wanted in ('class="place">', "<h2>Comments</h2>", "Log in to attend", "<address>"):
        _require(wanted in browser.text, f"event {event} lacks {wanted}")
    browser.event_detail()
    browser.page("GET", "/people/1", "<h1>person1</h1>")
    _require(len(PERSON.findall(browser.text)) >= 2, "person 1 should have friends")
    browser.person_detail()


def _check_login(browser: Browser) -> None:
    """Login."""
    browser.login()
    _require('action="/logout"' in browser.text, "after the login one should be able to log out")


def _check_adding(browser: Browser) -> None:
    """AddEvent and AddPerson: what was added is there, as it was sent, and is found."""
    title = f"Checked {browser.name}"
    state = browser.chance.getstate()
    tags = re.findall(r'name="tags"\r\n\r\n([^\r]*)', browser.event_form(title)["data"].decode(errors="replace"))[0]
    browser.chance.setstate(state)
    browser.page("POST", "/events", f"<h1>{title}</h1>", **browser.event_form(title))
    event = re.search(r'action="/events/(\d+)/attend"', browser.text)
    _require(event is not None, "the new event cannot be attended")
    assert event is not None
    browser.chance.setstate(state)
    sent = browser.event_form(title)["data"]
    address = re.search(r"<address>(.*?)<br>", browser.text)
    located = " ".join(population.place(address[1].split(", "))) if address else ""
    _require(f'class="place">{located}<' in browser.text, "the new event is not where its address lies")
    picture = re.search(r'class="picture" src="([^"]+)"', browser.text)
    _require(picture is not None and browser.ask("GET", picture[1]) in sent, "its picture is not the one that was sent")
    read = re.search(r'href="(/files/[^"]+\.txt)"', browser.text)
    _require(read is not None and browser.ask("GET", read[1]) in sent, "its text is not the one that was sent")
    for tag in tags.split():
        browser.page("GET", f"/search?tag={tag}", f">{title}</a>")
    browser.page("GET", "/", f">{title}</a>")
    browser.page("POST", f"/events/{event[1]}/attend", "You attend")
    _require("<h2>1 attend</h2>" in browser.text, "one person should attend the new event")
    browser.page("GET", f"/people/{browser.person}", f">{title}</a>")
    browser.add_event()
    browser.add_person()
    name = f"{browser.name}-{browser.added}"
    browser.page("POST", "/login", f">{name}</a>", data={"username": name, "password": "open sesame"})


def load(
    addresses: str, ports: str, loaded_users: str, seed: str, users: str, cycle: str, ramp: str, seconds: str
) -> None:
    """Run the users of every instance, and say what they met."""
    hosts, name = sites(addresses, ports), f"users-{users}"
    say(point=name, users=int(users), instances=len(hosts), cycle_seconds=float(cycle), seed=int(seed))
    asked = {"sites": hosts, "ramp": float(ramp), "coming": 0.5, "seconds": float(seconds), "cycle": float(cycle)}
    asked |= {"loaded_users": int(loaded_users), "seed": f"{int(seed):x}-{users}"}
    with generators("visitor.py") as running:
        met = point(running, name, int(users), asked)
    say_operations(name, chain.OPERATIONS, met, 0.9)
    total = sum(met["began"].values())
    added = {operation: met["in_all"].get(operation, 0) for operation in ("AddPerson", "AddEvent")}
    sums = {key: met["counted"].get(key, 0) for key in ("requests", "bytes")}
    say(drove=name, total=total, rate=digits(total / float(seconds)), added=added, **sums, **met["load"])
    say(end=name)


if __name__ == "__main__":
    try:
        {"check": check, "load": load, "counts": counts}[sys.argv[1]](*sys.argv[2:])
    except (WrongAnswerError, OSError) as error:
        sys.exit(f"driver.py {sys.argv[1]}: {error}")

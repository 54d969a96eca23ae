#!/usr/bin/python3
"""The client: users of the application, on Locust, each with a browser's cache and a connection of its own.

Usage: driver.py check ADDRESSES PORTS LOADED_USERS SEED
       driver.py load ADDRESSES PORTS LOADED_USERS SEED USERS CYCLE_SECONDS RAMP_SECONDS SECONDS
       driver.py counts KIND ADDRESSES PORTS

Ports and addresses have commas between them: an instance of the application for each port, as many at each address.
`check` does every operation once at every instance and looks at each answer.  `load` runs USERS users at every
instance, a process for each, and counts operations that begin after the ramp.  `counts` says what the tables hold.
Everything that is not as it should be is an error.
"""

from __future__ import annotations

import functools
import json
import os
import random
import re
import resource
import subprocess
import sys
import time
import urllib.request
from typing import Any

import chain
import population

PAGE_FILE = re.compile(r'(?:src|href)="(/(?:static|files)/[^"]+\.(?:css|js|svg|png))"')
EVENT = re.compile(r'href="/events/(\d+)"')
PERSON = re.compile(r'href="/people/(\d+)"')
TAG = re.compile(r'href="/search\?tag=([^"&]+)"')
# So many different pictures of each size are sent, made before anything is measured.
UPLOADS = 8
# A user who looks at an event without attending it decides to in so many cases.
ATTENDS = 0.1


class Wrong(Exception):
    """An answer is not what it should be."""


@functools.cache
def uploads(width: int, height: int) -> list[bytes]:
    """Pictures for the forms."""
    return [population.picture(random.Random(number), width, height) for number in range(UPLOADS)]


class Browser:
    """One user's browser: asks, keeps files and cookies, and says no to wrong answers.

    session: Locust's client.  loaded: sizes of what was loaded.
    """

    def __init__(self, session: Any, chance: random.Random, loaded: dict[str, int], name: str) -> None:
        self.session, self.chance, self.loaded, self.name = session, chance, loaded, name
        self.cache = chain.Cache(chance)
        self.person: int | None = None
        self.text = ""
        self.added = 0
        self.requests = self.bytes = 0

    def ask(self, method: str, path: str, status: int = 200, **more: Any) -> bytes:
        """Ask for something; the content of the answer, which must have this status."""
        with self.session.request(method, path, name="any", catch_response=True, **more) as answer:
            # Locust's own count of failures is not looked at: every failure ends the run.
            answer.success()
            content = answer.content
            if answer.status_code != status:
                why = answer.error or re.sub(r"<[^>]*>|\s+", " ", (content or b"").decode(errors="replace"))[-200:]
                raise Wrong(f"{method} {path} was answered with {answer.status_code}, not {status}: {why}")
        self.requests += 1
        self.bytes += len(content)
        return content

    def page(self, method: str, path: str, holds: str, **more: Any) -> str:
        """Ask for a page and its files; it must hold a text."""
        self.text = self.ask(method, path, **more).decode()
        if holds not in self.text or "</html>" not in self.text:
            raise Wrong(f"{method} {path}: the page lacks '{holds}'")
        for file in self.cache.lacks(PAGE_FILE.findall(self.text)):
            if not self.ask("GET", file):
                raise Wrong(f"{file} is empty")
        return self.text

    # The operations, by their published names.

    def home_page(self) -> None:
        """The newest events."""
        self.page("GET", "/", "<h1>Events</h1>")

    def login(self) -> None:
        """Somebody logs in: another session, of a person who was loaded."""
        if self.person is not None:
            self.ask("POST", "/logout", allow_redirects=False, status=303)
        self.cache = chain.Cache(self.chance)
        self.person = self.chance.randint(1, self.loaded["persons"])
        name, password = population.username(self.person), population.password(self.person)
        self.page("GET", "/login", "<h1>Log in</h1>")
        self.page("POST", "/login", f">{name}</a>", data={"username": name, "password": password})

    def tag_search(self) -> None:
        """The events of a tag: one that the page before shows, or else one that was loaded."""
        there = TAG.findall(self.text)
        tag = self.chance.choice(there) if there else population.tag(self.chance.randint(1, self.loaded["tags"]))
        self.page("GET", f"/search?tag={tag}", f"<h1>Events with the tag {tag}</h1>")

    def event_detail(self) -> None:
        """An event that the page before shows, or else one that was loaded; who is logged in may attend it."""
        there = EVENT.findall(self.text)
        event = self.chance.choice(there) if there else str(self.chance.randint(1, self.loaded["events"]))
        self.page("GET", f"/events/{event}", " attend</h2>")
        if f'action="/events/{event}/attend"' in self.text and self.chance.random() < ATTENDS:
            self.page("POST", f"/events/{event}/attend", "You attend")

    def person_detail(self) -> None:
        """A person whom the page before shows, or else one who was loaded."""
        there = PERSON.findall(self.text)
        person = self.chance.choice(there) if there else str(self.chance.randint(1, self.loaded["persons"]))
        self.page("GET", f"/people/{person}", "<h2>Friends</h2>")

    def add_person(self) -> None:
        """Somebody joins, with a name that is free."""
        self.added += 1
        name = f"{self.name}-{self.added}"
        self.page("GET", "/people/new", "<h1>Join</h1>")
        if self.ask("GET", f"/people/taken?username={name}") != b"free\n":
            raise Wrong(f"the name {name} should be free")
        self.page("POST", "/people", f"<h1>{name}</h1>", **self.person_form(name))

    def add_event(self) -> None:
        """Who is logged in adds an event, with tags that are there and one that may be new."""
        if self.person is None:
            self.login()
        self.added += 1
        title = f"Event {self.name} {self.added}"
        self.page("GET", "/events/new", "<h1>Add an event</h1>")
        self.page("POST", "/events", f"<h1>{title}</h1>", **self.event_form(title))

    def person_form(self, name: str) -> dict[str, Any]:
        """What the form for joining sends."""
        fields = {"username": name, "password": "open sesame", "firstname": "New", "lastname": "Person"}
        fields |= {"email": f"{name}@example.org", "telephone": "555-1234567", "timezone": "UTC"}
        fields |= {"summary": population.text(self.chance, 40)} | self.address()
        return form(fields, {"picture": ("me.png", self.chance.choice(uploads(100, 100)), "image/png")})

    def event_form(self, title: str) -> dict[str, Any]:
        """What the form for an event sends."""
        tags = {population.tag(self.chance.randint(1, self.loaded["tags"])) for _ in range(3)}
        tags.add(f"new-{self.chance.randint(1, 100)}")
        fields = {"title": title, "summary": population.text(self.chance, 12), "tags": " ".join(sorted(tags))}
        fields |= {"description": population.text(self.chance, 120), "telephone": "555-1234567"}
        fields |= {"takes_place": "2030-12-24T18:00"} | self.address()
        picture = self.chance.choice(uploads(160, 120))
        read = population.text(self.chance, 1500).encode()
        files = {"picture": ("event.png", picture, "image/png"), "literature": ("read.txt", read, "text/plain")}
        return form(fields, files)

    def address(self) -> dict[str, str]:
        """The fields of an address."""
        names = ["street1", "street2", "city", "state", "zip", "country"]
        return dict(zip(names, population.address(self.chance), strict=True))

    def do(self, operation: str) -> None:
        """Do an operation by its published name."""
        getattr(self, re.sub(r"(?<=[a-z])([A-Z])", r"_\1", operation).lower())()


def form(fields: dict[str, str], files: dict[str, tuple[str, bytes, str]]) -> dict[str, Any]:
    """Fields and files as a browser sends them together."""
    from urllib3 import encode_multipart_formdata

    data, kind = encode_multipart_formdata(fields | files)
    return {"data": data, "headers": {"Content-Type": kind}}


def instances(addresses: str, ports: str) -> list[str]:
    """The address of every instance: as many ports at each address."""
    machines, each = addresses.split(","), ports.split(",")
    return [f"http://{machines[i * len(machines) // len(each)]}:{port}" for i, port in enumerate(each)]


def say(**what: Any) -> None:
    """Print an object, at once."""
    print(json.dumps(what), flush=True)


def counts(kind: str, addresses: str, ports: str) -> None:
    """What the tables hold, and that nothing in them breaks a rule that should always hold."""
    for number, host in enumerate(instances(addresses, ports)):
        with urllib.request.urlopen(f"{host}/status", timeout=60) as answer:
            found = json.load(answer)
        say(**{kind: number}, **found)


def check(addresses: str, ports: str, loaded_users: str, seed: str) -> None:
    """Do every operation at every instance, and look at each answer."""
    from locust import FastHttpUser
    from locust.env import Environment

    loaded = population.sizes(int(loaded_users))
    for number, host in enumerate(instances(addresses, ports)):
        user = type("Checker", (FastHttpUser,), {"host": host, "network_timeout": 300.0})(Environment())
        browser = Browser(user.client, random.Random(f"check {seed}"), loaded, f"check-{int(seed):x}")
        browser.cache.full = False
        _check_reading(browser)
        _check_login(browser)
        _check_adding(browser)
        say(checked=number, operations=chain.OPERATIONS, requests=browser.requests)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise Wrong(what)


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
    browser.page("GET", "/people/999999999", "there is no such person", status=404)
    browser.page("GET", "/search?tag=none-has-this", "<p>0 events</p>")


def _check_login(browser: Browser) -> None:
    """Login, with the right password alone; and what needs one."""
    browser.page("GET", "/events/new", "log in first", status=403)
    wrong = {"username": "person1", "password": "wrong"}
    browser.page("POST", "/login", "Name and password do not go together", status=403, data=wrong)
    browser.login()
    _require('action="/logout"' in browser.text, "after the login one should be able to log out")


def _check_adding(browser: Browser) -> None:
    """AddEvent and AddPerson: what was added is there, as it was sent, and is found."""
    title = f"Checked <b>{browser.name}</b>"
    state = browser.chance.getstate()
    tags = re.findall(r'name="tags"\r\n\r\n([^\r]*)', browser.event_form(title)["data"].decode(errors="replace"))[0]
    browser.chance.setstate(state)
    shown = title.replace("<", "&lt;").replace(">", "&gt;")
    browser.page("POST", "/events", f"<h1>{shown}</h1>", **browser.event_form(title))
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
        browser.page("GET", f"/search?tag={tag}", f">{shown}</a>")
    browser.page("GET", "/", f">{shown}</a>")
    for _ in range(2):
        browser.page("POST", f"/events/{event[1]}/attend", "You attend")
        _require("<h2>1 attend</h2>" in browser.text, "one person should attend the new event")
    browser.page("GET", f"/people/{browser.person}", f">{shown}</a>")
    browser.add_event()
    browser.add_person()
    name = f"{browser.name}-{browser.added}"
    browser.page("POST", "/people", f"{name} is taken", status=409, **browser.person_form(name))
    browser.page("POST", "/login", f">{name}</a>", data={"username": name, "password": "open sesame"})


def load(
    addresses: str, ports: str, loaded_users: str, seed: str, users: str, cycle: str, ramp: str, seconds: str
) -> None:
    """Run the users of every instance, and say what they met."""
    hosts = instances(addresses, ports)
    say(point=f"users-{users}", users=int(users), instances=len(hosts), cycle_seconds=float(cycle), seed=int(seed))
    own = [sys.executable, "-B", __file__, "one"]
    rest = [loaded_users, seed, users, cycle, ramp, seconds]
    # All begin to count at the same moment.
    begin = repr(time.time() + 1.5)
    started = [
        subprocess.Popen([*own, host, str(number), begin, *rest], stdout=subprocess.PIPE, text=True)
        for number, host in enumerate(hosts)
    ]
    answers = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        sys.exit("an instance's users met an error: see above")
    met = [json.loads(answer) for answer in answers]
    total = 0
    for operation in chain.OPERATIONS:
        values = sorted(value for one in met for value in one["samples"][operation])
        total += len(values)
        say(operation=operation, **summary(values))
    elapsed = float(seconds)
    lags = sorted(lag for one in met for lag in one["lags"])
    added = {name: sum(one["done"][name] for one in met) for name in ("AddPerson", "AddEvent")}
    sums = {key: sum(one[key] for one in met) for key in ("requests", "bytes")}
    say(total=total, seconds=elapsed, rate=float(f"{total / elapsed:.6g}"), added=added, **sums)
    # A process of Python uses one processor at most: what matters is also the busiest one's share of one.
    spent, cpus = [one["cpu_seconds"] for one in met], len(os.sched_getaffinity(0))
    shares = {"share": sum(spent) / (elapsed * cpus), "busiest_share": max(spent) / elapsed}
    shares = {key: float(f"{share:.6g}") for key, share in shares.items()}
    say(driver="Locust", cpus=cpus, cpu_seconds=float(f"{sum(spent):.9g}"), **shares, **late(lags))
    say(end=f"users-{users}")


def summary(values: list[float]) -> dict[str, Any]:
    """Number, sum and percentiles of sorted latencies, each latency in seconds."""
    if not values:
        return {"count": 0}
    mean = sum(values) / len(values)
    return {
        "count": len(values),
        "sum_seconds": float(f"{sum(values):.9g}"),
        "mean_ms": float(f"{1e3 * mean:.6g}"),
        "p90_seconds": float(f"{chain.percentile(values, 0.9):.9g}"),
        "p90_ms": float(f"{1e3 * chain.percentile(values, 0.9):.6g}"),
        "max_ms": float(f"{1e3 * values[-1]:.6g}"),
    }


def late(lags: list[float]) -> dict[str, Any]:
    """By how much operations began later than at the time that was drawn for them, where users were waiting."""
    mean, p99 = (sum(lags) / len(lags), chain.percentile(lags, 0.99)) if lags else (0.0, 0.0)
    return {"waited": len(lags), "late_mean_ms": float(f"{1e3 * mean:.6g}"), "late_p99_ms": float(f"{1e3 * p99:.6g}")}


def one(
    host: str, number: str, begin: str, loaded_users: str, seed: str, users: str, cycle: str, ramp: str, seconds: str
) -> None:
    """The users of one instance; prints all that they met as one object."""
    from gevent import monkey

    monkey.patch_all()
    import gevent
    from locust import FastHttpUser, task
    from locust.env import Environment

    loaded = population.sizes(int(loaded_users))
    steady = float(begin) + float(ramp)
    ends = steady + float(seconds)
    chance = random.Random(f"{seed} {number} {users}")
    steps = chain.Chain(chance)
    samples: dict[str, list[float]] = {operation: [] for operation in chain.OPERATIONS}
    lags: list[float] = []
    browsers: list[Browser] = []
    wrong: list[str] = []
    busy: set[int] = set()
    done = dict.fromkeys(chain.OPERATIONS, 0)

    class OneUser(FastHttpUser):
        """Walks the chain: an operation begins when its time has come, or when the one before has ended."""

        network_timeout = connection_timeout = 300.0

        def on_start(self) -> None:
            """Begins somewhere in a visit, at a moment of its own."""
            name = f"u{int(seed):x}-{users}-{number}-{len(browsers)}"
            self.chance = random.Random(name)
            self.browser = Browser(self.client, self.chance, loaded, name)
            browsers.append(self.browser)
            self.last = chain.begun(self.chance)
            self.due = time.time() + chain.cycle(self.chance, float(cycle))
            self.waited = True
            gevent.sleep(self.wait_time())

        def wait_time(self) -> float:
            """Seconds until the next operation."""
            return max(0.0, self.due - time.time())

        @task
        def operation(self) -> None:
            """Do the next operation and note how long it took."""
            begun = time.time()
            if begun >= ends:
                gevent.sleep(3600)
            busy.add(id(self))
            self.last = steps.after(self.last)
            watch = time.perf_counter()
            try:
                self.browser.do(self.last)
            except Exception as error:
                wrong.append(f"{self.last}: {error}")
                gevent.sleep(3600)
            done[self.last] += 1
            if steady <= begun:
                samples[self.last].append(time.perf_counter() - watch)
                if self.waited:
                    lags.append(max(0.0, begun - self.due))
            self.due = begun + chain.cycle(self.chance, float(cycle))
            self.waited = self.due > time.time()
            busy.discard(id(self))

    for size in ((100, 100), (160, 120)):
        uploads(*size)
    environment = Environment(user_classes=[OneUser], host=host)
    runner = environment.create_local_runner()
    gevent.sleep(max(0, float(begin) - time.time()))
    runner.start(int(users), spawn_rate=int(users) / max(float(ramp) / 2, 0.1))

    def until(moment: float) -> None:
        while time.time() < moment and not wrong:
            gevent.sleep(min(0.1, max(0, moment - time.time())))

    until(steady)
    before = resource.getrusage(resource.RUSAGE_SELF)
    requests = sum(browser.requests for browser in browsers), sum(browser.bytes for browser in browsers)
    until(ends)
    after = resource.getrusage(resource.RUSAGE_SELF)
    # What has begun is finished, and counts: otherwise the slowest would be left out.
    while busy and not wrong:
        gevent.sleep(0.05)
    if wrong:
        sys.exit(f"{host}: {wrong[0]}")
    print(
        json.dumps(
            {
                "samples": samples,
                "lags": lags,
                "seconds": float(seconds),
                "done": done,
                "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                "requests": sum(browser.requests for browser in browsers) - requests[0],
                "bytes": sum(browser.bytes for browser in browsers) - requests[1],
            }
        )
    )
    runner.quit()


if __name__ == "__main__":
    try:
        {"check": check, "load": load, "one": one, "counts": counts}[sys.argv[1]](*sys.argv[2:])
    except (Wrong, OSError) as error:
        sys.exit(f"driver.py {sys.argv[1]}: {error}")

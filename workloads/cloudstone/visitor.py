"""A user of the application: walks the published matrix with a browser, which keeps files and cookies."""

import functools
import random
import re
from collections.abc import Callable
from typing import Any

import chain
import data_set
from rows import picture, text
from said import WrongAnswerError
from walk import Walker

PAGE_FILE = re.compile(r'(?:src|href)="(/(?:static|files)/[^"]+\.(?:css|js|svg|png))"')
EVENT = re.compile(r'href="/events/(\d+)"')
PERSON = re.compile(r'href="/people/(\d+)"')
TAG = re.compile(r'href="/search\?tag=([^"&]+)"')
# So many different pictures of each size are sent, made before anything is measured.
UPLOADS = 8
# A user who looks at an event without attending it decides to in so many cases.
ATTENDS = 0.1


@functools.cache
def uploads(width: int, height: int) -> list[bytes]:
    """Pictures for the forms."""
    return [picture(random.Random(number), width, height, 3) for number in range(UPLOADS)]


class User(Walker):
    """Somebody who begins somewhere in a visit."""

    flows, mix = chain.FLOWS, chain.MIX

    def __init__(self, *words: Any) -> None:
        super().__init__(*words)
        self.loaded = data_set.sizes(self.asked["loaded_users"])
        self.name = f"u{self.asked['seed']}-{self.number}"
        self.cache = chain.Cache(self.chance)
        self.person: int | None = None
        # The page that is shown.
        self.text = ""
        self.added = 0

    def pause(self) -> float:
        """As published: a cycle."""
        return chain.cycle(self.chance, self.asked["cycle"])

    def first_pause(self) -> float:
        """What is left of a negative-exponential cycle is one."""
        return self.pause()

    def do(self, operation: str) -> None:
        """Do an operation by its published name, of what the page before shows or else of what was loaded."""
        match operation:
            case "HomePage":
                self.page("GET", "/", "<h1>Events</h1>")
            case "Login":
                # Another session, of a person who was loaded.
                if self.person is not None:
                    self.get("POST", "/logout", allow_redirects=False, status=303)
                self.cache = chain.Cache(self.chance)
                self.person = self.chance.randint(1, self.loaded["persons"])
                name, password = data_set.username(self.person), data_set.password(self.person)
                self.page("GET", "/login", "<h1>Log in</h1>")
                self.page("POST", "/login", f">{name}</a>", data={"username": name, "password": password})
            case "TagSearch":
                tag = self._shown(TAG, "tags", data_set.tag)
                self.page("GET", f"/search?tag={tag}", f"<h1>Events with the tag {tag}</h1>")
            case "EventDetail":
                event = self._shown(EVENT, "events")
                self.page("GET", f"/events/{event}", " attend</h2>")
                if f'action="/events/{event}/attend"' in self.text and self.chance.random() < ATTENDS:
                    self.page("POST", f"/events/{event}/attend", "You attend")
            case "PersonDetail":
                self.page("GET", f"/people/{self._shown(PERSON, 'persons')}", "<h2>Friends</h2>")
            case "AddPerson":
                self.added += 1
                name = f"{self.name}-{self.added}"
                self.page("GET", "/people/new", "<h1>Join</h1>")
                if self.get("GET", f"/people/taken?username={name}") != b"free\n":
                    raise WrongAnswerError(f"the name {name} should be free")
                self.page("POST", "/people", f"<h1>{name}</h1>", **self.person_form(name))
            case "AddEvent":
                if self.person is None:
                    self.do("Login")
                self.added += 1
                title = f"Event {self.name} {self.added}"
                self.page("GET", "/events/new", "<h1>Add an event</h1>")
                self.page("POST", "/events", f"<h1>{title}</h1>", **self.event_form(title))
            case _:
                raise NotImplementedError(operation)
        self.count(**{operation: 1})

    def _shown(self, pattern: re.Pattern, of: str, named: Callable[[int], str] = str) -> str:
        there = pattern.findall(self.text)
        return self.chance.choice(there) if there else named(self.chance.randint(1, self.loaded[of]))

    def get(self, method: str, path: str, status: int = 200, **more: Any) -> bytes:
        """Ask for something; the content of the answer, which must have this status."""
        return self.ask(method, path, status, **more)[1]

    def page(self, method: str, path: str, holds: str, **more: Any) -> str:
        """Ask for a page and its files; it must hold a text."""
        self.text = self.get(method, path, **more).decode()
        if holds not in self.text or "</html>" not in self.text:
            raise WrongAnswerError(f"{method} {path}: the page lacks '{holds}'")
        for file in self.cache.lacks(PAGE_FILE.findall(self.text)):
            if not self.get("GET", file):
                raise WrongAnswerError(f"{file} is empty")
        return self.text

    def person_form(self, name: str) -> dict[str, Any]:
        """What the form for joining sends."""
        fields = {"username": name, "password": "open sesame", "firstname": "New", "lastname": "Person"}
        fields |= {"email": f"{name}@example.org", "telephone": "555-1234567", "timezone": "UTC"}
        fields |= {"summary": text(self.chance, 40)} | self._address()
        return form(fields, {"picture": ("me.png", self.chance.choice(uploads(100, 100)), "image/png")})

    def event_form(self, title: str) -> dict[str, Any]:
        """What the form for an event sends."""
        tags = {data_set.tag(self.chance.randint(1, self.loaded["tags"])) for _ in range(3)}
        tags.add(f"new-{self.chance.randint(1, 100)}")
        fields = {"title": title, "summary": text(self.chance, 12), "tags": " ".join(sorted(tags))}
        fields |= {"description": text(self.chance, 120), "telephone": "555-1234567"}
        fields |= {"takes_place": "2030-12-24T18:00"} | self._address()
        shown = self.chance.choice(uploads(160, 120))
        read = text(self.chance, 1500).encode()
        files = {"picture": ("event.png", shown, "image/png"), "literature": ("read.txt", read, "text/plain")}
        return form(fields, files)

    def _address(self) -> dict[str, str]:
        names = ["street1", "street2", "city", "state", "zip", "country"]
        return dict(zip(names, data_set.address(self.chance), strict=True))


def form(fields: dict[str, str], files: dict[str, tuple[str, bytes, str]]) -> dict[str, Any]:
    """Fields and files as a browser sends them together."""
    from urllib3 import encode_multipart_formdata

    data, kind = encode_multipart_formdata(fields | files)
    return {"data": data, "headers": {"Content-Type": kind}}


if __name__ == "__main__":
    from users import serve

    # Made before anything is measured.
    for size in ((100, 100), (160, 120)):
        uploads(*size)
    serve(User)

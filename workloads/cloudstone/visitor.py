"""A user of the application: walks the published matrix with a browser that keeps files."""

import functools
import random
import re
from collections.abc import Callable
from typing import Any

import chain
import data_set
from report import WrongAnswerError
from rows import picture, text
from user import User

PAGE_FILE = re.compile(r'(?:src|href)="(/(?:static|files)/[^"]+\.(?:css|js|svg|png))"')
EVENT = re.compile(r'href="/events/(\d+)"')
PERSON = re.compile(r'href="/people/(\d+)"')
TAG = re.compile(r'href="/search\?tag=([^"&]+)"')
# So many different pictures of each size are sent.
UPLOADS = 8
# The share of users who attend an event at which they look.
ATTENDS = 0.1


@functools.cache
def uploads(width: int, height: int) -> list[bytes]:
    """Pictures for the forms."""
    return [picture(random.Random(number), width, height, 3) for number in range(UPLOADS)]


class Visitor(User):
    """A user, who begins somewhere in a visit."""

    books = "/status"
    operations = tried = tuple(chain.MIX)
    percentile = 90
    flows, mix = chain.FLOWS, chain.MIX
    coming = 0.5

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.loaded = data_set.sizes(self.settings["loaded_users"])
        self.name = f"u{self.settings['seed']}-{self.number}"
        self.person: int | None = None
        # The page that is shown.
        self.text = ""
        self.added = 0
        self.open_browser()

    def open_browser(self) -> None:
        """Begin with a browser that has the site's own files, or nothing."""
        self.files_kept = self.chance.random() >= chain.EMPTY_CACHES
        self.fetched: set[str] = set()

    def come(self) -> None:
        """Make the pictures while nothing is measured."""
        super().come()
        uploads(100, 100)
        uploads(160, 120)

    def pause(self) -> float:
        """A negative-exponential cycle, as published; so is the rest of a cycle."""
        return self.chance.expovariate(1 / self.settings["cycle"])

    def do(self, operation: str) -> None:
        """Do an operation by its published name, on what the page before shows or was loaded."""
        match operation:
            case "HomePage":
                self.page("GET", "/", "<h1>Events</h1>")
            case "Login":
                # Another session, of a person who was loaded.
                if self.person is not None:
                    self.request("POST", "/logout", 303, allow_redirects=False)
                self.open_browser()
                self.person = self.chance.randint(1, self.loaded["persons"])
                name, password = data_set.username(self.person), data_set.password(self.person)
                self.page("GET", "/login", "<h1>Log in</h1>")
                fields = {"username": name, "password": password}
                self.page("POST", "/login", f">{name}</a>", data=fields)
            case "TagSearch":
                tag = self._shown(TAG, "tags", data_set.tag)
                self.page("GET", f"/search?tag={tag}", f"<h1>Events with the tag {tag}</h1>")
            case "EventDetail":
                event = self._shown(EVENT, "events")
                self.page("GET", f"/events/{event}", " attend</h2>")
                attend = f"/events/{event}/attend"
                if f'action="{attend}"' in self.text and self.chance.random() < ATTENDS:
                    self.page("POST", attend, "You attend")
            case "PersonDetail":
                self.page("GET", f"/people/{self._shown(PERSON, 'persons')}", "<h2>Friends</h2>")
            case "AddPerson":
                self.added += 1
                name = f"{self.name}-{self.added}"
                self.page("GET", "/people/new", "<h1>Join</h1>")
                if self.request("GET", f"/people/taken?username={name}")[1] != b"free\n":
                    raise WrongAnswerError(f"the name {name} should be free")
                self.page("POST", "/people", f"<h1>{name}</h1>", **self.person_form(name))
            case "AddEvent":
                if self.person is None:
                    self.do("Login")
                self.added += 1
                title = f"Event {self.name} {self.added}"
                self.page("GET", "/events/new", "<h1>Add an event</h1>")
                self.page("POST", "/events", f"<h1>{title}</h1>", **self.event_form(title))
        self.count(**{operation: 1})

    def _shown(self, pattern: re.Pattern, kind: str, named: Callable[[int], str] = str) -> str:
        if shown := pattern.findall(self.text):
            return str(self.chance.choice(shown))
        return named(self.chance.randint(1, self.loaded[kind]))

    def page(self, method: str, path: str, holds: str, **more: Any) -> str:
        """Fetch a page with its files; it must hold a text."""
        self.text = self.request(method, path, **more)[1].decode()
        if holds not in self.text or "</html>" not in self.text:
            raise WrongAnswerError(f"{method} {path}: the page lacks '{holds}'")
        for file in dict.fromkeys(PAGE_FILE.findall(self.text)):
            if file in self.fetched or (self.files_kept and file.startswith("/static/")):
                continue
            self.fetched.add(file)
            if not self.request("GET", file)[1]:
                raise WrongAnswerError(f"{file} is empty")
        return self.text

    def person_form(self, name: str) -> dict[str, Any]:
        """The form for joining."""
        fields = {"username": name, "password": "open sesame"}
        fields |= {"firstname": "New", "lastname": "Person", "email": f"{name}@example.org"}
        fields |= {"telephone": "555-1234567", "timezone": "UTC", "summary": text(self.chance, 40)}
        return self._form(fields, {"picture": ("me.png", (100, 100))})

    def event_form(self, title: str) -> dict[str, Any]:
        """The form for an event."""
        tags = {data_set.tag(self.chance.randint(1, self.loaded["tags"])) for _ in range(3)}
        tags.add(f"new-{self.chance.randint(1, 100)}")
        fields = {"title": title, "summary": text(self.chance, 12), "tags": " ".join(sorted(tags))}
        fields |= {"description": text(self.chance, 120), "telephone": "555-1234567"}
        fields |= {"takes_place": "2030-12-24T18:00"}
        literature = ("read.txt", text(self.chance, 1500).encode(), "text/plain")
        return self._form(fields, {"picture": ("event.png", (160, 120))}, literature=literature)

    def _form(self, fields: dict, pictures: dict, **files: tuple) -> dict[str, Any]:
        """Fields, an address and files as a browser sends them together."""
        from urllib3 import encode_multipart_formdata

        names = ["street1", "street2", "city", "state", "zip", "country"]
        fields |= dict(zip(names, data_set.address(self.chance), strict=True))
        for name, (file, size) in pictures.items():
            files[name] = (file, self.chance.choice(uploads(*size)), "image/png")
        data, kind = encode_multipart_formdata(fields | files)
        return {"data": data, "headers": {"Content-Type": kind}}

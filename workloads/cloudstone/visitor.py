"""A user of the social-events site, with a browser that keeps files."""

import functools
import random
import re
from collections.abc import Callable
from typing import Any

import chain
import data_set
from report import WrongAnswerError
from rows import draw_picture, draw_text
from user import User

FILE_OF_PAGE = re.compile(r'(?:src|href)="(/(?:static|files)/[^"]+\.(?:css|js|svg|png))"')
EVENT = re.compile(r'href="/events/(\d+)"')
PERSON = re.compile(r'href="/people/(\d+)"')
TAG = re.compile(r'href="/search\?tag=([^"&]+)"')
# The number of different pictures that users upload.
UPLOADS = 8
# Sizes of the pictures that users upload, in pixels.
PERSON_PICTURE, EVENT_PICTURE = (100, 100), (160, 120)
# The share of users who attend the event that they look at.
ATTENDING = 0.1


@functools.cache
def make_uploads(width: int, height: int) -> list[bytes]:
    """Return the pictures (PNG) of one size, in pixels, that users upload; they are made once.

    All users share them, and no user's random numbers are drawn for them.
    """
    return [draw_picture(random.Random(number), width, height, 3) for number in range(UPLOADS)]


class Visitor(User):
    """A user of the social-events site, who begins somewhere in a session.

    The order of the random draws decides all requests of a seed: it must stay as it is.
    """

    books_path = "/status"
    operations = checked_operations = tuple(chain.MIX)
    percentile = 90
    flows, mix = chain.FLOWS, chain.MIX
    arrival_share = 0.5

    def __init__(self, *arguments: Any) -> None:
        """Begin without a login, in a new browser.  arguments: of User.

        The point's settings must also have `cycle` and `loaded_users`, for whom the data are made.
        """
        super().__init__(*arguments)
        # The numbers of persons, tags and events in the data set.
        self.row_counts = data_set.count_rows(self.settings["loaded_users"])
        # Begins all names that this user gives: no other user of the load gives them.
        self.name = f"u{self.settings['seed']}-{self.number}"
        self.person: int | None = None
        # The content of the page that is shown, and how many rows the user has added.
        self.content = ""
        self.added = 0
        self.open_browser()

    def open_browser(self) -> None:
        """Start a browser whose cache holds either all static files of the site or nothing.

        The cache is empty with the probability `chain.EMPTY_CACHES`, and never holds files that
        users uploaded.  It takes one random number: another count changes all later requests.
        """
        self.keeps_static_files = self.rng.random() >= chain.EMPTY_CACHES
        self.fetched_files: set[str] = set()

    def arrive(self) -> None:
        """Start as every user does, and make the pictures before anything is measured."""
        super().arrive()
        make_uploads(*PERSON_PICTURE)
        make_uploads(*EVENT_PICTURE)

    def draw_pause(self) -> float:
        """Draw a cycle in seconds, negative-exponential as published.

        The rest of a cycle has the same distribution: the first pause is drawn by this, too.
        """
        return self.rng.expovariate(1 / self.settings["cycle"])

    def do_operation(self, operation: str) -> None:
        """Do an operation on a link of the page that is shown, or else on a drawn row.

        operation: a name of chain.MIX.  Counts it as an event: parse.py compares the numbers of
        AddPerson and AddEvent with the database's new rows.
        Raises WrongAnswerError for a wrong answer.
        """
        match operation:
            case "HomePage":
                self.fetch_page("GET", "/", "<h1>Events</h1>")
            case "Login":
                self.log_in()
            case "TagSearch":
                tag = self._choose_row(TAG, "tags", data_set.name_tag)
                self.fetch_page("GET", f"/search?tag={tag}", f"<h1>Events with the tag {tag}</h1>")
            case "EventDetail":
                event = self._choose_row(EVENT, "events")
                self.fetch_page("GET", f"/events/{event}", " attend</h2>")
                form = f"/events/{event}/attend"
                if f'action="{form}"' in self.content and self.rng.random() < ATTENDING:
                    self.fetch_page("POST", form, "You attend")
            case "PersonDetail":
                person = self._choose_row(PERSON, "persons")
                self.fetch_page("GET", f"/people/{person}", "<h2>Friends</h2>")
            case "AddPerson":
                self.added += 1
                name = f"{self.name}-{self.added}"
                self.fetch_page("GET", "/people/new", "<h1>Join</h1>")
                if self.request("GET", f"/people/taken?username={name}")[1] != b"free\n":
                    raise WrongAnswerError(f"the name {name} should be free")
                form = self.fill_person_form(name)
                self.fetch_page("POST", "/people", f"<h1>{name}</h1>", **form)
            case "AddEvent":
                if self.person is None:
                    self.do_operation("Login")
                self.added += 1
                title = f"Event {self.name} {self.added}"
                self.fetch_page("GET", "/events/new", "<h1>Add an event</h1>")
                form = self.fill_event_form(title)
                self.fetch_page("POST", "/events", f"<h1>{title}</h1>", **form)
        self.count_events(**{operation: 1})

    def log_in(self) -> None:
        """Log out if logged in, start a new browser, and log in as a person drawn at random."""
        if self.person is not None:
            self.request("POST", "/logout", 303, allow_redirects=False)
        self.open_browser()
        self.person = self.rng.randint(1, self.row_counts["persons"])
        name = data_set.name_person(self.person)
        self.fetch_page("GET", "/login", "<h1>Log in</h1>")
        fields = {"username": name, "password": data_set.make_password(self.person)}
        self.fetch_page("POST", "/login", f">{name}</a>", data=fields)

    def _choose_row(self, link: re.Pattern, kind: str, name: Callable[[int], str] = str) -> str:
        """Choose a link of the page that is shown, or a row of the data set if there is none.

        link: whose group is the name in links of this kind.  kind: a key of `row_counts`.
        Either way takes one draw.
        name: returns the name of the row with a number.
        """
        if links := link.findall(self.content):
            return str(self.rng.choice(links))
        return name(self.rng.randint(1, self.row_counts[kind]))

    def fetch_page(self, method: str, path: str, expected: str, **options: Any) -> str:
        """Fetch a page with the files that the browser lacks; return and keep its content.

        expected: a text that only this page has, as app/pages.php or app/forms.php prints it.
        options: of `request`.
        Raises WrongAnswerError if the page lacks this text, or if a file is empty.
        """
        self.content = self.request(method, path, **options)[1].decode()
        if expected not in self.content or "</html>" not in self.content:
            raise WrongAnswerError(f"{method} {path}: the page lacks '{expected}'")
        for file in dict.fromkeys(FILE_OF_PAGE.findall(self.content)):
            is_kept = self.keeps_static_files and file.startswith("/static/")
            if is_kept or file in self.fetched_files:
                continue
            self.fetched_files.add(file)
            if not self.request("GET", file)[1]:
                raise WrongAnswerError(f"{file} is empty")
        return self.content

    def fill_person_form(self, name: str) -> dict[str, Any]:
        """Draw the fields of a person; return the options of a request that adds the person."""
        fields = {"username": name, "password": "open sesame"}
        fields |= {"firstname": "New", "lastname": "Person", "email": f"{name}@example.org"}
        fields |= {"telephone": "555-1234567", "timezone": "UTC"}
        fields |= {"summary": draw_text(self.rng, 40)}
        return self._make_form_request(fields, "me.png", PERSON_PICTURE)

    def fill_event_form(self, title: str) -> dict[str, Any]:
        """Draw the fields of an event; return the options of a request that adds the event."""
        last_tag = self.row_counts["tags"]
        tags = {data_set.name_tag(self.rng.randint(1, last_tag)) for _ in range(3)}
        tags.add(f"new-{self.rng.randint(1, 100)}")
        fields = {"title": title, "summary": draw_text(self.rng, 12)}
        fields |= {"tags": " ".join(sorted(tags)), "description": draw_text(self.rng, 120)}
        fields |= {"telephone": "555-1234567", "takes_place": "2030-12-24T18:00"}
        literature = ("read.txt", draw_text(self.rng, 1500).encode(), "text/plain")
        return self._make_form_request(fields, "event.png", EVENT_PICTURE, literature=literature)

    def _make_form_request(
        self, fields: dict, file_name: str, size: tuple[int, int], **files: tuple
    ) -> dict[str, Any]:
        """Draw an address and a picture, add them to a form, and encode it as a browser does.

        fields: the other fields of the form.
        file_name, size: of the picture; the size is in pixels.
        files: name, content and type of each further file, by its field.
        Returns the arguments `data` and `headers` of a request.
        The address is drawn before the picture: another order changes all later requests.
        """
        from urllib3 import encode_multipart_formdata

        names = ["street1", "street2", "city", "state", "zip", "country"]
        fields = fields | dict(zip(names, data_set.draw_address(self.rng), strict=True))
        files["picture"] = (file_name, self.rng.choice(make_uploads(*size)), "image/png")
        data, kind = encode_multipart_formdata(fields | files)
        return {"data": data, "headers": {"Content-Type": kind}}

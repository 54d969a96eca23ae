"""A user of the auctions, who does operations by their published names."""

import math
import random
import time
from typing import Any

import chain
import data_set
from report import WrongAnswerError
from rows import draw_picture, draw_text
from user import User

# A bid exceeds the highest one by at most so many cents.
LARGEST_RAISE = 500
# Rows of a page of auctions or of a history, as the site gives them.
ROWS_OF_A_PAGE = 10
# Path and a key of the rows of each page with a history.
HISTORIES = {
    "GetBidHistory": ("/bids", "bid"),
    "GetAttendanceHistory": ("/attendances", "auction"),
    "GetPurchaseHistory": ("/purchases", "item"),
}
# The site's own files, each with a part of its content.
FILES = {
    "/": b"<title>Auctions</title>",
    "/style.css": b"body",
    "/site.js": b"fetch",
    "/logo.svg": b"<svg",
}


class Visitor(User):
    """A user of the auctions, with the state of the browser.

    The order of the random draws decides all requests of a seed: it must stay as it is.
    """

    books_path = "/api/books"
    operations = checked_operations = tuple(chain.MIX)
    percentile = 99
    flows, mix = chain.FLOWS, chain.MIX
    waiting_operations = frozenset({"GetNextBid"})
    arrival_share = 0.75

    def __init__(self, *arguments: Any) -> None:
        """Begin without a login.  arguments: of User.

        The point's settings must also have `users`, the number at each site, and `cycle`.
        """
        super().__init__(*arguments)
        first = data_set.PERSONS_OF_A_USER * self.number_at_site + 1
        # The persons as whom the user logs in, one after the other.
        self.persons = list(range(first, first + data_set.PERSONS_OF_A_USER))
        self.attended_auctions = data_set.count_auctions(self.settings["users"])
        self.picture = draw_picture(random.Random(first), *data_set.PICTURE_SIZE)
        # Numbers: the person who is logged in, the auction that the person attends, the item that
        # is shown, the item that was added last, and the auctions and items of the pages shown.
        self.person = 0
        self.auction = self.item = self.added_item = 1
        self.auctions: list[int] = []
        self.items: list[int] = []
        # The last known state of the attended auction (the view `state`), and the id of the last
        # bid.
        self.state: dict = {}
        self.bid = ""

    @classmethod
    def find_latency_limit(cls, operation: str, settings: dict[str, Any]) -> float | None:
        """Return the longest latency of an operation in seconds, or None if it has no limit.

        settings: the settings of the point; with a shorter `cycle` (seconds) limits are shorter.
        The load generator counts the requests above the limit.
        """
        return chain.find_limit(operation, settings["cycle"])

    def arrive(self) -> None:
        """Start within a session, if the operation that was drawn as the last one is in one.

        The operations that lead there are done now, in the ramp, and do not count.
        """
        super().arrive()
        if self.last_operation not in ("HomePage", "Logout"):
            self.do_operation("Login")
        if self.last_operation in ("JoinAuction", "GetCurrentItem", "GetNextBid", "PlaceBid"):
            self.do_operation("JoinAuction")
            self.do_operation("GetCurrentItem")
        elif self.last_operation == "AddItem":
            self.do_operation("AddItem")

    def check_operations(self) -> None:
        """Do every operation once, and wait until the site shows that the bid is decided.

        The first person has made the bid.  The wait has no time limit of its own: the timeout of
        the warm-up step ends it.
        """
        super().check_operations()
        self.log_in(self.persons[0])
        while self.bid not in self._fetch_page("/bids", "bid"):
            time.sleep(0.1)

    def draw_pause(self) -> float:
        """Draw a cycle in seconds: normal, with a quarter of the mean as standard deviation.

        Cycles below 0 or above twice the mean are drawn again.
        """
        mean = self.settings["cycle"]
        while not 0 <= (cycle := self.rng.gauss(mean, mean / 4)) <= 2 * mean:
            pass
        return cycle

    def draw_first_pause(self) -> float:
        """Draw a part of the mean cycle, in seconds, so that the users do not begin together."""
        return self.rng.random() * self.settings["cycle"]

    def do_operation(self, operation: str) -> None:
        """Do an operation, by its name in chain.MIX, and keep what the next operations need.

        Raises WrongAnswerError for a wrong answer.
        """
        match operation:
            case "HomePage":
                self.fetch_files()
            case "Login":
                # The person who was logged in longest ago is next.
                self.persons.append(self.persons.pop(0))
                self.log_in(self.persons[0])
            case "Logout":
                self._call("POST", "/logout", person=self.person)
            case "GetActiveAuctions":
                page = self.rng.randrange(math.ceil(self.attended_auctions / ROWS_OF_A_PAGE))
                self.auctions = self._fetch_page(f"/auctions?page={page}", "auction")
                if not self.auctions:
                    raise WrongAnswerError(f"page {page} of the auctions is empty")
            case "GetAuctionDetail":
                auction = self.rng.choice(self.auctions or [1])
                answer = self._call("GET", f"/auctions/{auction}", auction=auction)
                self.items = [item["item"] for item in answer["items"]]
            case "GetItemDetail":
                self.item = self.rng.choice(self.items or [1])
                self._call("GET", f"/items/{self.item}", item=self.item)
            case "GetImageForItem":
                if self._call("GET", f"/items/{self.item}/image")[:4] != b"\x89PNG":
                    raise WrongAnswerError(f"the image of item {self.item} is no PNG")
            case "GetUserProfile":
                self._call("GET", "/profile", name=data_set.name_person(self.person))
            case "UpdateUserProfile":
                email = f"{data_set.name_person(self.person)}@example.com"
                fields = {"email": email, "address": draw_text(self.rng, 3)}
                self._call("PUT", "/profile", fields, **fields)
            case "GetBidHistory" | "GetAttendanceHistory" | "GetPurchaseHistory":
                self._fetch_page(*HISTORIES[operation])
            case "AddItem":
                title, description = draw_text(self.rng, 3), draw_text(self.rng, 40)
                fields = {"title": title, "description": description}
                fields |= {"starting": self.rng.randint(100, 5000)}
                self.added_item = self._call("POST", "/items", fields, 201)["item"]
            case "AddImageForItem":
                path = f"/items/{self.added_item}/image"
                self._call("PUT", path, self.picture, 201, item=self.added_item)
            case _:
                self.take_part(operation)

    def take_part(self, operation: str) -> None:
        """Do an operation in an auction: join it, watch it, bid in it, or leave it.

        The event `bids` is counted for parse.py, which compares it with the databases' new bids.
        Raises WrongAnswerError for a wrong answer.
        """
        auction = f"/auctions/{self.auction}"
        match operation:
            case "JoinAuction":
                self.auction = self.rng.randint(1, self.attended_auctions)
                path = f"/auctions/{self.auction}/attendance"
                self._call("POST", path, status=201, auction=self.auction)
            case "GetCurrentItem":
                self.state = self._call("GET", f"{auction}/item", auction=self.auction)
            case "GetNextBid":
                self.wait_for_bid()
            case "PlaceBid":
                # More than the highest bid, as far as the user knows.
                least = max(self.state["starting"], self.state["price"] + 1)
                self.place_bid(self.state["item"], least + self.rng.randrange(LARGEST_RAISE))
                self.count_events(bids=1)
            case "LeaveAuction":
                self._call("DELETE", f"{auction}/attendance", auction=self.auction)

    def fetch_files(self) -> None:
        """Fetch the site's own files.  Raises WrongAnswerError if one has another content."""
        for path, part in FILES.items():
            if part not in self.request("GET", path)[1]:
                raise WrongAnswerError(f"GET {path}: the file lacks {part!r}")

    def log_in(self, person: int) -> None:
        """Log in as a person, by number, whom `person` then names; the browser gets a cookie."""
        self.person = person
        name, password = data_set.name_person(person), data_set.make_password(person)
        self._call("POST", "/login", {"name": name, "password": password}, person=person)

    def wait_for_bid(self) -> None:
        """Wait for a change of the visitor's auction, by one request that the site holds back.

        Sets `state` if it changed; the site answers after a time that nothing did.
        Raises WrongAnswerError if the answer is of another auction, or not newer than `state`.
        """
        known = self.state["seq"]
        path = f"/api/auctions/{self.auction}/next?after={known}"
        # 204: nothing changed in the time for which the site waits.
        status, state = self.request("GET", path, 200, 204)
        if status == 200:
            if state["auction"] != self.auction or state["seq"] <= known:
                raise WrongAnswerError(f"GET {path}: {state!r} is not newer than {known}")
            self.state = state

    def place_bid(self, item: int, amount: int) -> None:
        """Bid an amount, in cents, for an item in the attended auction, and keep the bid's id."""
        fields = {"item": item, "amount": amount}
        self.bid = self._call("POST", f"/auctions/{self.auction}/bids", fields, 202)["bid"]

    def _call(
        self, method: str, path: str, body: Any = None, status: int = 200, **expected: object
    ) -> Any:
        """Send a request to the site's programs, and return the content of the answer.

        path: below /api.  body: bytes, or an object that is sent as JSON.
        status, expected: the status and the fields that the answer must have.
        Raises WrongAnswerError if it has others.
        """
        options = {}
        if body is not None:
            options["data" if isinstance(body, bytes) else "json"] = body
        _, answer = self.request(method, f"/api{path}", status, **options)
        for key, value in expected.items():
            if not isinstance(answer, dict) or answer.get(key) != value:
                raise WrongAnswerError(f"{method} {path}: {key} should be {value!r} in {answer!r}")
        return answer

    def _fetch_page(self, path: str, key: str) -> list:
        """Return the value of a key in every row of a page.

        path: below /api.  Raises WrongAnswerError if the page has too many rows.
        """
        rows = self._call("GET", path)
        if not isinstance(rows, list) or len(rows) > ROWS_OF_A_PAGE:
            raise WrongAnswerError(
                f"GET {path}: {rows!r} is not a list of at most {ROWS_OF_A_PAGE} rows"
            )
        return [row[key] for row in rows]

"""A user of the auctions, who does operations by their published names."""

import random
import time
from typing import Any

import chain
from data_set import PERSONS_OF_A_USER, PICTURE, name, open_auctions, password
from report import WrongAnswerError
from rows import picture, text
from user import User

# A bid is higher than the one before by at most so many cents.
MOST_MORE = 500
# A page of auctions or of a history, as the site gives them.
ON_A_PAGE = 10
# The site's own files, and a part of each.
FILES = {
    "/": b"<title>Auctions</title>",
    "/style.css": b"body",
    "/site.js": b"fetch",
    "/logo.svg": b"<svg",
}


class Visitor(User):
    """A user, with the state of the browser."""

    books = "/api/books"
    operations = tried = tuple(chain.MIX)
    percentile = 99
    flows, mix = chain.FLOWS, chain.MIX
    idle = frozenset({"GetNextBid"})
    coming = 0.75

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        first = PERSONS_OF_A_USER * self.place + 1
        # The persons as whom the user logs in, in turn.
        self.persons = list(range(first, first + PERSONS_OF_A_USER))
        self.attended = open_auctions(self.settings["users"])
        self.picture = picture(random.Random(first), *PICTURE)
        self.person = 0
        self.auction = self.item = self.added = 1
        self.auctions: list[int] = []
        self.items: list[int] = []
        self.state: dict = {}
        self.bid = ""

    @classmethod
    def limit(cls, operation: str, settings: dict[str, Any]) -> float | None:
        """The published limits, shorter with a shorter cycle."""
        return chain.limit(operation, settings["cycle"])

    def come(self) -> None:
        """Begin within a session, if the operation before was in one."""
        super().come()
        if self.last not in ("HomePage", "Logout"):
            self.do("Login")
        if self.last in ("JoinAuction", "GetCurrentItem", "GetNextBid", "PlaceBid"):
            self.do("JoinAuction")
            self.do("GetCurrentItem")
        elif self.last == "AddItem":
            self.do("AddItem")

    def check(self) -> None:
        """Do every operation, and wait until the bid is decided."""
        super().check()
        self.log_in(self.persons[0])
        while self.bid not in self._list("/bids", "bid"):
            time.sleep(0.1)

    def pause(self) -> float:
        """A cycle: normal, between none and twice the mean."""
        mean = self.settings["cycle"]
        while not 0 <= (drawn := self.chance.gauss(mean, mean / 4)) <= 2 * mean:
            pass
        return drawn

    def first_pause(self) -> float:
        """A part of a cycle."""
        return self.chance.random() * self.settings["cycle"]

    def do(self, operation: str) -> None:
        """Do an operation."""
        auction = f"/auctions/{self.auction}"
        match operation:
            case "HomePage":
                for path, part in FILES.items():
                    if part not in self.request("GET", path)[1]:
                        raise WrongAnswerError(f"GET {path}: the file lacks {part!r}")
            case "Login":
                self.persons.append(self.persons.pop(0))
                self.log_in(self.persons[0])
            case "GetActiveAuctions":
                page = self.chance.randrange(-(-self.attended // ON_A_PAGE))
                self.auctions = self._list(f"/auctions?page={page}", "auction")
                if not self.auctions:
                    raise WrongAnswerError(f"page {page} of the auctions is empty")
            case "GetAuctionDetail":
                shown = self.chance.choice(self.auctions or [1])
                found = self._api("GET", f"/auctions/{shown}", auction=shown)
                self.items = [item["item"] for item in found["items"]]
            case "GetItemDetail":
                self.item = self.chance.choice(self.items or [1])
                self._api("GET", f"/items/{self.item}", item=self.item)
            case "GetImageForItem":
                if self._api("GET", f"/items/{self.item}/image")[:4] != b"\x89PNG":
                    raise WrongAnswerError(f"the image of item {self.item} is no PNG")
            case "JoinAuction":
                self.auction = self.chance.randint(1, self.attended)
                path = f"/auctions/{self.auction}/attendance"
                self._api("POST", path, status=201, auction=self.auction)
            case "GetCurrentItem":
                self.state = self._api("GET", f"{auction}/item", auction=self.auction)
            case "GetNextBid":
                # None may come for a while.
                after = self.state["seq"]
                path = f"/api{auction}/next?after={after}"
                status, found = self.request("GET", path, 200, 204)
                if status == 200:
                    if found["auction"] != self.auction or found["seq"] <= after:
                        raise WrongAnswerError(f"GET {path}: {found!r} is nothing new")
                    self.state = found
            case "PlaceBid":
                # More than the highest bid, as far as is known.
                least = max(self.state["starting"], self.state["price"] + 1)
                self.place_bid(self.state["item"], least + self.chance.randrange(MOST_MORE))
                self.count(bids=1)
            case "LeaveAuction":
                self._api("DELETE", f"{auction}/attendance", auction=self.auction)
            case "GetUserProfile":
                self._api("GET", "/profile", name=name(self.person))
            case "UpdateUserProfile":
                email = f"{name(self.person)}@example.com"
                fields = {"email": email, "address": text(self.chance, 3)}
                self._api("PUT", "/profile", fields, **fields)
            case "GetBidHistory":
                self._list("/bids", "bid")
            case "GetAttendanceHistory":
                self._list("/attendances", "auction")
            case "GetPurchaseHistory":
                self._list("/purchases", "item")
            case "AddItem":
                texts = {"title": text(self.chance, 3), "description": text(self.chance, 40)}
                fields = {**texts, "starting": self.chance.randint(100, 5000)}
                self.added = self._api("POST", "/items", fields, 201)["item"]
            case "AddImageForItem":
                path = f"/items/{self.added}/image"
                self._api("PUT", path, self.picture, 201, item=self.added)
            case "Logout":
                self._api("POST", "/logout", person=self.person)

    def log_in(self, person: int) -> None:
        """Log in as a person."""
        self.person = person
        fields = {"name": name(person), "password": password(person)}
        self._api("POST", "/login", fields, person=person)

    def place_bid(self, item: int, amount: int) -> None:
        """Bid for an item in the auction that the user attends."""
        fields = {"item": item, "amount": amount}
        self.bid = self._api("POST", f"/auctions/{self.auction}/bids", fields, 202)["bid"]

    def _api(
        self,
        method: str,
        path: str,
        body: Any = None,
        status: int = 200,
        **holds: object,
    ) -> Any:
        """The content of an answer, which must have a status and hold these values."""
        more = {} if body is None else {"data" if isinstance(body, bytes) else "json": body}
        _, found = self.request(method, f"/api{path}", status, **more)
        for key, value in holds.items():
            if not isinstance(found, dict) or found.get(key) != value:
                raise WrongAnswerError(f"{method} {path}: {key} should be {value!r} in {found!r}")
        return found

    def _list(self, path: str, key: str) -> list:
        found = self._api("GET", path)
        if not isinstance(found, list) or len(found) > ON_A_PAGE:
            raise WrongAnswerError(f"GET {path}: {found!r} is no list of at most {ON_A_PAGE}")
        return [row[key] for row in found]

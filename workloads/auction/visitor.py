"""One user of the auctions: does operations by their published names, and says no to wrong answers."""

import random
import re
from collections.abc import Callable
from typing import Any

from data_set import name, open_auctions, password, picture, text

# The page's own files, as a browser that knows none of them fetches them.
PAGE = {"/": b"<title>Auctions</title>", "/style.css": b"body", "/site.js": b"fetch", "/logo.svg": b"<svg"}
# A bid is higher than the one before by at most so many cents.
MOST_MORE = 500
# A page of auctions, as the site gives them.
ON_A_PAGE = 10
LOGGED_OUT = ("HomePage", "Logout")
ATTENDING = ("JoinAuction", "GetCurrentItem", "GetNextBid", "PlaceBid")


class WrongAnswerError(Exception):
    """An answer is not what it should be."""


# Method, path, what is sent (an object, bytes or nothing) and the statuses that are right: status and content, read
# from JSON where it is that.
Ask = Callable[[str, str, Any, tuple[int, ...]], tuple[int, Any]]


class Visitor:
    """A user: who it is, and what its browser shows.

    ask: how the site is asked.  persons: numbers of those as whom it logs in, in turn.  users: how many there are,
    from which follows how many auctions they attend.  bids: names of those that were taken, how often.
    """

    def __init__(self, ask: Ask, chance: random.Random, persons: list[int], users: int) -> None:
        self.ask, self.chance, self.persons, self.attended = ask, chance, persons, open_auctions(users)
        self.picture = picture(random.Random(persons[0]))
        self.person = 0
        self.auction = 1
        self.auctions: list[int] = []
        self.items: list[int] = []
        self.item = self.added = 1
        self.state: dict = {}
        self.bids = 0

    def do(self, operation: str) -> None:
        """Do an operation."""
        getattr(self, re.sub(r"(?<=[a-z])([A-Z])", r"_\1", operation).lower())()

    def begin_after(self, operation: str) -> None:
        """Come to where a user is who has just done this."""
        if operation not in LOGGED_OUT:
            self.login()
        if operation in ATTENDING:
            self.join_auction()
            self.get_current_item()
        elif operation == "AddItem":
            self.add_item()

    def _answer(self, method: str, path: str, body: Any = None, allowed: int = 200, **holds: object) -> Any:
        """An answer, which must have a status, and hold these values."""
        _, found = self.ask(method, f"/api{path}", body, (allowed,))
        for key, value in holds.items():
            if not isinstance(found, dict) or found.get(key) != value:
                raise WrongAnswerError(f"{method} {path}: {key} should be {value!r} in {found!r}")
        return found

    def _list(self, path: str, key: str, most: int = ON_A_PAGE) -> list:
        found = self._answer("GET", path)
        if not isinstance(found, list) or len(found) > most or any(key not in one for one in found):
            raise WrongAnswerError(f"GET {path}: {found!r} should be a list of {key}, at most {most}")
        return [one[key] for one in found]

    # The operations.

    def home_page(self) -> None:
        """The page with its files."""
        for path, part in PAGE.items():
            _, content = self.ask("GET", path, None, (200,))
            if part not in content:
                raise WrongAnswerError(f"GET {path}: the file lacks {part!r}")

    def login(self) -> None:
        """Somebody logs in."""
        self.persons.append(self.persons.pop(0))
        self.person = self.persons[0]
        fields = {"name": name(self.person), "password": password(self.person)}
        self._answer("POST", "/login", fields, person=self.person)

    def get_active_auctions(self) -> None:
        """A page of those that are attended."""
        page = self.chance.randrange(-(-self.attended // ON_A_PAGE))
        self.auctions = self._list(f"/auctions?page={page}", "auction")
        if not self.auctions:
            raise WrongAnswerError(f"page {page} of the auctions is empty")

    def get_auction_detail(self) -> None:
        """One of the auctions that are shown."""
        auction = self.chance.choice(self.auctions or [1])
        found = self._answer("GET", f"/auctions/{auction}", auction=auction)
        self.items = [one["item"] for one in found["items"]]

    def get_item_detail(self) -> None:
        """One of the items that are shown."""
        self.item = self.chance.choice(self.items or [1])
        self._answer("GET", f"/items/{self.item}", item=self.item)

    def get_image_for_item(self) -> None:
        """The image of the item that was looked at."""
        _, content = self.ask("GET", f"/api/items/{self.item}/image", None, (200,))
        if content[:4] != b"\x89PNG":
            raise WrongAnswerError(f"the image of item {self.item} is none")

    def join_auction(self) -> None:
        """One of the auctions that are attended."""
        self.auction = self.chance.randint(1, self.attended)
        self._answer("POST", f"/auctions/{self.auction}/attendance", allowed=201, auction=self.auction)

    def get_current_item(self) -> None:
        """What is offered in the auction."""
        self.state = self._answer("GET", f"/auctions/{self.auction}/item", auction=self.auction)

    def get_next_bid(self) -> None:
        """Wait for the next bid; perhaps there is none for a while."""
        after = self.state["seq"]
        path = f"/api/auctions/{self.auction}/next?after={after}"
        status, found = self.ask("GET", path, None, (200, 204))
        if status == 204:
            return
        if found["auction"] != self.auction or found["seq"] <= after:
            raise WrongAnswerError(f"GET {path}: {found!r} is nothing new there")
        self.state = found

    def place_bid(self) -> None:
        """More than the highest bid, as far as is known."""
        amount = max(self.state["starting"], self.state["price"] + 1) + self.chance.randrange(MOST_MORE)
        fields = {"item": self.state["item"], "amount": amount}
        self._answer("POST", f"/auctions/{self.auction}/bids", fields, 202)
        self.bids += 1

    def leave_auction(self) -> None:
        """Leave the auction."""
        self._answer("DELETE", f"/auctions/{self.auction}/attendance", auction=self.auction)

    def get_user_profile(self) -> None:
        """One's own profile."""
        self._answer("GET", "/profile", name=name(self.person))

    def update_user_profile(self) -> None:
        """Another address."""
        fields = {"email": f"{name(self.person)}@example.com", "address": text(self.chance, 3)}
        self._answer("PUT", "/profile", fields, **fields)

    def get_bid_history(self) -> None:
        """One's own bids."""
        self._list("/bids", "bid")

    def get_attendance_history(self) -> None:
        """Where one was."""
        self._list("/attendances", "auction")

    def get_purchase_history(self) -> None:
        """What one bought."""
        self._list("/purchases", "item")

    def add_item(self) -> None:
        """An item of one's own."""
        fields = {"title": text(self.chance, 3), "description": text(self.chance, 40)}
        fields["starting"] = self.chance.randint(100, 5000)
        self.added = self._answer("POST", "/items", fields, 201)["item"]

    def add_image_for_item(self) -> None:
        """An image of the item that was added."""
        self._answer("PUT", f"/items/{self.added}/image", self.picture, 201, item=self.added)

    def logout(self) -> None:
        """Log out."""
        self._answer("POST", "/logout", person=self.person)

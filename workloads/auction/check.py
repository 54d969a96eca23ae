"""Asks a site for everything it can do, and compares each answer with what the data set and arithmetic say."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import chain
import requests
from data_set import BALANCE, ON_A_PAGE, PAGE, PICTURE, Auctions, name, password
from rows import picture
from said import WrongAnswerError, require, step

TIMEOUT = 300
# Seconds within which a bid that was taken is decided.
DECIDED = 60
# Of the books, what must be 0.
BROKEN = ("adrift", "wrong", "unsold", "astray", "falling", "stolen")


class Person:
    """Somebody at a site, with a browser's memory.  done: names of the operations that were asked for."""

    def __init__(self, site: str, done: set[str]) -> None:
        self.site, self.done, self.session = site, done, requests.Session()
        # No proxy of the environment's is on the way.
        self.session.trust_env = False
        self.number = 0

    def ask(self, operation: str, method: str, path: str, body: Any = None, allowed: int = 200) -> Any:
        """The answer to an operation, read from JSON where it is that; raises WrongAnswerError at another status."""
        sent = {"data": body} if isinstance(body, bytes) else {"json": body}
        answer = self.session.request(method, self.site + path, timeout=TIMEOUT, **sent)
        if answer.status_code != allowed:
            words = f"{answer.status_code}, not {allowed}: {answer.text[:200]}"
            raise WrongAnswerError(f"{operation} ({method} {path}) was answered with {words}")
        self.done.add(operation)
        return answer.json() if "json" in answer.headers.get("Content-Type", "") else answer.content

    def log_in(self, number: int) -> "Person":
        """Log in as somebody."""
        self.number = number
        fields = {"name": name(number), "password": password(number)}
        found = self.ask("Login", "POST", "/api/login", fields)
        require("who is logged in", found, {"person": number, "name": name(number)})
        return self

    def profile(self) -> dict:
        """One's own profile."""
        return self.ask("GetUserProfile", "GET", "/api/profile")

    def state(self, auction: int) -> dict:
        """How an auction stands."""
        return self.ask("GetCurrentItem", "GET", f"/api/auctions/{auction}/item")

    def next(self, auction: int, after: int) -> Any:
        """The next news of an auction; empty where there are none."""
        path = f"/api/auctions/{auction}/next?after={after}"
        answer = self.session.get(self.site + path, timeout=TIMEOUT)
        require(f"the status of {path}", answer.status_code in (200, 204), True)
        self.done.add("GetNextBid")
        return answer.json() if answer.content else None

    def news(self, auction: int, after: int, patience: float) -> Any:
        """The next news of an auction, for which is asked again and again for so many seconds."""
        until = time.monotonic() + patience
        while (found := self.next(auction, after)) is None and time.monotonic() < until:
            pass
        return found

    def bid(self, auction: int, item: int, amount: int) -> str:
        """Place a bid and wait for what is decided about it."""
        fields = {"item": item, "amount": amount}
        bid = self.ask("PlaceBid", "POST", f"/api/auctions/{auction}/bids", fields, 202)["bid"]
        until = time.monotonic() + DECIDED
        while time.monotonic() < until:
            for one in self.ask("GetBidHistory", "GET", "/api/bids"):
                if one["bid"] == bid:
                    require("the bid", [one[key] for key in ("auction", "item", "amount")], [auction, item, amount])
                    return one["verdict"]
            time.sleep(0.02)
        raise WrongAnswerError(f"a bid was not decided within {DECIDED} s")


class Check:
    """The functional check of one site.

    poll_seconds, item_seconds: how long who waits for a bid waits, and how long an item is offered after a bid.
    """

    def __init__(self, site: str, data: Auctions, poll_seconds: float, item_seconds: float, seed: int) -> None:
        self.site, self.data, self.poll_seconds, self.item_seconds = site, data, poll_seconds, item_seconds
        self.source = random.Random(f"check {seed}")
        self.done: set[str] = set()

    def run(self) -> list[str]:
        """Check everything; returns the operations that were done."""
        steps = [self.page, self.profiles, self.looking, self.histories, self.attending]
        for one in [*steps, self.bidding, self.own_items, self.leaving]:
            with step(one.__name__.replace("_", " ")):
                one()
        return [operation for operation in chain.MIX if operation in self.done]

    def person(self, number: int | None = None) -> Person:
        """Somebody who is logged in, anybody unless one is named."""
        return Person(self.site, self.done).log_in(number or self.source.randint(1, self.data.persons))

    def books(self) -> dict:
        """The books, in which nothing may be broken."""
        found = Person(self.site, set()).ask("the books", "GET", "/api/books")
        for key in BROKEN:
            require(f"the books' {key}", found[key], 0)
        return found

    def page(self) -> None:
        """The page with its files."""
        for path, part in PAGE.items():
            content = Person(self.site, self.done).ask("HomePage", "GET", path)
            require(f"whether {path} holds {part!r}", part in content, True)

    def profiles(self) -> None:
        """One's own profile, as it was loaded and as it was changed."""
        somebody = self.person()
        loaded = self.data.person(somebody.number)
        shown = {key: loaded[key] for key in ("name", "email", "address")}
        require("the profile", {key: somebody.profile()[key] for key in shown}, shown)
        changed = {"email": "someone@example.com", "address": "<b>7</b> 'Elm' Street; --"}
        found = somebody.ask("UpdateUserProfile", "PUT", "/api/profile", changed)
        require("the answer to a change", {key: found[key] for key in changed}, changed)
        found = self.person(somebody.number).profile()
        require("the changed profile", {key: found[key] for key in changed}, changed)

    def looking(self) -> None:
        """Pages of auctions, an auction, an item and its image, each as it was loaded."""
        somebody = self.person()
        pages = -(-self.data.open // ON_A_PAGE)
        for page in {0, pages - 1}:
            found = somebody.ask("GetActiveAuctions", "GET", f"/api/auctions?page={page}")
            numbers = range(page * ON_A_PAGE + 1, min((page + 1) * ON_A_PAGE, self.data.open) + 1)
            keys = ("id", "name", "category")
            expected = [tuple(self.data.auction(number)[key] for key in keys) for number in numbers]
            require(f"page {page}", [(one["auction"], one["name"], one["category"]) for one in found], expected)
        require("a page too far", somebody.ask("GetActiveAuctions", "GET", f"/api/auctions?page={pages}"), [])
        # One that is over: nobody changes it.
        auction = self.source.randint(self.data.open + 1, self.data.all)
        found = somebody.ask("GetAuctionDetail", "GET", f"/api/auctions/{auction}")
        items = [self.data.item(number) for number in self.data.items_of(auction)]
        expected = [{"item": one["id"], "title": one["title"], "starting": one["starting"]} for one in items]
        require(f"the items of auction {auction}", found["items"], expected)
        one = self.source.choice(items)
        found = somebody.ask("GetItemDetail", "GET", f"/api/items/{one['id']}")
        shown = {key: one[key] for key in ("title", "description", "starting", "auction")}
        require("the item", found, {"item": one["id"], **shown, "owner": name(one["owner"]), "image": True})
        content = somebody.ask("GetImageForItem", "GET", f"/api/items/{one['id']}/image")
        require("its image", content == self.data.picture(self.data.picture_of(one["id"])), True)

    def histories(self) -> None:
        """Bids, purchases and attendances of somebody who bought something, the last ones first."""
        sold = {item: self.data.sold(item) for item in self.data.past()}
        number = sold[self.source.choice(list(sold))][-1]["person"]
        somebody = self.person(number)
        bids = [bid for item in reversed(sold) for bid in reversed(sold[item]) if bid["person"] == number]
        found = somebody.ask("GetBidHistory", "GET", "/api/bids")
        keys = ("auction", "item", "amount", "verdict")
        expected = [[bid[key] for key in keys] for bid in bids[:ON_A_PAGE]]
        require(f"the bids of person {number}", [[one[key] for key in keys] for one in found], expected)
        found = somebody.ask("GetPurchaseHistory", "GET", "/api/purchases")
        bought = [bid for bid in bids if sold[bid["item"]][-1] is bid]
        expected = [[bid["auction"], bid["item"], bid["amount"]] for bid in bought[:ON_A_PAGE]]
        require("the purchases", [[one[key] for key in ("auction", "item", "amount")] for one in found], expected)
        found = somebody.ask("GetAttendanceHistory", "GET", "/api/attendances")
        attended = sorted({bid["auction"] for bid in bids}, reverse=True)[:ON_A_PAGE]
        require("the auctions that were attended", [one["auction"] for one in found], attended)

    def attending(self) -> None:
        """Who joins is there once, until leaving."""
        somebody = self.person()
        for _ in range(2):
            somebody.ask("JoinAuction", "POST", "/api/auctions/1/attendance", allowed=201)
        found = somebody.ask("GetAttendanceHistory", "GET", "/api/attendances")
        require("the open attendances", [one["auction"] for one in found if one["went"] is None], [1])
        somebody.ask("LeaveAuction", "DELETE", "/api/auctions/1/attendance")

    def bidding(self) -> None:
        """Bids that are and are not accepted, who is told of them, and a sale with all its money."""
        auction = self.data.open
        state = self.person().state(auction)
        item, starting, seq = state["item"], state["starting"], state["seq"]
        seller = self.person(self.data.item(item)["owner"])
        first, second = (self.person(number) for number in self._others(seller.number))
        before = {person.number: person.profile()["balance"] for person in (seller, first, second)}
        require("what everybody has", set(before.values()), {BALANCE})
        books = self.books()
        told = _aside(lambda: second.news(auction, seq, DECIDED))
        require("the first bid", first.bid(auction, item, starting), "accepted")
        expected = state | {"seq": seq + 1, "price": starting, "leader": name(first.number), "bids": 1}
        require("what who waits is told of it", told(), expected)
        require("the bidder's balance", first.profile()["balance"], BALANCE - starting)
        require("the second bid", second.bid(auction, item, starting + 7), "accepted")
        expected |= {"seq": seq + 2, "price": starting + 7, "leader": name(second.number), "bids": 2}
        require("how the auction stands then", first.next(auction, seq + 1), expected)
        require("a bid that is no more", first.bid(auction, item, starting + 7), "low")
        require("the balance of who was outbid", first.profile()["balance"], BALANCE)
        # Where nothing happens who waits hears that; meanwhile the item is sold.
        if self.data.open > 1:
            quiet = first.state(1)["seq"]
            begun = time.monotonic()
            require("news where there are none", first.next(1, quiet), None)
            require("whether it was waited for", time.monotonic() - begun >= 0.9 * self.poll_seconds, True)
        after = first.news(auction, seq + 2, self.item_seconds + DECIDED)
        following = self.data.items_of(auction)[1]
        expected = {"auction": auction, "seq": seq + 3, "item": following, "price": 0, "leader": None, "bids": 0}
        require("what is offered then", {key: (after or {}).get(key) for key in expected}, expected)
        for person, more in ((seller, starting + 7), (first, 0), (second, -starting - 7)):
            require("a balance after the sale", person.profile()["balance"] - before[person.number], more)
        bought = second.ask("GetPurchaseHistory", "GET", "/api/purchases")[0]
        require("the purchase", (bought["item"], bought["amount"]), (item, starting + 7))
        found = first.ask("GetItemDetail", "GET", f"/api/items/{item}")
        require("the new owner", found["owner"], name(second.number))
        now = self.books()
        for key, more in (("bids", 3), ("accepted", 2), ("purchases", 1)):
            require(f"the books' {key}", now[key], books[key] + more)

    def _others(self, seller: int) -> list[int]:
        """Two persons who are not the seller."""
        return self.source.sample([one for one in range(1, self.data.persons + 1) if one != seller], 2)

    def own_items(self) -> None:
        """An item that is added, with its image."""
        owner, other = self.person(1), self.person(2)
        fields = {"title": "a kettle", "description": "one's own", "starting": 100}
        item = owner.ask("AddItem", "POST", "/api/items", fields, 201)["item"]
        content = picture(random.Random(1), *PICTURE)
        owner.ask("AddImageForItem", "PUT", f"/api/items/{item}/image", content, 201)
        found = other.ask("GetImageForItem", "GET", f"/api/items/{item}/image")
        require("the image that was sent", found == content, True)
        found = other.ask("GetItemDetail", "GET", f"/api/items/{item}")
        require("the item", found, {"item": item, **fields, "owner": name(1), "auction": None, "image": True})

    def leaving(self) -> None:
        """Who logs out has left, and is not known any more."""
        somebody = self.person()
        somebody.ask("JoinAuction", "POST", "/api/auctions/1/attendance", allowed=201)
        somebody.ask("Logout", "POST", "/api/logout")
        found = self.person(somebody.number).ask("GetAttendanceHistory", "GET", "/api/attendances")
        require("the open attendances", [one for one in found if one["went"] is None], [])
        self.books()


def _aside(work: Callable[[], Any]) -> Callable[[], Any]:
    """Do something beside; what is returned waits for it and gives its result."""
    results: list[Any] = []

    def keep() -> None:
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()

    def result() -> Any:
        thread.join(TIMEOUT)
        if not results:
            raise WrongAnswerError(f"no answer within {TIMEOUT} s")
        if isinstance(results[0], Exception):
            raise results[0]
        return results[0]

    return result

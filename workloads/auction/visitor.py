"""One user of the auctions: does operations by their published names."""

import random
from typing import Any

import chain
from data_set import ON_A_PAGE, PAGE, PERSONS_OF_A_USER, PICTURE, name, open_auctions, password
from rows import picture, text
from said import WrongAnswerError
from walk import Walker

# A bid is higher than the one before by at most so many cents.
MOST_MORE = 500
LOGGED_OUT = ("HomePage", "Logout")
ATTENDING = ("JoinAuction", "GetCurrentItem", "GetNextBid", "PlaceBid")


class Bidder(Walker):
    """A user: who it is, and what its browser shows."""

    flows, mix = chain.FLOWS, chain.MIX
    idle = frozenset({"GetNextBid"})

    def __init__(self, *words: Any) -> None:
        super().__init__(*words)
        first = PERSONS_OF_A_USER * self.place + 1
        # Those as whom it logs in, in turn.
        self.persons = list(range(first, first + PERSONS_OF_A_USER))
        self.attended = open_auctions(self.asked["users"])
        self.picture = picture(random.Random(first), *PICTURE)
        self.person = 0
        self.auction = self.item = self.added = 1
        self.auctions: list[int] = []
        self.items: list[int] = []
        self.state: dict = {}

    def come(self) -> None:
        """Come to where one is who has just done something."""
        super().come()
        if self.last not in LOGGED_OUT:
            self.do("Login")
        if self.last in ATTENDING:
            self.do("JoinAuction")
            self.do("GetCurrentItem")
        elif self.last == "AddItem":
            self.do("AddItem")

    def pause(self) -> float:
        """A cycle."""
        return chain.cycle(self.chance, self.asked["cycle"])

    def first_pause(self) -> float:
        """A part of a cycle."""
        return self.chance.random() * self.asked["cycle"]

    def do(self, operation: str) -> None:
        """Do an operation."""
        match operation:
            case "HomePage":
                for path, part in PAGE.items():
                    _, content = self.ask("GET", path)
                    if part not in content:
                        raise WrongAnswerError(f"GET {path}: the file lacks {part!r}")
            case "Login":
                self.persons.append(self.persons.pop(0))
                self.person = self.persons[0]
                fields = {"name": name(self.person), "password": password(self.person)}
                self._answer("POST", "/login", fields, person=self.person)
            case "GetActiveAuctions":
                page = self.chance.randrange(-(-self.attended // ON_A_PAGE))
                self.auctions = self._list(f"/auctions?page={page}", "auction")
                if not self.auctions:
                    raise WrongAnswerError(f"page {page} of the auctions is empty")
            case "GetAuctionDetail":
                auction = self.chance.choice(self.auctions or [1])
                found = self._answer("GET", f"/auctions/{auction}", auction=auction)
                self.items = [one["item"] for one in found["items"]]
            case "GetItemDetail":
                self.item = self.chance.choice(self.items or [1])
                self._answer("GET", f"/items/{self.item}", item=self.item)
            case "GetImageForItem":
                _, content = self.ask("GET", f"/api/items/{self.item}/image")
                if content[:4] != b"\x89PNG":
                    raise WrongAnswerError(f"the image of item {self.item} is none")
            case "JoinAuction":
                self.auction = self.chance.randint(1, self.attended)
                self._answer("POST", f"/auctions/{self.auction}/attendance", allowed=201, auction=self.auction)
            case "GetCurrentItem":
                self.state = self._answer("GET", f"/auctions/{self.auction}/item", auction=self.auction)
            case "GetNextBid":
                self._wait()
            case "PlaceBid":
                # More than the highest bid, as far as is known.
                amount = max(self.state["starting"], self.state["price"] + 1) + self.chance.randrange(MOST_MORE)
                fields = {"item": self.state["item"], "amount": amount}
                self._answer("POST", f"/auctions/{self.auction}/bids", fields, 202)
                self.count(bids=1)
            case "LeaveAuction":
                self._answer("DELETE", f"/auctions/{self.auction}/attendance", auction=self.auction)
            case "GetUserProfile":
                self._answer("GET", "/profile", name=name(self.person))
            case "UpdateUserProfile":
                fields = {"email": f"{name(self.person)}@example.com", "address": text(self.chance, 3)}
                self._answer("PUT", "/profile", fields, **fields)
            case "GetBidHistory":
                self._list("/bids", "bid")
            case "GetAttendanceHistory":
                self._list("/attendances", "auction")
            case "GetPurchaseHistory":
                self._list("/purchases", "item")
            case "AddItem":
                fields = {"title": text(self.chance, 3), "description": text(self.chance, 40)}
                fields["starting"] = self.chance.randint(100, 5000)
                self.added = self._answer("POST", "/items", fields, 201)["item"]
            case "AddImageForItem":
                self._answer("PUT", f"/items/{self.added}/image", self.picture, 201, item=self.added)
            case "Logout":
                self._answer("POST", "/logout", person=self.person)
            case _:
                raise NotImplementedError(operation)

    def _answer(self, method: str, path: str, body: Any = None, allowed: int = 200, **holds: object) -> Any:
        """An answer, which must have a status, and hold these values."""
        sent = {"data": body} if isinstance(body, bytes) else {} if body is None else {"json": body}
        _, found = self.ask(method, f"/api{path}", allowed, **sent)
        for key, value in holds.items():
            if not isinstance(found, dict) or found.get(key) != value:
                raise WrongAnswerError(f"{method} {path}: {key} should be {value!r} in {found!r}")
        return found

    def _list(self, path: str, key: str) -> list:
        found = self._answer("GET", path)
        if not isinstance(found, list) or len(found) > ON_A_PAGE or any(key not in one for one in found):
            raise WrongAnswerError(f"GET {path}: {found!r} should be a list of {key}, at most {ON_A_PAGE}")
        return [one[key] for one in found]

    def _wait(self) -> None:
        """Wait for the next bid; perhaps there is none for a while."""
        after = self.state["seq"]
        path = f"/api/auctions/{self.auction}/next?after={after}"
        status, found = self.ask("GET", path, 200, 204)
        if status == 200:
            if found["auction"] != self.auction or found["seq"] <= after:
                raise WrongAnswerError(f"GET {path}: {found!r} is nothing new there")
            self.state = found


if __name__ == "__main__":
    from users import serve

    serve(Bidder)

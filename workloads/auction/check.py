"""Compares what a site answers with the data, and does every operation once."""

import time
from typing import Any

import chain
from data_set import ON_A_PAGE, Auctions, name
from said import WrongAnswerError, require, step
from visitor import Bidder

# Seconds within which a bid that was taken is decided.
DECIDED = 60


def compare(bidder: Bidder, data: Auctions) -> None:
    """Check a site whose data nobody has changed; each bid is decided when this returns."""
    # Who bought the last thing that was sold has a history.
    buyer = data.sold(data.past()[-1])[-1]["person"]
    bidder.persons = [buyer]
    with step("Login"):
        bidder.do("Login")
    for path, rows in loaded(data, buyer).items():
        _, found = bidder.ask("GET", f"/api{path}")
        found = found if isinstance(found, list) else [found]
        require(f"GET {path}", [{key: row.get(key) for key in rows[0]} for row in found], rows)
    item = data.past()[0]
    _, content = bidder.ask("GET", f"/api/items/{item}/image")
    require("whether an image is the loaded one", content == data.picture(data.picture_of(item)), True)
    for operation in chain.MIX:
        with step(operation):
            bidder.do(operation)
            if operation == "PlaceBid":
                _see_bid(bidder)


def loaded(data: Auctions, buyer: int) -> dict[str, list[dict[str, Any]]]:
    """What was loaded, by the path that shows it, of lists the first page."""

    def some(row: dict, *keys: str) -> dict[str, Any]:
        return {key: row[key] for key in keys}

    bids = [bid for item in reversed(data.past()) for bid in reversed(data.sold(item)) if bid["person"] == buyer]
    bought = [bid for bid in bids if bid == data.sold(bid["item"])[-1]]
    attended = sorted({bid["auction"] for bid in bids}, reverse=True)
    # Of those that are over, nobody changes anything.
    over, open_ones = data.all, range(1, min(ON_A_PAGE, data.open) + 1)
    items = [{"item": number, **some(data.item(number), "title", "starting")} for number in data.items_of(over)]
    item = data.item(items[0]["item"])
    shown = some(item, "title", "description", "starting", "auction") | {"owner": name(item["owner"]), "image": True}
    return {
        "/profile": [some(data.person(buyer), "name", "email", "address")],
        "/bids": [some(bid, "auction", "item", "amount", "verdict") for bid in bids[:ON_A_PAGE]],
        "/purchases": [some(bid, "auction", "item", "amount") for bid in bought[:ON_A_PAGE]],
        "/attendances": [{"auction": auction} for auction in attended[:ON_A_PAGE]],
        "/auctions?page=0": [
            {"auction": number, **some(data.auction(number), "name", "category")} for number in open_ones
        ],
        f"/auctions/{over}": [{"auction": over, "items": items}],
        f"/items/{item['id']}": [shown],
    }


def _see_bid(bidder: Bidder) -> None:
    """Wait for the news of one's own bid, the first for what is offered."""
    until = time.monotonic() + DECIDED
    while bidder.state["leader"] != name(bidder.person):
        if time.monotonic() > until:
            raise WrongAnswerError(f"a bid was not decided within {DECIDED} s")
        bidder.do("GetNextBid")
    require("the bids for it", bidder.state["bids"], 1)

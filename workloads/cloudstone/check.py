"""Does every operation once, and sees that what was loaded is there, and what was added, as it was sent."""

import re

import chain
import data_set
from said import require, step
from visitor import TAG, User


def compare(user: User) -> None:
    """Check an instance that nobody has used."""
    user.cache.full = False
    for operation in chain.OPERATIONS:
        with step(operation):
            user.do(operation)
    with step("what was loaded"):
        user.page("GET", "/", f"<p>{user.loaded['events'] + 1} events</p>")
        user.page("GET", "/people/1", "<h1>person1</h1>")
    with step("what was added"):
        title = f"Checked {user.name}"
        form = user.event_form(title)
        page = user.page("POST", "/events", f"<h1>{title}</h1>", **form)
        address, place, picture, text = (
            _only(pattern, page)
            for pattern in (
                "<address>(.*?)<br>",
                'class="place">(.*?)<',
                'class="picture" src="([^"]+)"',
                r'href="(/files/[^"]+\.txt)"',
            )
        )
        require("its place", place, " ".join(data_set.place(address.split(", "))))
        for file in (picture, text):
            require(f"whether {file} is what was sent", user.get("GET", file) in form["data"], True)
        for path in ["/", *(f"/search?tag={tag}" for tag in TAG.findall(page))]:
            user.page("GET", path, f">{title}</a>")


def _only(pattern: str, page: str) -> str:
    found = re.findall(pattern, page)
    require(f"how often {pattern} is in the page", len(found), 1)
    return found[0]

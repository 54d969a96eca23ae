"""A user of the application, for the load generator: walks the published matrix."""

import random

import chain
import population
from browser import Browser, uploads
from users import Visitor, serve
from walk import Chain, mix


class User(Visitor):
    """Somebody with a browser, who begins somewhere in a visit."""

    def come(self) -> None:
        """Open the browser; the walk is shared, so that a run has the published mix."""
        shared, seed = self.point.shared, self.asked["seed"]
        if not shared:
            shared["walk"] = Chain(chain.FLOWS, random.Random(f"walk {seed} {self.number}"))
            shared["mix"] = mix(chain.FLOWS)
        loaded, name = population.sizes(self.asked["loaded_users"]), f"u{seed}-{self.number}"
        self.browser = Browser(self.ask, self.chance, loaded, name)
        self.last = self.chance.choices(list(shared["mix"]), list(shared["mix"].values()))[0]

    def next(self) -> str:
        """What the matrix lets follow."""
        self.last = self.point.shared["walk"].after(self.last)
        return self.last

    def do(self, operation: str) -> None:
        """Do it, and count what it asked for."""
        before = self.browser.requests, self.browser.bytes
        self.browser.do(operation)
        self.count(
            **{operation: 1},
            requests=self.browser.requests - before[0],
            bytes=self.browser.bytes - before[1],
        )

    def pause(self) -> float:
        """As published: a cycle."""
        return chain.cycle(self.chance, self.asked["cycle"])

    def first_pause(self) -> float:
        """What is left of a negative-exponential cycle is one."""
        return self.pause()


if __name__ == "__main__":
    # Made before anything is measured.
    for size in ((100, 100), (160, 120)):
        uploads(*size)
    serve(User)

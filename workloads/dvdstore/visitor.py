"""A customer of the shop, for the load generator: goes through the order loop again and again."""

import time
import urllib.parse

from data_set import Shop
from marks import FORM, basket, cents, marks, search
from orders import draw_round
from users import Visitor, serve


class Customer(Visitor):
    """Somebody who thinks after each order, and whose pages are timed one by one."""

    paced = False

    def come(self) -> None:
        """Find the shop's data, which all share."""
        shared = self.point.shared
        if not shared:
            shared["shop"] = Shop(self.asked["size"], self.asked["data_seed"])
        self.shop, self.rounds, self.thinking = shared["shop"], 0, 0.0

    def next(self) -> str:
        """Always the same."""
        return "order"

    def do(self, operation: str) -> None:
        """One round of the order loop."""
        self.rounds += 1
        plan = draw_round(self.chance, self.shop, f"s{self.asked['seed']}x{self.number}x{self.rounds}")
        self.spent, self.thinking = 0.0, plan.thinking
        entrance = "new" if plan.is_new else "login"
        self._page(entrance, f"/{entrance}.php", urllib.parse.urlencode(plan.login))
        self.count(customers=int(plan.is_new))
        for fields in plan.searches:
            told = self._page("browse", search(fields))
            self.count(searches=1, found=int(told["found"] != "0"))
        told = self._page("purchase", "/purchase.php", basket(plan.basket))
        self.time("order", self.spent)
        bought = told["order"] != "0"
        self.count(rounds=1, orders=int(bought), rolled_back=int(not bought), cents=cents(told.get("total", "0.00")))

    def _page(self, name: str, path: str, body: str | None = None) -> dict[str, str]:
        begun = time.perf_counter()
        sent = {} if body is None else {"data": body, "headers": FORM}
        status, content = self.ask("GET" if body is None else "POST", path, **sent)
        seconds = time.perf_counter() - begun
        told = marks(status, content, name)
        self.spent += seconds
        self.time(name, seconds)
        return told

    def pause(self) -> float:
        """Between none and twice the think time."""
        return 2 * self.asked["think"] * self.thinking

    def first_pause(self) -> float:
        """None: they come in one after another."""
        return 0.0


if __name__ == "__main__":
    serve(Customer)

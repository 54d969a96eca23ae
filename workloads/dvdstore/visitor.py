"""A customer of the shop, who repeats the same round: log in, search, buy, think."""

import re
import urllib.parse
from typing import Any

import data_set
from report import WrongAnswerError
from user import User

# The share of rounds of a known customer; a new customer does the others.
KNOWN_SHARE = 0.8
MAX_SEARCHES = 5
# The most products that a search may find, and the most pieces of a product that are bought.
MAX_FOUND = 9
MAX_PIECES = 3
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
# The attributes in which a page tells programs its name and its results.
_MAIN = re.compile(rb"<main((?: data-[a-z]+=\"[^\"]*\")+)>")
_ATTRIBUTE = re.compile(r' data-([a-z]+)="([^"]*)"')
# The fields of a new customer, without the name.
NEW_CUSTOMER = {
    "first_name": "Nora",
    "last_name": "Newman",
    "street": "1 Willow Street",
    "city": "Wonderville",
    "country": "Norway",
    "email": "nora@example.org",
    "phone": "5550000000",
    "card": "4000000000000000",
    "password": data_set.PASSWORD,
    "age": "30",
    "income": "20000",
    "gender": "F",
}


class Visitor(User):
    """A customer, who pauses after each order, and whose pages are timed one by one.

    The order of the random draws decides all requests of a seed: it must stay as it is.
    """

    books_path = "/account.php"
    # `order` is all pages of a round together.
    operations = ("order", "login", "new", "browse", "purchase")
    checked_operations = ("login", "new")
    percentile = 95
    paced = False

    def __init__(self, *arguments: Any) -> None:
        """Begin before the first round, in the shop of the settings.  arguments: of User.

        The point's settings must also have `size`, `data_seed` and `think`, in seconds.
        """
        super().__init__(*arguments)
        self.shop = data_set.ShopData(self.settings["size"], self.settings["data_seed"])
        # The content of the last page, the rounds until now, the seconds that the pages of this
        # round took, and the drawn part of twice the think time.
        self.content = b""
        self.rounds = 0
        self.seconds = self.pause_share = 0.0

    def arrive(self) -> None:
        """Do nothing: a customer begins with a round at once."""

    def choose_operation(self) -> str:
        """Return "order": every operation is a round."""
        return "order"

    def do_operation(self, operation: str) -> None:
        """Do one round: come in, search, and buy.

        operation: "login" or "new" for a round of a known or a new customer, otherwise "order".
        parse.py compares the counted events with the databases' new rows and amounts.
        Raises WrongAnswerError for a wrong answer.
        """
        self.rounds += 1
        self.seconds = 0.0
        # Drawn even if the operation decides.
        is_known = self.rng.random() < KNOWN_SHARE
        if operation != "order":
            is_known = operation == "login"
        self.enter_shop(is_known)
        for _ in range(self.rng.randint(1, MAX_SEARCHES)):
            self.search_products(**self.draw_search())
            self.count_events(searches=1)
        products = range(1, self.shop.products + 1)
        chosen = self.rng.sample(products, self.rng.randint(1, data_set.MAX_LINES))
        results = self.buy_basket({product: self.rng.randint(1, MAX_PIECES) for product in chosen})
        self.record_latency("order", self.seconds)
        # The order 0 was rolled back, and has no total.
        is_ordered = results["order"] != "0"
        cents = int(results.get("total", "0.00").replace(".", ""))
        self.count_events(orders=int(is_ordered), rolled_back=int(not is_ordered), cents=cents)
        self.pause_share = self.rng.random()

    def enter_shop(self, is_known: bool) -> None:
        """Log in as a drawn customer of the data set, or become a new customer, and count this."""
        if is_known:
            name = f"user{self.rng.randint(1, self.shop.customers)}"
            self.fetch_page("login", {"username": name, "password": data_set.PASSWORD})
        else:
            # No other customer of this load has the name.
            name = f"s{self.settings['seed']}x{self.number}x{self.rounds}"
            self.fetch_page("new", NEW_CUSTOMER | {"username": name})
        self.count_events(customers=int(not is_known))

    def draw_search(self) -> dict[str, str]:
        """Draw the fields of a search, which browse.php reads: `by`, `words` and `limit`."""
        by = self.rng.choice(["category", "actor", "title"])
        if by == "category":
            words = str(self.rng.randint(1, len(data_set.CATEGORIES)))
        elif by == "actor":
            first = self.rng.choice(data_set.FIRST_NAMES)
            words = f"{first} {self.rng.choice(data_set.LAST_NAMES)}"
        else:
            words = self.rng.choice(data_set.TITLE_WORDS)
        return {"by": by, "words": words, "limit": str(self.rng.randint(1, MAX_FOUND))}

    def search_products(self, **fields: str) -> dict[str, str]:
        """Search for products; return the attributes of the page, as fetch_page does.

        fields: see draw_search.
        """
        return self.fetch_page("browse", query=f"?{urllib.parse.urlencode(fields)}")

    def buy_basket(self, basket: dict[int, int]) -> dict[str, str]:
        """Buy a basket, product → quantity, as the customer who is logged in.

        Returns the attributes of the page: `order`, 0 if it was rolled back, and else `total`.
        """
        fields = {f"quantity[{product}]": quantity for product, quantity in basket.items()}
        return self.fetch_page("purchase", fields)

    def fetch_page(self, name: str, fields: dict | None = None, query: str = "") -> dict[str, str]:
        """Fetch a page into `content`, and return the attributes of its element `main`.

        The attributes are those that print_page of shop.php writes, without their prefix `data-`.
        The page's latency is recorded, and added to the round's `seconds`.
        name: the name of the page, without `.php`.  fields: of a form that is sent; None for a GET.
        Raises WrongAnswerError if another page answers, or a part of the page is missing.
        """
        method = "GET" if fields is None else "POST"
        options: dict[str, Any] = {}
        if fields is not None:
            options = {"data": urllib.parse.urlencode(fields), "headers": FORM}
        _, self.content = self.request(method, f"/{name}.php{query}", **options)
        main = _MAIN.search(self.content)
        attributes = dict(_ATTRIBUTE.findall(main[1].decode())) if main else {}
        if attributes.get("page") != name or not self.content.endswith(b"</html>\n"):
            end = self.content[-200:]
            raise WrongAnswerError(f"{name}.php is not the page '{name}': {end!r}")
        self.seconds += self.latency
        self.record_latency(name, self.latency)
        return attributes

    def draw_pause(self) -> float:
        """Return a pause between none and twice the think time, in seconds.

        Its share was drawn at the end of the round.
        """
        return 2 * self.settings["think"] * self.pause_share

    def draw_first_pause(self) -> float:
        """Return 0: only the ramp spreads the customers."""
        return 0.0

"""What the shop's pages say, for programs that read them."""

import re
import urllib.parse
from html import unescape

from said import WrongAnswerError

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_MAIN = re.compile(rb"<main((?: data-[a-z]+=\"[^\"]*\")+)>")
_MARK = re.compile(r' data-([a-z]+)="([^"]*)"')


def marks(status: int | None, body: bytes | None, page: str, allowed: int = 200) -> dict[str, str]:
    """What a page tells of itself.  Raises WrongAnswerError unless it is that page, whole, with that status."""
    body = body or b""
    found = _MAIN.search(body)
    told = dict(_MARK.findall(found[1].decode())) if found else {}
    if status != allowed or told.get("page") != page or not body.endswith(b"</html>\n"):
        words = " ".join(re.sub(r"<[^>]*>", " ", body.decode(errors="replace")).split())[:200]
        raise WrongAnswerError(f"status {status} instead of {allowed} with the page '{page}': {words}")
    return told


def cells(body: bytes) -> list[list[str]]:
    """The text in the cells of the rows of a page's table, without the foot; of products the number comes first."""
    rows = []
    inner = body.decode().partition("<tbody>")[2].partition("</tbody>")[0]
    for number, row in re.findall(r"<tr(?: data-product=\"(\d+)\")?>(.*?)</tr>", inner):
        texts = [unescape(re.sub(r"<[^>]*>", "", cell)) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        rows.append([number, *texts] if number else texts)
    return rows


def basket(quantities: dict[int, int]) -> str:
    """The body of a purchase."""
    return urllib.parse.urlencode({f"quantity[{product}]": count for product, count in quantities.items()})


def search(fields: dict[str, str]) -> str:
    """The address of a search."""
    return "/browse.php?" + urllib.parse.urlencode(fields)


def cents(amount: str) -> int:
    """The cents of an amount as it stands on a page."""
    whole, _, part = amount.partition(".")
    return 100 * int(whole) + int(part)

"""The claims of the publications, as they stand in a file that people write: what is wrong with them."""

import os

from strata.base import checking
from strata.base.errors import UserError

FILE = "published/claims.json"


def check(path: str = FILE) -> None:
    """Raise UserError with all that is wrong in the file of claims."""
    if not os.path.exists(path):
        raise UserError(f"{path}: there is no such file")
    with open(path, encoding="utf-8", errors="replace") as file:
        data = checking.read_json_words(path, file.read())
    found = checking.plain(data)
    if not found:
        found, rest = checking.examined(checking.schema("claims"), data)
        found += _cross_check(rest, data)
    checking.complain(path, [(_named(key, data), sentence) for key, sentence in found])


def _named(key: str, data: dict) -> str:
    """A key with the claim's own name, by which it is found in the file."""
    parts = key.split(".")
    if parts[0] == "claims" and len(parts) > 1 and isinstance(data.get("claims"), list):
        claim = data["claims"][int(parts[1])]
        if isinstance(claim, dict) and isinstance(claim.get("id"), str):
            return f"{key} ({claim['id']})"
    return key


def _cross_check(rest: dict, data: dict) -> list[tuple[str, str]]:
    """What a schema cannot say of what fits it: names that must be known, and limits in their order."""
    found = []
    ids: dict[str, int] = {}
    for name, entry in rest.get("environments", {}).items():
        if entry and entry["measured_as"] and "transferred" in entry:
            found.append((f"environments.{name}.transferred", "must be left out where measured_as names environments"))
    publications, environments = (list(data.get(key) or {}) for key in ("publications", "environments"))
    for number, claim in enumerate(rest.get("claims", [])):
        key = f"claims.{number}"
        name = claim.get("id")
        if name in ids:
            found.append((f"{key}.id", f"is that of claim {ids[name]} too; each needs its own"))
        elif name is not None:
            ids[name] = number
        if claim and claim["publication"] not in publications:
            hint = checking.nearest(claim["publication"], publications)
            found.append((f"{key}.publication", f"'{claim['publication']}' is none of publications; {hint}"))
        for place, pair in enumerate(claim.get("pairs", [])):
            found += [
                (f"{key}.pairs.{place}", f"'{side}' is none of environments; {checking.nearest(side, environments)}")
                for side in pair
                if side not in environments
            ]
        low, high = (claim.get("tolerance", {}).get(limit) for limit in ("low", "high"))
        if "tolerance" in claim and low is None and high is None:
            found.append((f"{key}.tolerance", "has no limit; must have low, high or both"))
        elif low is not None and high is not None and high < low:
            found.append((f"{key}.tolerance.high", f"is {high}; must be at least low, {low}"))
    return found

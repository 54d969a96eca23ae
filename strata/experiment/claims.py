"""The claims of the publications, as they stand in a file that people write: what is wrong with them."""

import json

from strata.base import checking
from strata.base.checking import Finding, unknown
from strata.base.errors import UserError
from strata.experiment import workload

FILE = "published/claims.json"


def check(path: str = FILE, names: bool = False) -> None:
    """Raise UserError with all that is wrong in the file of claims.

    names: whether the workloads and metrics of the claims that are tested must be there, too.
    """
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid JSON: {error}") from None
    found = checking.findings(checking.schema("claims"), data) or _cross_check(data) + (
        _unknown_names(data) if names else []
    )
    checking.complain(path, [(_named(key, data), sentence) for key, sentence in found])


def _named(key: str, data: dict) -> str:
    """A key with the claim's own name, by which it is found in the file."""
    parts = key.split(".")
    claim = data["claims"][int(parts[1])] if parts[0] == "claims" and len(parts) > 1 else None
    return f"{key} ({claim['id']})" if isinstance(claim, dict) and isinstance(claim.get("id"), str) else key


def _cross_check(data: dict) -> list[Finding]:
    """What a schema cannot say: names that must be known, and limits in their order."""
    found, ids = [], set()
    for name, entry in data["environments"].items():
        if entry["measured_as"] and "transferred" in entry:
            found.append((f"environments.{name}.transferred", "must be left out where measured_as names environments"))
    for number, claim in enumerate(data["claims"]):
        key = f"claims.{number}"
        found += unknown(f"{key}.publication", claim["publication"], data["publications"], "publication")
        for at, side in enumerate(side for pair in claim.get("pairs", []) for side in pair):
            found += unknown(f"{key}.pairs.{at // 2}", side, data["environments"], "environment of the claims")
        low, high = (claim.get("tolerance", {}).get(limit) for limit in ("low", "high"))
        if "tolerance" in claim and low is None and high is None:
            found.append((f"{key}.tolerance", "has no limit; must have low, high or both"))
        if low is not None and high is not None and high < low:
            found.append((f"{key}.tolerance.high", f"is {high}; must be at least low, {low}"))
        if claim["id"] in ids:
            found.append((f"{key}.id", "is that of an earlier claim too; each needs its own"))
        ids.add(claim["id"])
    return found


def _unknown_names(data: dict) -> list[Finding]:
    """Workloads and metrics of claims that are tested, and that no workloads/*/workload.yaml declares."""
    groups, loads = data.get("workload_groups", {}), workload.known()
    found = [
        one
        for name, group in groups.items()
        for load in group
        for one in unknown(f"workload_groups.{name}", load, loads, "workload")
    ]
    for number, claim in enumerate(data["claims"]):
        if "untestable" not in claim:
            name, key = claim["workload"], f"claims.{number}"
            wrong = unknown(f"{key}.workload", name, [*loads, *groups], "workload")
            measured = [load for load in groups.get(name, [name]) if load in loads]
            metrics = {metric for load in measured for metric in workload.load(load)["metrics"]}
            for place, metric in enumerate(claim.get("metrics", []) if not wrong else []):
                wrong += unknown(f"{key}.metrics.{place}", metric, metrics, f"metric of {name}")
            found += wrong
    return found

"""The claims of the publications, as they stand in a file that people write: what is wrong with them."""

import json
from collections.abc import Iterator

from strata.experiment import workload
from strata.util import validation
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.validation import Finding, unknown

FILE = "published/claims.json"


def check(path: str = FILE) -> None:
    """Raise UserError with all that is wrong in the file of claims."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid JSON: {error}") from None
    groups = data.get("workload_groups", {}) if isinstance(data, dict) else {}
    known = [*workload.known(), *(groups if isinstance(groups, dict) else {})]
    names = {"folders": workload.known(), "loads": known}
    found = validation.findings(validation.schema("claims"), data, names=names) or [
        *_cross_check(data)
    ]
    validation.complain(path, [(_named(key, data), sentence) for key, sentence in found])


def _named(key: str, data: Fields) -> str:
    """A key with the claim's own name, by which it is found in the file."""
    parts = key.split(".")
    claim = data["claims"][int(parts[1])] if parts[0] == "claims" and len(parts) > 1 else None
    return f"{key} ({claim['id']})" if isinstance(claim, dict) and "id" in claim else key


def _cross_check(data: Fields) -> Iterator[Finding]:
    """What a schema cannot say.

    One claim has an id, limits are in order, and the workloads of tested claims declare their metrics.
    """
    first: dict[str, int] = {}
    for number, claim in enumerate(data["claims"]):
        if first.setdefault(claim["id"], number) != number:
            other = f"claims.{first[claim['id']]}"
            yield f"claims.{number}.id", f"is the id of {other} too; each claim needs its own"
        low, high = (claim.get("tolerance", {}).get(limit) for limit in ("low", "high"))
        if low is not None and high is not None and high < low:
            yield f"claims.{number}.tolerance.high", f"is {high}; must be at least low, {low}"
        loads = data.get("workload_groups", {}).get(claim["workload"], [claim["workload"]])
        for place, metric in enumerate(claim.get("metrics", []) if "pairs" in claim else []):
            declared = {name for load in loads for name in workload.load(load)["metrics"]}
            yield from unknown(
                f"claims.{number}.metrics.{place}",
                metric,
                declared,
                f"metric of {claim['workload']}",
            )

"""Check the file of the publications' claims, which people write."""

import json
from collections.abc import Iterator

from strata.experiment import workload
from strata.util import validation
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.validation import Finding, find_unknown

FILE = "published/claims.json"


def check_claims(path: str = FILE) -> None:
    """Check the file of the published claims, and raise UserError with every mistake in it."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid JSON: {error}") from None
    groups = data.get("workload_groups", {}) if isinstance(data, dict) else {}
    known = [*workload.list_workloads(), *(groups if isinstance(groups, dict) else {})]
    names = {"folders": workload.list_workloads(), "loads": known}
    mistakes = validation.find_faults(validation.load_schema("claims"), data, names=names)
    mistakes = mistakes or [*_cross_check(data)]
    validation.raise_findings(path, [(_add_id(key, data), sentence) for key, sentence in mistakes])


def _add_id(key: str, data: Fields) -> str:
    """Return a key of the file, followed by the ID of its claim, by which people find the claim."""
    section, *rest = key.split(".")
    claim = data["claims"][int(rest[0])] if section == "claims" and rest else None
    return f"{key} ({claim['id']})" if isinstance(claim, dict) and "id" in claim else key


def _cross_check(data: Fields) -> Iterator[Finding]:
    """Yield the mistakes that the schema of the claims cannot express.

    These are an ID of two claims, a tolerance whose high limit is below the low one, and a metric
    that the workload does not declare.
    """
    numbers: dict[str, int] = {}
    for number, claim in enumerate(data["claims"]):
        key = f"claims.{number}"
        first = numbers.setdefault(claim["id"], number)
        if first != number:
            yield f"{key}.id", f"is the id of claims.{first} too; each claim needs its own"
        low, high = (claim.get("tolerance", {}).get(limit) for limit in ("low", "high"))
        if low is not None and high is not None and high < low:
            yield f"{key}.tolerance.high", f"is {high}; must be at least low, {low}"
        if "pairs" not in claim or "metrics" not in claim:
            continue
        loads = data.get("workload_groups", {}).get(claim["workload"], [claim["workload"]])
        declared = {name for load in loads for name in workload.read_declaration(load)["metrics"]}
        for place, metric in enumerate(claim["metrics"]):
            kind = f"metric of {claim['workload']}"
            yield from find_unknown(f"{key}.metrics.{place}", metric, declared, kind)

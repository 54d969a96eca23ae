"""The claims of the publications, as they stand in a file that people write: what is wrong with them, and which are
of ratios that are measured here."""

import json
from collections.abc import Iterable, Iterator

from strata.base import checking
from strata.base.checking import Finding, unknown
from strata.base.errors import UserError
from strata.base.shapes import Fields
from strata.experiment import blocks, workload

FILE = "published/claims.json"
# The smallest difference that matters: a tolerance that ends at 1 ends there (analysis/claims.R).
MARGIN = 0.02

# Environment, workload, metric, factors.
Series = tuple[str, str, str, str]


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
    names = {"folders": workload.known(), "loads": [*workload.known(), *groups]}
    found = checking.findings(checking.schema("claims"), data, names=names) or [*_cross_check(data)]
    checking.complain(path, [(_named(key, data), sentence) for key, sentence in found])


def _named(key: str, data: Fields) -> str:
    """A key with the claim's own name, by which it is found in the file."""
    parts = key.split(".")
    claim = data["claims"][int(parts[1])] if parts[0] == "claims" and len(parts) > 1 else None
    return f"{key} ({claim['id']})" if isinstance(claim, dict) and "id" in claim else key


def _cross_check(data: Fields) -> Iterator[Finding]:
    """What a schema cannot say: limits in their order, and metrics that the workloads of tested claims declare."""
    for number, claim in enumerate(data["claims"]):
        low, high = (claim.get("tolerance", {}).get(limit) for limit in ("low", "high"))
        if low is not None and high is not None and high < low:
            yield f"claims.{number}.tolerance.high", f"is {high}; must be at least low, {low}"
        loads = data.get("workload_groups", {}).get(claim["workload"], [claim["workload"]])
        for place, metric in enumerate(claim.get("metrics", []) if "pairs" in claim else []):
            declared = {name for load in loads for name in workload.load(load)["metrics"]}
            yield from unknown(f"claims.{number}.metrics.{place}", metric, declared, f"metric of {claim['workload']}")


def ratios(measured: Iterable[Series], here: dict[str, int | None]) -> dict[str, tuple[float, float, list[Series]]]:
    """What claims narrower intervals can decide, by name: limits of the tolerance, and the series of whose ratios to
    native it is.

    measured: the series that there are.  here: `sockets` and `processors`, None where not known.  A claim that cannot
    be tested as a whole here, has a limit on one side alone, or does not compare with native is none of them.
    """
    with open(FILE, encoding="utf-8") as file:
        data = json.load(file)
    there, found = sorted(measured), {}
    for claim in data["claims"]:
        low, high = (claim.get("tolerance", {}).get(limit) for limit in ("low", "high"))
        needs = {**claim, **claim.get("conditions", {})}
        if "untestable" in claim or None in (low, high) or any((here[key] or 0) < needs.get(key, 0) for key in here):
            continue
        low, high = (1 / (1 - MARGIN) if low == 1 else low), (1 - MARGIN if high == 1 else high)
        about = data.get("workload_groups", {}).get(claim["workload"], [claim["workload"]])
        rows = [one for one in there if one[1] in about]
        parts = [_part([data["environments"][name] for name in pair], claim, rows) for pair in claim["pairs"]]
        if low < high and all(parts):
            found[claim["id"]] = (low, high, [one for part in parts for one in part])
    return found


def _part(pair: list[Fields], claim: Fields, rows: list[Series]) -> list[Series]:
    """The series of a pair of a claim; none where it is not measured or not compared with native."""
    own, others = (entry.get("factors", {}) for entry in pair)
    names = {one[0] for one in rows}
    name, other = (next((name for name in entry["measured_as"] if name in names), "") for entry in pair)
    if other != blocks.REFERENCE or own != others:
        return []
    wanted = {f"{key}={value}" for key, value in {**claim.get("factors", {}), **own}.items()}
    metrics = claim.get("metrics")
    return [
        one
        for one in rows
        if one[0] == name and (not metrics or one[2] in metrics) and wanted <= set(one[3].split(";"))
    ]

"""Read the claims of publications, and claims that users write in their own files."""

import difflib
import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from strata.experiment import workload
from strata.experiment.precision import SMALLEST_DIFFERENCE
from strata.util import validation, yaml_files
from strata.util.data_types import Fields, Plan
from strata.util.errors import UserError
from strata.util.placeholders import convert_to_list
from strata.util.validation import Finding, find_unknown_name

# The files of published claims: of the originals, and of 2020 to 2026.
FILES = ("published/claims.json", "published/today.json")
# The file that is tested unless the configuration's `claims` is another one.
FILE = FILES[0]
# The endings of users' own claim files.
_ENDINGS = (".yaml", ".yml", ".json")


def list_claim_files() -> list[str]:
    """Return the paths of the files of published claims that this project has.

    The first file is listed even if it is missing, so that reading it reports an error.
    """
    return [path for path in FILES if path == FILE or os.path.exists(path)]


def check_claims_file(path: str = FILE) -> None:
    """Raise UserError with every mistake in a file of published claims."""
    _check_claims(path, _read_claims_file(path))


def _read_claims_file(path: str) -> Any:
    """Return the content of a file of published claims, which is not checked yet.

    Raises UserError if it cannot be read, or is not JSON.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid JSON: {error}") from None


def _check_claims(path: str, content: Any) -> None:
    """Raise UserError with every mistake in the content of a file of published claims."""
    groups = content.get("workload_groups", {}) if isinstance(content, dict) else {}
    workloads = workload.list_workloads()
    workloads_and_groups = [*workloads, *(groups if isinstance(groups, dict) else {})]
    # The keyword `known` of the schema refers to names by these keys.
    names = {"folders": workloads, "loads": workloads_and_groups}
    mistakes = validation.find_schema_faults(validation.load_schema("claims"), content, names=names)
    mistakes = mistakes or [*_list_claim_mistakes(content)]
    validation.raise_for_findings(
        path, [(_append_claim_id(key, content), sentence) for key, sentence in mistakes]
    )


def _append_claim_id(key: str, content: Fields) -> str:
    """Return a key with the ID of its claim appended, by which people find the claim in its file.

    key: the steps of the key with dots between them, such as ``claims.3.workload``, which becomes
    ``claims.3.workload (ibm-pxz-kvm-22pct)``.  A key of another section, or of a claim without an
    ID, is returned as it is.
    content: the content of the file of claims, which may be invalid.
    """
    section, *steps = key.split(".")
    if section != "claims" or not steps:
        return key
    claim = content["claims"][int(steps[0])]
    if not isinstance(claim, dict) or "id" not in claim:
        return key
    return f"{key} ({claim['id']})"


def _list_claim_mistakes(content: Fields) -> Iterator[Finding]:
    """Yield (key, sentence) for each mistake that the schema of the claims cannot express.

    content: the content of the file of claims, which matches the schema.
    These are an ID that two claims have, a tolerance whose high limit is below the low one, and a
    metric that the workload does not declare.
    """
    # ID → the index of the first claim with it.
    first_indices: dict[str, int] = {}
    for index, claim in enumerate(content["claims"]):
        key = f"claims.{index}"
        first_index = first_indices.setdefault(claim["id"], index)
        if first_index != index:
            yield f"{key}.id", f"is the id of claims.{first_index} too; each claim needs its own"
        tolerance = claim.get("tolerance", {})
        low, high = tolerance.get("low"), tolerance.get("high")
        if low is not None and high is not None and high < low:
            yield f"{key}.tolerance.high", f"is {high}; must be at least low, {low}"
        if "pairs" not in claim or "metrics" not in claim:
            continue
        workloads = content.get("workload_groups", {}).get(claim["workload"], [claim["workload"]])
        yield from _list_unknown_metrics(
            f"{key}.metrics", claim["metrics"], claim["workload"], workloads
        )


def _list_unknown_metrics(
    key: str, metrics: Iterable[str], group: str, workloads: Iterable[str]
) -> Iterator[Finding]:
    """Yield a mistake for each metric that no workload of a group declares.

    key: the key of the list of metrics, for messages.
    metrics: the names of the metrics.
    group: the name of the group, or of its only workload, for messages.
    workloads: the names of the workloads of the group.
    """
    group_metrics: set[str] = set()
    for name in workloads:
        group_metrics.update(workload.read_declaration(name)["metrics"])
    for index, metric in enumerate(metrics):
        yield from find_unknown_name(f"{key}.{index}", metric, group_metrics, f"metric of {group}")


def read_claim(id_or_path: str, environments: Fields) -> Fields:
    """Return one claim in the form of published/claims.json.

    id_or_path: the ID of a published claim, or the path of a user's own file (docs/claims.md).  A
    string with a slash, or with the ending of such a file, is a path even if no file exists there.
    environments: the configuration's environments by name, which a user's own file may name.
    The result holds the whole content of the file, with only this claim in `claims`.
    Raises UserError with all mistakes; for an unknown ID it suggests similar ones.
    """
    contents = {path: _read_claims_file(path) for path in list_claim_files()}
    # The ID of a claim → its file.
    ids = {claim["id"]: path for path in contents for claim in contents[path]["claims"]}
    if os.path.isfile(id_or_path) or id_or_path.endswith(_ENDINGS) or "/" in id_or_path:
        own_claim = _read_own_claim(id_or_path, environments)
        if own_claim["claims"][0]["id"] in ids:
            raise UserError(f"{id_or_path}: has the name of a published claim: rename the file")
        return own_claim
    if id_or_path not in ids:
        similar_ids = [claim_id for claim_id in ids if id_or_path in claim_id]
        if not similar_ids:
            similar_ids = difflib.get_close_matches(id_or_path, ids)
        hint = f"{' and '.join(FILES)} list the IDs"
        if similar_ids:
            hint = f"did you mean {' or '.join(similar_ids[:5])}?"
        raise UserError(f"{id_or_path!r} is neither a published claim nor a file; {hint}")
    content = contents[ids[id_or_path]]
    _check_claims(ids[id_or_path], content)
    return {
        **content,
        "claims": [claim for claim in content["claims"] if claim["id"] == id_or_path],
    }


def _read_own_claim(path: str, environments: Fields) -> Fields:
    """Return the claim of a user's own file in the form of published/claims.json.

    path: the path of the file, in YAML or JSON.
    environments: the configuration's environments by name.
    Raises UserError with all mistakes.
    """
    content = yaml_files.read_yaml_mapping(path)
    # The keyword `known` of the schema refers to names by these keys.
    names = {
        "declared environments": environments,
        "declared workloads": workload.list_workloads(),
    }
    # The second check relies on the types that the schema ensures.
    schema = validation.load_schema("claim")
    validation.raise_for_findings(path, validation.find_schema_faults(schema, content, names=names))
    validation.raise_for_findings(path, [*_list_own_claim_mistakes(content)])
    return {
        # The format of schemas/claims.schema.json.
        "format": 2,
        "about": f"The claim of {path}.",
        "publications": {"own": {"label": content["source"], "title": content["source"]}},
        "environments": {
            environment: {
                "label": environments[environment]["label"],
                "measured_as": [environment],
                "accelerator": None,
            }
            for environment in content["environments"]
        },
        "workload_groups": {},
        "claims": [_convert_own_claim(path, content)],
    }


def _convert_own_claim(path: str, content: Fields) -> Fields:
    """Return a user's own claim as an entry of ``claims`` in published/claims.json.

    path: the path of the claim's file, whose name becomes the claim's ID; other characters than
    letters, digits, dots and hyphens become hyphens.
    content: the content of the file, which matches schemas/claim.schema.json.
    analysis/claims.R reads the same keys as for published claims.
    """
    name = re.sub("[^A-Za-z0-9.-]+", "-", os.path.splitext(os.path.basename(path))[0])
    value = content.get("value")
    tolerance = {"low": content.get("low"), "high": content.get("high")}
    # Without limits the tolerance is SMALLEST_DIFFERENCE on each side of the value, symmetric on a
    # logarithmic scale.
    if tolerance == {"low": None, "high": None} and value is not None:
        tolerance = {
            "low": value * (1 - SMALLEST_DIFFERENCE),
            "high": value / (1 - SMALLEST_DIFFERENCE),
        }
    # The last environment is the one that the others are compared with.
    *compared_names, reference = content["environments"]
    claim: Fields = {
        "id": name.strip("-.") or "claim",
        "publication": "own",
        "place": os.path.basename(path),
        "statement": content["statement"],
        "workload": content["workload"],
        "metrics": convert_to_list(content["metric"]),
        "pairs": [[environment, reference] for environment in compared_names],
        "tolerance": tolerance,
    }
    for key in ("factors", "sockets", "processors", "performance", "note"):
        if key in content:
            claim[key] = content[key]
    if value is not None:
        claim["published"] = {"value": value, "unit": "ratio"}
    return claim


def _list_own_claim_mistakes(content: Fields) -> Iterator[Finding]:
    """Yield (key, sentence) for each mistake of a user's claim that the schema cannot express.

    content: the content of the claim's file, which matches the schema.
    The mistakes are unknown metrics, and limits and a value that contradict one another.  Only the
    first contradiction is reported.
    """
    name, metric = content["workload"], content["metric"]
    # A single metric is not in a list, and so its key has no position.
    for key, sentence in _list_unknown_metrics("metric", convert_to_list(metric), name, [name]):
        yield (key if isinstance(metric, list) else "metric"), sentence
    low, high, value = (content.get(key) for key in ("low", "high", "value"))
    if low is not None and high is not None and high <= low:
        yield "high", f"is {high}; must be above low, {low}"
    elif value is not None and low is not None and value < low:
        yield "value", f"is {value}; must be at least low, {low}"
    elif value is not None and high is not None and value > high:
        yield "value", f"is {value}; must be at most high, {high}"


def choose_environments(published: Fields, plan: Plan, sockets: int) -> tuple[list[str], list[str]]:
    """Return ``(environments, reasons)``: which environments test a claim, and why others cannot.

    published: the claim, as from :func:`read_claim`.
    plan: the plan of the whole configuration.
    sockets: how many sockets this machine has.
    A pair of the claim counts only if an environment stands for each side.  If no environment is
    returned, no part of the claim can be tested here.  analysis/claims.R makes the same choice from
    results: change both together.
    """
    claim = published["claims"][0]
    machine_counts = {"sockets": sockets, "processors": plan["machine"]["cpus"]}
    for key, machine_count in machine_counts.items():
        needed_count = claim.get(key, 0)
        if needed_count > machine_count:
            return [], [f"it needs {needed_count} {key}, and this machine has {machine_count}"]
    if plan["scale"] == "tiny":
        return [], ["sizes of the scale tiny test no claim: set scale to standard"]
    # The keys of these mappings are sets that keep their order.
    environments: dict[str, None] = {}
    reasons: dict[str, None] = {}
    for pair in claim["pairs"]:
        stand_ins = []
        for name in pair:
            stand_in, reason = _find_stand_in_environment(published["environments"][name], plan)
            stand_ins.append(stand_in)
            if reason:
                reasons[reason] = None
        if all(stand_ins):
            environments |= dict.fromkeys(stand_ins)
    return [*environments], [*reasons]


def count_testable_claims(plan: Plan) -> dict[str, int]:
    """Return ``{workload: number}``: how many published claims a plan can test with each workload.

    Claims that need more than one socket are not counted, since the plan does not hold the number
    of sockets.
    """
    published = _read_claims_file(plan.get("claims", FILE))
    counts = dict.fromkeys(plan["workloads"], 0)
    for claim in published["claims"]:
        if "untestable" in claim:
            continue
        environments, _ = choose_environments({**published, "claims": [claim]}, plan, sockets=1)
        if not environments:
            continue
        workloads = published["workload_groups"].get(claim["workload"], [claim["workload"]])
        for name in counts:
            if name in workloads or workloads == ["*"]:
                counts[name] += 1
    return counts


def _find_stand_in_environment(published: Fields, plan: Plan) -> tuple[str, str]:
    """Return the environment of the plan that stands for a published one.

    published: an entry of ``environments`` in published/claims.json.
    Returns ``(name, "")``, or ``("", reason)`` if the plan has no such environment; the reason is a
    clause that says why the last candidate is not one.
    """
    label = published["label"]
    names = published["measured_as"] or published.get("transferred", {}).get("to", [])
    reason = f"{label}: no environment of Strata stands for it"
    for name in names:
        planned: Any = plan["environments"].get(name)
        if planned is None:
            reason = f"{label}: the configuration has no environment {name}"
        elif not planned["available"]:
            reason = f"{label}: {name} is not available here: {planned['reason']}"
        elif planned.get("emulated"):
            reason = f"{label}: {name} would be emulated here, and that tests no claim"
        elif "otherwise" in planned and not published.get("options"):
            reason = f"{label}: the daemon makes another environment of {name}"
        else:
            return name, ""
    return "", reason

"""A sealed plan: its digest, taken before the first cell, so that a paper can say whether it was kept."""

import glob
import json
from hashlib import sha256

from strata.util.clock import Watch
from strata.util.data_types import Fields, Plan, Source
from strata.util.errors import UserError
from strata.util.files import read_json, write_json

FILE = "results/sealed.json"


def digest(plan: Plan) -> str:
    """The SHA-256 of what a plan asks for; the source that made it is no part of it."""
    asked = {key: value for key, value in plan.items() if key not in ("source", "sealed")}
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def seal(plan: Plan, source: Source) -> Fields:
    """Write the seal of a plan, ``{sha256, at, revision, changed}``.

    Raises UserError where one is there, something was measured, or it is not known yet what accelerates machines.
    """
    if read_json(FILE) is not None:
        raise UserError(f"{FILE}: the plan is sealed already; remove it to seal another")
    if glob.glob("results/raw/*/*/*.log"):
        raise UserError(
            "results/raw: runs are there, and a plan is sealed before the first: measure in a fresh folder"
        )
    if any(entry.get("accelerator", "") is None for entry in plan["environments"].values()):
        raise UserError(
            "it is not known yet whether KVM runs a guest here: run `python3 -m strata image` first"
        )
    found = {"sha256": digest(plan), "at": Watch().now(), **source}
    write_json(FILE, found, lasting=True)
    return found


def told(plan: Plan) -> Fields | None:
    """``{…, kept}`` for results/plan.json, where the plan was sealed: whether this is the plan of then."""
    found = read_json(FILE)
    return None if found is None else {**found, "kept": found.get("sha256") == digest(plan)}

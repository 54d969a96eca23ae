"""The seal of a plan: its hash before the first run; a paper says by it if the plan was kept."""

import glob
import json
from hashlib import sha256

from strata.util.clock import Clock
from strata.util.data_types import Fields, Plan, Source
from strata.util.errors import UserError
from strata.util.files import read_json, write_json

FILE = "results/sealed.json"


def hash_plan(plan: Plan) -> str:
    """Return the SHA-256, in hexadecimal, of a plan without its keys `source` and `sealed`.

    The computation must stay: other keys or another form of the JSON would break existing seals.
    """
    content = {key: value for key, value in plan.items() if key not in ("source", "sealed")}
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def seal_plan(plan: Plan, source: Source) -> Fields:
    """Write the seal of a plan to disk, and return it: ``{sha256, at, revision, changed}``.

    source: ``{revision, changed}`` of :func:`strata.experiment.plan.read_source_revision`.
    Writes results/sealed.json, flushed to disk.  `at` is the time of the seal, by :class:`Clock`.
    Raises UserError if that file exists, if something was measured, or if the plan has a virtual
    machine and it is not known yet whether KVM runs one here.
    """
    if read_json(FILE) is not None:
        raise UserError(f"{FILE}: the plan is sealed already; remove it to seal another")
    if glob.glob("results/raw/*/*/*.log"):
        raise UserError(
            "results/raw: it has logs, and a plan is sealed before the first run: measure in a "
            "fresh folder"
        )
    # The accelerator is None until KVM was tried; environments without a virtual machine do not
    # have this key.
    if any(entry.get("accelerator", "") is None for entry in plan["environments"].values()):
        raise UserError(
            "it is not known yet whether KVM runs a guest here: run `python3 -m strata image` first"
        )
    seal = {"sha256": hash_plan(plan), "at": Clock().format_now(), **source}
    write_json(FILE, seal, lasting=True)
    return seal


def read_seal(plan: Plan) -> Fields | None:
    """Return ``{sha256, at, revision, changed, kept}`` of the seal; None if no plan was sealed.

    `kept` says whether the plan is still the sealed one.  The run's plan keeps the result as
    `sealed`, from which analysis/paper_data.R writes the paper's sentence.
    """
    seal = read_json(FILE)
    if seal is None:
        return None
    return {**seal, "kept": seal.get("sha256") == hash_plan(plan)}

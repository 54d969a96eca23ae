"""The record of a cell: made once of what is known of it, and numbered by those that are there.

Standard library only, for it is loaded by every cell; :mod:`strata.results.judge` says whether a record is good.
"""

import os

from strata.base.files import read_json, write_json

# In the order of schemas/record.schema.json.
FIELDS = (
    "format", "environment", "workload", "repetition", "block", "fingerprint", "position", "started", "ended",
    "seconds", "seed", "scale", "source", "parameters", "cannot", "commands", "servers", "checks", "image", "system",
    "observed", "quiet", "log",
)  # fmt: skip
# What only some workloads have, and what is there where a system cannot do one.
OPTIONAL = {"servers", "cannot"}
COUNTER = "results/raw/.measured"


def complete(known: dict) -> dict:
    """The record of a cell of which all is known.  Raises KeyError with what is not."""
    return {field: known[field] for field in FIELDS if field in known or field not in OPTIONAL}


def of_failed(known: dict, error: str) -> dict:
    """What is known of a cell that failed, in the same order, and why it did."""
    return {**{field: known[field] for field in FIELDS if field in known}, "error": error}


def next_number() -> int:
    """The running number of the next measurement in this results folder.

    It is counted in a file beside the records; where that is gone or damaged, the records themselves are asked.
    """
    counted = (read_json(COUNTER) or {}).get("cells")
    if isinstance(counted, int) and not isinstance(counted, bool) and counted >= 0:
        return counted + 1
    return max(_numbers(), default=0) + 1


def note_number(number: int) -> None:
    """Write down the number of the measurement that is put in place now."""
    write_json(COUNTER, {"cells": number})


def _numbers() -> list[int]:
    """The numbers in all records that are there."""
    found = []
    for folder, _, names in os.walk("results/raw"):
        for name in names:
            if name.endswith(".json"):
                position = (read_json(os.path.join(folder, name)) or {}).get("position")
                number = position.get("actual") if isinstance(position, dict) else None
                found += [number] if isinstance(number, int) else []
    return found

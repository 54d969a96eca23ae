"""The record of a cell: made once of what is known of it, and numbered by those that are there.

Standard library only, for it is loaded by every cell; :mod:`strata.results.judge` says whether a record is good.
"""

import os

from strata.base.files import read_json, write_json
from strata.host.node import of_record

# In the order of schemas/record.schema.json.
FIELDS = (
    "format", "environment", "workload", "repetition", "block", "fingerprint", "node", "position", "started",
    "ended", "seconds", "seed", "scale", "patience", "source", "parameters", "sizes", "cannot", "commands",
    "interleaved", "together", "program", "servers", "checks", "image", "system", "observed", "quiet", "log",
)  # fmt: skip
# What only some workloads have, and what is there where a system cannot do one or where limits of time were stretched.
OPTIONAL = {"servers", "sizes", "cannot", "patience", "interleaved", "together", "program"}
FORMAT = 3
COUNTER = "results/raw/.measured"


def complete(known: dict) -> dict:
    """The record of a cell of which all is known.  Raises KeyError with what is not."""
    return {field: known[field] for field in FIELDS if field in known or field not in OPTIONAL}


def of_failed(known: dict, error: str) -> dict:
    """What is known of a cell that failed, in the same order, and why it did."""
    return {**{field: known[field] for field in FIELDS if field in known}, "error": error}


def _counter(node: str | None) -> str:
    """The file that counts the measurements: of nodes, which measure at the same time, each has its own."""
    return COUNTER if node is None else f"{COUNTER}-{node}"


def next_number(node: str | None = None) -> int:
    """The running number of the next measurement in this results folder, where there are several nodes on this one.

    It is counted in a file beside the records; where that is gone or damaged, the records themselves are asked.
    """
    counted = (read_json(_counter(node)) or {}).get("cells")
    if isinstance(counted, int) and not isinstance(counted, bool) and counted >= 0:
        return counted + 1
    return max(_numbers(node), default=0) + 1


def take_number(node: str | None = None) -> int:
    """The next such number, which no other gets."""
    number = next_number(node)
    write_json(_counter(node), {"cells": number})
    return number


def _numbers(node: str | None) -> list[int]:
    """The numbers in all records that are there, or in those of a node."""
    found = []
    for kind in ("raw", "spool"):
        for folder, _, names in os.walk(f"results/{kind}"):
            records = [read_json(os.path.join(folder, name)) or {} for name in names if name.endswith(".json")]
            for record in records:
                position = record.get("position")
                number = position.get("actual") if isinstance(position, dict) else None
                if isinstance(number, int) and node in (None, of_record(record)):
                    found.append(number)
    return found

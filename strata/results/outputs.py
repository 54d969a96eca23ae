"""What is made of measured cells: the one list of it for rules, archive and rebuild."""

import os

from strata.experiment import blocks
from strata.util.constants import result
from strata.util.data_types import Plan

PAPERS = ("paper/report.pdf", "paper/report.html")
_OF_ALL = (
    "left_out",
    "summary",
    "comparisons",
    "ratios",
    "verdicts",
    "stalls",
    "choices",
    "emulated",
    "claims",
    "blocks",
    "runs",
)


def tables(experiment: Plan) -> list[str]:
    """All tables of a plan."""
    return [
        *(
            result(name, workload=load)
            for name in ("tidy", "laps")
            for load in sorted(experiment["workloads"])
        ),
        *map(result, _OF_ALL),
    ]


def decisions(experiment: Plan, folder: str = ".") -> list[str]:
    """The decisions on further blocks that were made."""
    order = blocks.Order(experiment, os.path.join(folder, "results"))
    found = [result("precision", round=round) for round in order.asked]
    return [name for name in found if os.path.exists(os.path.join(folder, name))]


def made(experiment: Plan) -> list[str]:
    """All that is made again from logs, records and decisions."""
    return [*tables(experiment), *PAPERS]

"""What is made of measured cells: the one list of it for rules, archive and rebuild."""

import os

from strata.base.contracts import result
from strata.experiment import sets

PAPERS = ("paper/report.pdf", "paper/report.html")
FIGURES = "results/figures"
_OF_ALL = ("comparisons", "claims", "footprint", "sets", "choices")


def tables(experiment: dict) -> list[str]:
    """All tables of a plan."""
    loads = sorted(experiment["workloads"])
    of_all = [*_OF_ALL, *(["nodes"] if experiment.get("spread") else [])]
    return [
        *(result(kind, workload=load) for kind in ("tidy", "summary") for load in loads),
        *map(result, ("left_out", *of_all)),
    ]


def decisions(experiment: dict, folder: str = ".") -> list[str]:
    """The decisions on further sets that were made."""
    order = sets.Order(experiment, os.path.join(folder, "results"))
    found = [result("precision", block=block) for block in order.asked]
    return [name for name in found if os.path.exists(os.path.join(folder, name))]


def figures(folder: str = ".") -> list[str]:
    """The figures that were drawn."""
    names = os.listdir(os.path.join(folder, FIGURES)) if os.path.isdir(os.path.join(folder, FIGURES)) else []
    return [f"{FIGURES}/{name}" for name in sorted(names)]


def made(experiment: dict, folder: str = ".") -> list[str]:
    """All that is made again from logs, records and decisions."""
    return [*tables(experiment), *figures(folder), *PAPERS]

"""List the files that are made from measured cells, for rules, archives and their rebuild."""

import os

from strata.experiment import blocks
from strata.util.constants import get_result_path
from strata.util.data_types import Plan

# The formats of the paper; commands name the first one to the reader.
PAPERS = ("paper/report.pdf", "paper/report.html")
# The tables that are made once for all workloads: keys of schemas/constants/results.json.  Apart
# from left_out (tidy.py), analysis/tables.R writes them.
_TABLES = (
    "left_out",
    "summary",
    "comparisons",
    "ratios",
    "verdicts",
    "costs",
    "stalls",
    "disturbances",
    "choices",
    "emulated",
    "claims",
    "blocks",
    "runs",
    "sessions",
)


def list_table_paths(experiment: Plan) -> list[str]:
    """Return the paths of all tables that are made for a plan, whether or not they exist.

    The paths are relative to the project, and sorted by workload.  The rule `tables` has them as
    outputs; archive/remake.py makes them again and compares them.
    """
    workloads = sorted(experiment["workloads"])
    return [
        *(get_result_path("tidy", workload=workload) for workload in workloads),
        *(get_result_path("laps", workload=workload) for workload in workloads),
        *map(get_result_path, _TABLES),
    ]


def list_decision_paths(experiment: Plan) -> list[str]:
    """Return the paths of the existing decisions on further blocks, in the order of rounds.

    Archives contain them: without them the order of the cells cannot be computed.
    """
    rounds = blocks.Order(experiment).decision_rounds
    decisions = [get_result_path("precision", round=round_number) for round_number in rounds]
    return [path for path in decisions if os.path.exists(path)]


def list_output_paths(experiment: Plan) -> list[str]:
    """Return the paths of all files made from logs, records and decisions: tables and papers."""
    return [*list_table_paths(experiment), *PAPERS]

"""Read the budgets of a gate: the largest cost of an environment, from a file."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from strata.archive.compare import MIN_SESSIONS, list_sessions
from strata.experiment import blocks, workload
from strata.util import validation, yaml_files
from strata.util.data_types import Fields
from strata.util.units import parse_quantity
from strata.util.validation import Finding


@dataclass(frozen=True)
class Budget:
    """A limit of the cost of one workload in one environment.

    metric: the name of the metric; None means the headline series of the workload.
    reference: the environment that it is compared with, in the same blocks; native if there is a
    baseline.
    at_most: the largest cost, as a share of the reference's performance, or, with a baseline, of
    the performance relative to native in the baseline.
    baseline: the path of a folder of sessions, as the file gives it; "" without one.
    sessions: the paths of the baseline's sessions; empty if there is none.
    """

    environment: str
    workload: str
    metric: str | None
    reference: str
    at_most: float
    baseline: str
    sessions: tuple[str, ...]

    @property
    def name(self) -> str:
        """The environment, the workload and, if the budget has one, the metric, with commas.

        Reports and history.jsonl contain this name, by which users' scripts find the budget.
        """
        return ", ".join(filter(None, (self.environment, self.workload, self.metric)))

    @property
    def limit(self) -> str:
        """The limit as a phrase, such as "at most 5 % more than in baseline"."""
        share = f"{100 * self.at_most:g} %"
        if self.baseline:
            return f"at most {share} more than in {self.baseline}"
        return f"at most {share} of the performance of {self.reference}"


def read_budgets(path: str, settings: Fields) -> tuple[float, list[Budget]]:
    """Return ``(seconds, budgets)``: the time for measuring and the budgets that a file declares.

    path: the path of the file (schemas/gate.schema.json; docs/how-to/gate-a-change.md).
    settings: the settings of the project, as :func:`strata.experiment.config.read_config` returns
    them.
    Raises UserError with one line for each mistake: its file, its key, and what is accepted.
    """
    content = yaml_files.read_yaml_mapping(path)
    schema = validation.load_schema("gate")
    # The keyword `known` of the schema refers to names by these keys.
    names = {key: settings[key] for key in ("environments", "workloads")}
    validation.raise_for_findings(path, validation.find_schema_faults(schema, content, names=names))
    validation.raise_for_findings(path, [*_list_budget_mistakes(path, content, settings)])
    budgets = [_parse_budget(path, budget) for budget in content["budgets"]]
    seconds = parse_quantity(content.get("time", "30min"))
    # parse_quantity returns None only for strings that the schema rejects.
    assert seconds is not None
    return seconds, budgets


def _parse_budget(path: str, declared: Fields) -> Budget:
    """Return the budget that an entry of a file of budgets declares.

    path: the path of the file, to whose folder baselines are relative.
    declared: the budget's mapping in the file, which :func:`read_budgets` has checked.
    """
    at_most = parse_quantity(declared["costs_at_most"])
    # The schema ensures it, as in read_budgets.
    assert at_most is not None
    baseline = declared.get("baseline", "")
    return Budget(
        environment=declared["environment"],
        workload=declared["workload"],
        metric=declared.get("metric"),
        reference=declared.get("reference", blocks.REFERENCE),
        at_most=at_most,
        baseline=baseline,
        sessions=tuple(list_sessions(_build_baseline_path(path, baseline))) if baseline else (),
    )


def _build_baseline_path(path: str, baseline: str) -> str:
    """Return the path of a baseline, relative to the working directory.

    path: the path of the file of budgets.
    baseline: the baseline's path, relative to the folder of this file.
    """
    return os.path.join(os.path.dirname(path), baseline)


def _list_budget_mistakes(path: str, content: Fields, settings: Fields) -> Iterator[Finding]:
    """Yield (key, sentence) for each mistake that the schema of the file cannot express.

    path: the path of the file of budgets, to whose folder baselines are relative.
    content: the content of the file, which the schema accepts.
    settings: the settings of the project.
    """
    if settings["scale"] == "tiny":
        yield "budgets", "tiny sizes are for tests and decide no budget; set scale: standard"
    for index, budget in enumerate(content["budgets"]):
        key = f"budgets.{index}"
        reference = budget.get("reference", blocks.REFERENCE)
        if reference not in settings["environments"]:
            problem = f"{reference} is not an environment of the configuration; add it"
            yield f"{key}.reference", problem
        if budget["environment"] == reference:
            yield f"{key}.environment", f"is {reference}, which cannot be compared with itself"
        if "metric" in budget:
            metrics = workload.read_declaration(budget["workload"])["metrics"]
            yield from validation.find_unknown_name(
                f"{key}.metric", budget["metric"], metrics, f"metric of {budget['workload']}"
            )
        if budget["workload"] in settings.get("leave_out", {}).get(budget["environment"], []):
            yield f"{key}.workload", f"{budget['workload']} is left out in {budget['environment']}"
        if "baseline" not in budget:
            continue
        if reference != blocks.REFERENCE:
            yield f"{key}.reference", "a baseline is compared by ratios to native; leave one out"
        folder = _build_baseline_path(path, budget["baseline"])
        if not os.path.exists(folder):
            yield f"{key}.baseline", f"there is no file or folder {folder}"
            continue
        session_count = len(list_sessions(folder))
        if session_count < MIN_SESSIONS:
            yield (
                f"{key}.baseline",
                f"{folder} holds {session_count} of the at least {MIN_SESSIONS} sessions that are "
                "needed, each measured after a restart; two versions that can run side by side "
                "need none: name the old one as `reference`",
            )

"""Which series tables tell of: those that a workload declares, or of a sweep the largest; `is_headline` of
analysis/read.R says the same of rows."""

from collections.abc import Iterable

from strata.base.shapes import Fields, PlannedWorkload

# Metric, factors.
Series = tuple[str, str]


def of_workload(entry: PlannedWorkload, series: Iterable[Series]) -> set[Series]:
    """Those of its series; all where none is declared or drawn.  entry: of the workload in the plan."""
    there = set(series)
    wanted = entry.get("headline") or [
        {
            "metric": figure.get("metrics") or figure.get("metric"),
            "where": {**figure.get("where", {}), **({figure["along"]: "largest"} if figure["kind"] == "sweep" else {})},
        }
        for figure in entry.get("figures") or []
        if figure["kind"] in ("runs", "sweep")
    ]
    return {one for want in wanted for one in _chosen(want, there)} or there


def _chosen(want: Fields, series: set[Series]) -> set[Series]:
    metrics = _listed(want.get("metric"))
    keep = {one for one in series if not metrics or one[0] in metrics}
    for name, wanted in want.get("where", {}).items():
        # A series such as ("rate", "test=SET;connections=4"); nothing where it has no such factor.
        told = {one: dict(part.split("=", 1) for part in one[1].split(";") if part).get(name, "") for one in keep}
        if wanted in ("largest", "smallest"):
            numbers = {one: float(text) for one, text in told.items() if text}
            extreme = max if wanted == "largest" else min
            keep = {one for one, number in numbers.items() if number == extreme(numbers.values())}
        else:
            among = ["" if value == "none" else value for value in _listed(wanted)]
            keep = {one for one, text in told.items() if text in among}
    return keep


def _listed(value: object) -> list[str]:
    return [str(one) for one in (value if isinstance(value, list) else [] if value is None else [value])]

"""Figures that a workload declares: what is wrong with them."""

import projects
import pytest

from strata.experiment import config, planning, workload
from strata.util.errors import UserError

METRICS = {
    "rate": {"label": "Rate", "unit": "1/s", "better": "higher"},
    "delay": {"label": "Delay", "unit": "ms", "better": "lower"},
}
SWEEP = {
    "name": "rate",
    "kind": "sweep",
    "metric": "rate",
    "along": "clients",
    "where": {"test": "none"},
    "loss": True,
}
AGAINST = {
    "name": "trade-off",
    "kind": "against",
    "metric": "delay",
    "against": "rate",
    "along": "clients",
}
RUNS = {"name": "runs", "kind": "runs", "metrics": ["delay"], "title": "Delays"}
CDF = {
    "name": "cdf",
    "kind": "cdf",
    "metric": "delay",
    "along": "percentile",
    "where": {"job": ["a", 2]},
}
FIGURES = [SWEEP, AGAINST, RUNS, CDF]
HEADLINE = [{"metric": "rate", "where": {"clients": "largest"}}, {"metric": "delay"}]


def declared(**more):
    return {**projects.NOOP, "metrics": METRICS, **more}


def test_figures_of_every_kind_and_a_question_reach_the_plan_as_they_are(project):
    question = "Is it fast?"
    project(workloads={"noop": declared(figures=FIGURES, headline=HEADLINE, question=question)})
    entry = planning.build_plan(
        config.read_config(), {"cpus": 2, "mask": None, "memory_bytes": 2**30, "cache_bytes": None}
    )["workloads"]["noop"]
    assert entry["figures"] == FIGURES
    assert entry["headline"] == HEADLINE
    assert entry["question"] == question


MISTAKES = [
    ({"figures": [{"name": "a", "kind": "sweep", "metric": "rate"}]}, "figures.0.along"),
    ({"figures": [{**SWEEP, "metric": "rat"}]}, "figures.0.metric"),
    ({"figures": [{**AGAINST, "against": "speed"}]}, "figures.0.against"),
    ({"figures": [{**RUNS, "metrics": ["delay", "dely"]}]}, "figures.0.metrics.1"),
    ({"headline": [{"where": {"test": 1}}]}, "headline.0.metric"),
    ({"headline": [{"metric": "speed"}]}, "headline.0.metric"),
]


@pytest.mark.parametrize(("change", "key"), MISTAKES)
def test_a_mistake_in_a_figure_is_refused_by_its_key(project, change, key):
    project(workloads={"noop": declared(**change)})
    with pytest.raises(UserError, match=rf"workloads/noop/workload\.yaml: {key}: "):
        workload.read_declaration("noop")

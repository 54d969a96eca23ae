"""Figures that a workload declares: what is wrong with them, and which files they become."""

import projects
import pytest

from strata.archive import guide
from strata.base.errors import UserError
from strata.experiment import config, figures, plan, workload

METRICS = {
    "rate": {"label": "Rate", "unit": "1/s", "better": "higher"},
    "delay": {"label": "Delay", "unit": "ms", "better": "lower"},
}
SWEEP = {"name": "rate", "kind": "sweep", "metric": "rate", "along": "clients", "where": {"test": "none"}, "loss": True}
AGAINST = {"name": "trade-off", "kind": "against", "metric": "delay", "against": "rate", "along": "clients"}
RUNS = {"name": "runs", "kind": "runs", "metrics": ["delay"], "title": "Delays"}
CDF = {"name": "cdf", "kind": "cdf", "metric": "delay", "along": "percentile", "where": {"job": ["a", 2]}}
FIGURES = [SWEEP, AGAINST, RUNS, CDF]
HEADLINE = [{"metric": "rate", "where": {"clients": "largest"}}, {"metric": "delay"}]


def declared(**more):
    return {**projects.NOOP, "metrics": METRICS, **more}


def test_figures_of_every_kind_reach_the_plan_as_they_are(project):
    project(workloads={"noop": declared(figures=FIGURES, headline=HEADLINE)})
    entry = config.experiment(config.read(), {"cpus": 2, "memory_bytes": 2**30, "cache_bytes": None})["workloads"][
        "noop"
    ]
    assert entry["figures"] == FIGURES
    assert entry["headline"] == HEADLINE


def test_what_is_not_declared_is_no_key_and_one_figure(project):
    project()
    entry = config.experiment(config.read(), {"cpus": 2, "memory_bytes": 2**30, "cache_bytes": None})["workloads"][
        "noop"
    ]
    assert "figures" not in entry
    assert "headline" not in entry
    assert figures.of_workload("noop", entry) == {"noop": {"kind": "runs"}}


MISTAKES = [
    ({"figures": []}, "figures"),
    ({"figures": [{"kind": "sweep"}]}, "figures.0.name"),
    ({"figures": [{**SWEEP, "kind": "swep"}]}, "figures.0.kind"),
    ({"figures": [{**SWEEP, "name": "A b"}]}, "figures.0.name"),
    ({"figures": [SWEEP, {**RUNS, "name": "rate"}]}, "figures.1.name"),
    ({"figures": [{"name": "a", "kind": "sweep", "metric": "rate"}]}, "figures.0.along"),
    ({"figures": [{**RUNS, "loss": True}]}, "figures.0.loss"),
    ({"figures": [{**SWEEP, "metric": "rat"}]}, "figures.0.metric"),
    ({"figures": [{**AGAINST, "against": "speed"}]}, "figures.0.against"),
    ({"figures": [{**RUNS, "metrics": ["delay", "dely"]}]}, "figures.0.metrics.1"),
    ({"figures": [{**SWEEP, "where": {"test": None}}]}, "figures.0.where.test"),
    ({"figures": [{**SWEEP, "where": {}}]}, "figures.0.where"),
    ({"figures": [{**SWEEP, "colour": "red"}]}, "figures.0.colour"),
    ({"headline": [{"where": {"test": 1}}]}, "headline.0.metric"),
    ({"headline": [{"metric": "speed"}]}, "headline.0.metric"),
]


@pytest.mark.parametrize(("change", "key"), MISTAKES)
def test_a_mistake_in_a_figure_is_refused_by_its_key(project, change, key):
    project(workloads={"noop": declared(**change)})
    with pytest.raises(UserError, match=rf"workloads/noop/workload\.yaml: {key}: "):
        workload.load("noop")


def test_two_figures_are_never_one_file(project):
    loads = {"noop": declared(figures=FIGURES), "noop-rate": declared(), "ratios": declared()}
    project(projects.on_host(workloads=dict.fromkeys(loads)), workloads=loads)
    with pytest.raises(UserError) as caught:
        config.read()
    for name in ("noop-rate", "ratios"):
        assert f"config.yaml: workloads.{name}: " in str(caught.value)


def test_each_figure_is_of_one_workload():
    workloads = {"noop": {"figures": FIGURES}, "other": {}}
    stems = ["noop-rate", "noop-trade-off", "noop-runs", "noop-cdf"]
    assert figures.of_plan({"workloads": workloads}) == {**dict.fromkeys(stems, "noop"), "other": "other"}


def test_a_change_of_what_the_analysis_alone_reads_measures_nothing_again(project):
    project(workloads={"noop": declared(figures=FIGURES, headline=HEADLINE, storage=False, question="storage")})
    machine = {"cpus": 2, "memory_bytes": 2**30, "cache_bytes": None}
    before = config.experiment(config.read(), machine)
    after = config.experiment(config.read(), machine)
    for key in ("figures", "headline", "storage", "question"):
        del after["workloads"]["noop"][key]
    assert plan.fingerprint(before, "bare", "noop") == plan.fingerprint(after, "bare", "noop")


def test_a_claim_is_shown_by_the_first_figure_of_its_metric():
    entry = {"figures": [SWEEP, AGAINST, RUNS]}
    assert figures.showing("noop", entry, "rate") == "noop-rate"
    assert figures.showing("noop", entry, "delay") == "noop-trade-off"
    assert figures.showing("noop", {"figures": [SWEEP]}, "delay") == "noop-rate"
    assert figures.showing("noop", {}, "delay") == "noop"
    assert figures.showing("noop", {"figures": [SWEEP, {"name": "all", "kind": "runs"}]}, "delay") == "noop-all"


class Staged:
    """As much of an archive in the making as its guide asks for."""

    def __init__(self, folder, workloads):
        self.folder = folder
        self.experiment = {"workloads": workloads}

    def path(self, name):
        return str(self.folder / name)


def test_the_guide_names_the_figures_that_there_are(tmp_path):
    stage = Staged(tmp_path, {"noop": {"title": "No operation", "figures": [SWEEP, RUNS]}})
    for name in ("summary/noop.csv", "figures/noop-rate.pdf"):
        (tmp_path / "results" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "results" / name).touch()
    assert "| No operation | `results/summary/noop.csv` | `results/figures/noop-rate.pdf` |" in guide._results_section(
        stage
    )
    columns = ["id", "publication", "place", "statement", "verdict", "reason", "published_for", "workload"]
    row = {**dict.fromkeys(columns, "x"), "measured_workload": "noop", "metric": "rate", "logs": "a;b"}
    (tmp_path / "results/claims.csv").write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n")
    found = guide.claims_map(stage)
    assert found[0]["figure"] == "results/figures/noop-rate.pdf"
    both = guide._claims_section([{**found[0], "published_for": "", "statement": "own"}, found[0]])
    assert both.startswith("1 of 1 published claims were tested")
    assert "1 transferred claims" in both
    assert both.index("| own ") < both.index("| x ")

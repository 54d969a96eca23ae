"""What Snakemake shows: titles and captions of its report, the forecast of a dry run, and its summary made short."""

import logging
from types import SimpleNamespace

import docutils.core
import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from strata.base.errors import UserError
from strata.experiment import config
from strata.snakemake import insides, news, shown, summary

PLAN = {
    "environments": {
        "native": {"available": True, "reason": None},
        "vm-tuned": {"available": True, "reason": None},
        "vm": {"available": False, "reason": "there is no QEMU"},
    },
    "workloads": {
        "swift": {"title": "Swift *and* `odd_`", "metrics": {}},
        "wide": {
            "title": "Wide",
            "metrics": {"rate": {"label": "Rate"}, "cpu": {"label": "CPU time"}},
            "figures": [
                {"name": "curve", "kind": "sweep", "metric": "rate", "along": "queue_depth", "title": "Read-only"},
                {"name": "cost", "kind": "against", "metric": "rate", "against": "cpu", "along": "threads"},
            ],
        },
    },
}


def test_every_figure_has_a_caption_and_a_section():
    captions = shown.captions(PLAN)
    assert set(captions) == {"answers", "order", "drift", "ratios", "claims", "footprint"} | {
        "swift",
        "wide-curve",
        "wide-cost",
    }
    assert captions["wide-curve"] == "Wide, Read-only. Rate against queue depth, with 95 % intervals."
    assert captions["wide-cost"] == "Wide. Rate against CPU time; the line joins its points along threads."
    figure = shown.Shown(PLAN).figure("drawing")
    of = {stem: SimpleNamespace(figure=stem) for stem in captions}
    assert [figure["subcategory"](of[stem]) for stem in ("drift", "wide-curve")] == ["All workloads", "Wide"]
    assert figure["labels"](of["wide-curve"]) == {"figure": "Read-only", "as": "drawing"}
    assert figure["labels"](of["wide-cost"]) == {"figure": "wide-cost", "as": "drawing"}
    assert figure["labels"](of["drift"]) == {"figure": "Drift", "as": "drawing"}


def test_a_title_is_no_markup():
    parts = docutils.core.publish_parts(shown.titles(PLAN)["swift"], writer="html")
    assert "Swift *and* `odd_`" in parts["body"]


def test_the_real_workloads_have_captions(checkout):
    settings = config.read({})
    settings = config.read({"workloads": {"fio": None, "redis": None, "mysql": None}})
    plan = {"workloads": {name: config.workload.load(name) for name in settings["workloads"]}}
    assert all(text and "{" not in text for text in shown.captions(plan).values())


def test_a_forecast_counts_cells_by_environment_in_the_order_of_the_page():
    cells = [("vm-tuned", "wide", 1), ("native", "swift", 1), ("native", "swift", 2), ("native", "wide", 1)]
    open_ended = {**PLAN, "precision": {"target": 0.02}}
    assert shown.forecast(open_ended, cells, 7).splitlines() == [
        "Cells to measure: 4",
        "  native       3  (swift 2, wide 1)",
        "  vm-tuned     1  (wide 1)",
        "  and more sets, whose number is decided once these were measured",
        "Jobs that make tables, figures and papers of them: 7",
        "Not available here: vm: there is no QEMU",
    ]
    disturbed = shown.forecast({**PLAN, "precision": {"target": None}}, cells, 7).splitlines()
    assert disturbed[3] == "  and again the sets in which something else uses the machine"
    for plan, options in ((PLAN, {}), (open_ended, {"partial": True})):
        assert shown.forecast(plan, cells, 7, **options).splitlines()[3].startswith("Jobs")
    assert shown.forecast(open_ended, [], 1).splitlines()[:2] == [
        "Cells to measure: 0",
        "Jobs that make tables, figures and papers of them: 1",
    ]


def job(*files, **wildcards):
    return SimpleNamespace(output=files, wildcards=SimpleNamespace(**wildcards))


def test_cells_are_told_by_their_files_whatever_their_rule_is_called():
    cell = job("results/raw/native/swift/2.log", environment="native", workload="swift", repetition="2")
    table = job("results/sets.csv")
    assert insides.split([cell, table, job()]) == ([("native", "swift", 2)], [table])


def test_the_forecast_follows_the_first_counts_of_a_dry_run_alone():
    said = []
    logger = logging.getLogger("test-news")
    logger.setLevel(logging.INFO)
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger.addHandler(handler)
    for forecast, told in ((lambda: "Cells to measure: 1", ["Cells to measure: 1"]), (lambda: None, [])):
        said.clear()
        there = news.News(logger, forecast)
        logger.addFilter(there)
        for _ in range(2):
            logger.info("Job stats:", extra={"event": LogEvent.RUN_INFO})
        logger.info("Select jobs to execute...")
        logger.removeFilter(there)
        assert said == [*told, "Job stats:", "Job stats:"]


HEAD = "output_file\tdate\trule\tlog-file(s)\tstatus\tplan\n"


def test_a_summary_is_a_line_for_the_cells_of_an_environment_and_for_every_table_and_figure():
    rows = [
        "results/raw/native/swift/1.log\tSun\tcell\tx\tok\tno update",
        "results/raw/native/swift/1.json\tSun\tcell\tx\tok\tno update",
        "results/raw/native/swift/2.log\t-\tcell\tx\tmissing\tupdate pending",
        "results/made/sets.json\tSun\tsets\tx\tok\tupdate pending",
        "results/figures/drift.pdf\tSun\tshared_figure\tx\tok\tupdate pending",
        "results/figures/drift.svg\tSun\tshared_figure\tx\tok\tupdate pending",
        "results/sets.csv\tMon\tsets\tx\tparams changed\tupdate pending",
    ]
    assert summary.told([HEAD, *(f"{row}\n" for row in rows)]).splitlines() == [
        "native · swift             1 ok, 1 to be made (missing)",
        "results/figures/drift.pdf  to be made                    Sun",
        "results/sets.csv           to be made (params changed)   Mon",
    ]
    assert summary.told([HEAD]) == ""


@pytest.mark.parametrize("lines", [[], ["other\n"], [HEAD, "a\tb\n"]])
def test_what_is_no_summary_is_refused(lines):
    with pytest.raises(UserError, match="no table of `snakemake --summary`"):
        summary.told(lines)

"""Which sets come next: widths and costs decide, up to target and budget."""

import json
import math
import os

import measured
import pytest

from strata.base.errors import UserError
from strata.base.files import read_json, write_json
from strata.commands import main
from strata.experiment import claims, plan, precision
from strata.experiment.precision import FIRST_STAGE, Claim, State
from strata.results import headline


# R's qt(0.975, freedom).
@pytest.mark.parametrize(
    ("freedom", "wanted"),
    [(1, 12.7062047362), (2, 4.3026527297), (5, 2.5705818356), (19, 2.0930240544), (40, 2.0210753903)],
)
def test_student_is_that_of_r(freedom, wanted):
    assert precision.student(freedom) == pytest.approx(wanted, abs=1e-9)


def test_widths_need_two_runs_and_those_that_do_not_vary_have_none():
    assert precision.half_width([0.1]) == math.inf
    assert precision.half_width([0.1, 0.1]) == 0


def test_the_width_is_that_which_the_paper_prints():
    # R: error <- error_of_mean(d); sinh(qt(0.975, error$df) * error$se)
    alternating, drifting = [0.02, -0.01, 0.03, 0.0, 0.01, -0.02], [0.01, 0.02, 0.03, 0.05, 0.06, 0.08, 0.09, 0.1]
    assert precision.half_width(alternating) == pytest.approx(0.02635461, rel=0.005)
    assert precision.half_width(drifting) == pytest.approx(0.15292882, rel=0.005)


def further(target=0.02, budget=None, left=math.inf, **states):
    return precision.further({load: State(*state) for load, state in states.items()}, target, budget, left)


def test_the_first_stage_is_the_same_whatever_the_widths():
    given = further(narrow=(3, 0, 300, 0.001, 5), wide=(3, 1, 300, 0.9, 5))
    assert given == {"narrow": FIRST_STAGE - 3, "wide": FIRST_STAGE - 4}


def test_the_widest_for_its_cost_comes_first_and_the_budget_ends_it():
    states = {"near": (20, 0, 300, 0.03, 10), "far": (20, 0, 300, 0.2, 10), "dear": (20, 0, 300, 0.2, 1000)}
    assert further(budget=3600, left=50, **states) == {"near": 0, "far": 5, "dear": 0}


def test_within_the_target_nothing_is_added_nor_to_what_could_not_be_measured():
    assert further(done=(20, 0, 300, 0.019, 5), none=(0, 0, 300, math.inf, 5)) == {"done": 0, "none": 0}


def test_a_round_doubles_the_sets_at_most():
    assert further(wide=(20, 0, 300, 0.5, 1)) == {"wide": 20}
    assert further(wide=(20, 0, 25, 0.5, 1)) == {"wide": 5}


def claim(name="one", counted=20, again=0, most=300, width=0.02, target=0.018, seconds=1):
    return Claim(name, counted, again, most, width, target, ["docker", "native"], seconds)


def test_the_width_that_decides_a_claim_is_that_of_its_tolerance():
    # R's uniroot over pnorm.
    assert precision.deciding(0.98, 1.02) == pytest.approx(0.013395028058, rel=1e-6)
    assert precision.deciding(0.95, 1.05) == pytest.approx(0.033487570145, rel=1e-6)


def test_the_claim_that_takes_least_comes_first_and_none_that_no_budget_pays():
    asked = {
        "a": [claim("dear", target=0.01), claim("cheap")],
        "b": [claim("far", target=0.0005)],
        "c": [claim("done", target=0.03)],
    }
    [(load, (sets, chosen))] = precision.for_claims(asked, 1000).items()
    # 20 (0.02 / 0.9 / 0.018)² is 30.5 sets, of which there are 20.
    assert (load, sets, chosen.name) == ("a", 11, "cheap")
    assert precision.for_claims({"a": [claim()]}, 10) == {}
    assert precision.for_claims({"a": [claim(most=30)]}, math.inf) == {}
    # What is left pays for one of two alone.
    assert list(precision.for_claims({"a": [claim(seconds=2)], "b": [claim()]}, 30)) == ["b"]


def test_claims_are_of_ratios_to_native_that_are_measured():
    def ratios(*names, **here):
        series = [(name, "linpack", "gflops", "order=600") for name in names]
        return claims.ratios(series, {"sockets": 1, "processors": 2, **here})

    found = ratios("native", "docker", "vm")
    assert found["ibm-linpack-docker-identical"] == (0.98, 1.02, [("docker", "linpack", "gflops", "order=600")])
    assert "ibm-linpack-docker-identical" not in ratios("docker", "vm")
    two_sockets = {one["id"] for one in json.load(open(claims.FILE))["claims"] if one.get("sockets") == 2}
    assert not two_sockets & set(found)


def test_the_headline_is_what_a_workload_declares_or_of_a_sweep_the_largest():
    series = [("rate", f"size={size}") for size in (9, 100, 20)] + [("time", "size=9")]
    assert headline.of_workload({}, series) == set(series)
    declared = {"headline": [{"metric": "rate", "where": {"size": "largest"}}, {"metric": "time"}]}
    assert headline.of_workload(declared, series) == {("rate", "size=100"), ("time", "size=9")}
    drawn = {"figures": [{"kind": "sweep", "metric": "rate", "along": "size"}, {"kind": "cdf", "metric": "time"}]}
    assert headline.of_workload(drawn, series) == {("rate", "size=100")}
    assert headline.of_workload({"headline": [{"metric": "rate", "where": {"size": 9}}]}, series) == {
        ("rate", "size=9")
    }


# A project whose cells take 8 s, with 2 s between them.  A set of its two environments takes 20 s.


@pytest.fixture
def made(tmp_path, monkeypatch):
    def make(slower=None, noise=0.0, environments=None, retries=False, **repetitions):
        asked = {"min": 3, "max": 300, "target": "2%", **repetitions}
        page = measured.page(repetitions=asked, quiet={"action": "retry" if retries else "flag"})
        if environments:
            page["environments"] = environments(page["environments"])
        monkeypatch.setattr(precision, "FIRST_STAGE", 20)
        return measured.project(tmp_path / "project", monkeypatch, page, slower, noise=noise)

    return make


def decided(block):
    """What is decided after a block."""
    assert main(["decide", str(block)]) == 0
    with open(f"results/precision/{block}.json") as file:
        return json.load(file)


def each(decision, key):
    return {load: state[key] for load, state in decision["workloads"].items()}


def flag(cell):
    """Mark a cell as one beside which something else used the machine."""
    with open(f"results/raw/{cell}.json") as file:
        record = json.load(file)
    record["quiet"]["flags"] = [{"what": "load", "when": "before", "value": 2, "threshold": 1}]
    with open(f"results/raw/{cell}.json", "w") as file:
        json.dump(record, file)


def measure_on(folder, **more):
    """Measure what the decisions ask for."""
    measured.measure(folder, plan.read(), **more)


@pytest.mark.parametrize("slower", [1.0, 1.5])
def test_a_difference_never_decides(made, slower):
    folder = made(slower={"docker": slower}, noise=0.05)
    decided(3)
    measure_on(folder, slower={"docker": slower}, noise=0.05)
    found = decided(20)
    assert not found["enough"]
    assert each(found, "more") == {"stream": 20, "linpack": 20}


def test_a_disturbed_set_is_measured_again_and_counts_in_no_width(made, capsys):
    folder = made(retries=True)
    measure_on(folder, slower={"docker": 1.02}, noise=0)
    calm = each(decided(3), "half_width")
    os.unlink("results/precision/3.json")
    flag("docker/stream/2")
    assert main(["plan"]) == 0
    why = "block 2 again: the load average over one minute was 2.00"
    assert f"to be measured again: stream, {why}\n" in capsys.readouterr().out
    found = decided(3)
    assert why in found["reason"]
    assert each(found, "again") == {"stream": [2], "linpack": []}
    assert each(found, "more") == {"stream": 17, "linpack": 17}
    assert each(found, "half_width") == pytest.approx(calm)
    measure_on(folder, noise=0)
    flag("docker/stream/2")
    # Set 4 stands for set 2, and set 22 for that: the third time it is left as it is.
    flag("native/stream/4")
    flag("native/stream/7")
    assert each(decided(21), "again") == {"stream": [4, 7], "linpack": []}
    measure_on(folder, noise=0)
    for number in (2, 4, 7, 22):
        flag(f"native/stream/{number}")
    found = decided(23)
    assert found["enough"]
    assert each(found, "again") == {"stream": [], "linpack": []}


def test_a_claim_gets_sets_of_what_it_compares_when_all_is_within_the_target(made):
    def environments(all_of_them):
        return {**all_of_them, "other": {**all_of_them["docker"], "label": "Other"}}

    folder = made(environments=environments, noise=0.03, target="50%", claims=True)
    decided(3)
    measure_on(folder, noise=0.03)
    found = decided(20)
    assert not found["enough"]
    linpack = found["workloads"]["linpack"]
    assert linpack["claim"] == "ibm-linpack-docker-identical"
    assert linpack["environments"] == ["docker", "native"]
    # About (2 % / (0.9 · 1.3 %))² times as many, and twice as many at most.
    more = linpack["more"]
    assert 5 < more <= 20
    measure_on(folder, noise=0.03)
    # A claim is not paid for with runs that break a size rule.
    path = "results/raw/docker/linpack/1.json"
    record = read_json(path)
    write_json(path, {**record, "sizes": [{"rule": "large", "source": "docs", "holds": False}]})
    assert decided(20)["enough"]
    write_json(path, record)
    decided(20)
    assert each(decided(20 + more), "sets") == {"stream": 20, "linpack": 20 + more}


def test_after_another_block_nothing_is_decided(made):
    made()
    with pytest.raises(UserError, match="no decision is due after block 2; one is due after 3"):
        main(["decide", "2"])

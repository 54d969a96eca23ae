"""Which blocks come next: widths and costs decide it, up to the target and the budget."""

import contextlib
import json
import math
import os
from collections import Counter
from pathlib import Path

import measured
import projects
import pytest

from strata.commands import main
from strata.experiment import plan, precision
from strata.experiment.precision import FIRST_STAGE, State
from strata.util.errors import UserError
from strata.util.files import read_json, write_json

# (states, arguments, how many further blocks each workload gets)
GIVEN = [
    # All get the first stage, whatever their widths.
    (
        {"narrow": (3, 0, 300, 0.001, 5), "wide": (3, 1, 300, 0.9, 5)},
        {},
        {"narrow": FIRST_STAGE - 3, "wide": FIRST_STAGE - 4},
    ),
    # If the budget ends it, the ratios that take least time come first.
    (
        {"cheap": (3, 0, 300, 0.1, 10), "dear": (3, 0, 300, 0.1, 100)},
        {"budget": 900, "left": 250},
        {"cheap": 7, "dear": 1},
    ),
    (
        {"one": (3, 0, 300, 0.1, 10, 1), "many": (3, 0, 300, 0.1, 20, 12)},
        {"budget": 900, "left": 150},
        {"one": 1, "many": 7},
    ),
    # Then the widest for its cost comes first, until the budget is spent.
    (
        {
            "near": (20, 0, 300, 0.03, 10),
            "far": (20, 0, 300, 0.2, 10),
            "dear": (20, 0, 300, 0.2, 1000),
        },
        {"budget": 3600, "left": 50},
        {"near": 0, "far": 5, "dear": 0},
    ),
    # So it does while dearer workloads still lack blocks of the first stage.
    (
        {
            "wide": (10, 0, 300, 0.3, 4, 3),
            "narrow": (10, 0, 300, 0.01, 4, 3),
            "dear": (3, 0, 300, 0.3, 200, 4),
        },
        {"budget": 5000, "left": 240},
        {"wide": 10, "narrow": 0, "dear": 1},
    ),
    # A decision spends half of the rest of a budget.
    ({"far": (20, 0, 300, 0.2, 10)}, {"budget": 300, "left": 200}, {"far": 10}),
    # Workloads within the target get none, nor do those that could not be measured.
    (
        {"done": (20, 0, 300, 0.019, 5), "none": (0, 0, 300, math.inf, 5)},
        {},
        {"done": 0, "none": 0},
    ),
    # A decision at most doubles the blocks.
    ({"wide": (20, 0, 300, 0.5, 1)}, {}, {"wide": 20}),
    ({"wide": (20, 0, 5, 0.5, 1)}, {}, {"wide": 5}),
]


@pytest.mark.parametrize(("states", "more", "wanted"), GIVEN)
def test_blocks_go_where_widths_shrink_most_for_their_cost(states, more, wanted):
    arguments = {"target": 0.02, "budget": None, "left": math.inf, **more}
    states = {load: State(*state) for load, state in states.items()}
    assert precision.further(states, **arguments) == wanted


def claim(load="a", name="one", counted=20, again=0, room=300, width=0.02, target=0.018, seconds=1):
    """Return the state of a claim, with its workload."""
    return load, State(counted, again, room, width, seconds, 1, target, ["docker", "native"], name)


def test_the_half_width_that_decides_a_claim_follows_from_its_tolerance():
    # Reference values: R's uniroot over pnorm.
    assert precision.deciding(0.98, 1.02) == pytest.approx(0.013395028058, rel=1e-6)
    assert precision.deciding(0.95, 1.05) == pytest.approx(0.033487570145, rel=1e-6)
    # The ratio is the middle of a tolerance without 1; else it is 1, and the nearer end decides.
    assert precision.deciding(0.76, 0.84) == pytest.approx(precision.deciding(0.95, 1.05))
    assert precision.deciding(0.95, 1.5) == precision.deciding(0.95, 1.05)


def test_the_cheapest_claim_comes_first_and_one_beyond_the_budget_gets_no_block():
    claims = [
        claim("a", "dear", target=0.01),
        claim("a", "cheap"),
        claim("b", "far", target=0.0005),
        claim("c", "done", target=0.03),
    ]
    [(load, (number, chosen))] = precision.for_claims(claims, 1000).items()
    # 20 (0.02 / 0.9 / 0.018)² is 30.5 blocks, of which there are 20.
    assert (load, number, chosen.claim) == ("a", 11, "cheap")
    assert precision.for_claims([claim()], 10) == {}
    # With three blocks the width is just beyond the target, and a fourth would bring it within.
    assert precision.for_claims([claim(counted=3, target=0.0199)], 10)["a"][0] == 1
    assert precision.for_claims([claim(room=10)], math.inf) == {}
    # The rest of the budget pays for one of the two.
    assert list(precision.for_claims([claim(seconds=2), claim("b")], 30)) == ["b"]


# A project whose cells take 8 s.  A block of its two environments takes 16 s.


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return the function that makes a measured project with these widths and repetitions."""

    def make(slower=None, noise=0.0, environments=None, retries=False, **repetitions):
        rule = {"min": 3, "max": 300, "target": "2%", **repetitions}
        config = measured.page(repetitions=rule, quiet={"action": "retry" if retries else "flag"})
        if environments:
            config["environments"] = environments(config["environments"])
        return measured.project(tmp_path / "project", monkeypatch, config, slower, noise=noise)

    return make


def decide(round):
    """Return the decision after a round, made anew."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"results/precision/{round}.json")
    assert main(["decide", str(round)]) == 0
    with open(f"results/precision/{round}.json") as file:
        return json.load(file)


def by_workload(decision, key):
    """Return a key of a decision for each workload."""
    return {load: state[key] for load, state in decision["workloads"].items()}


def flag(cell):
    """Mark a cell as disturbed by interference."""
    flags = [{"what": "load", "when": "before", "value": 2, "threshold": 1}]
    path = Path(f"results/raw/{cell}.json")
    measured.edit(path, lambda record: record["quiet"].update(flags=flags))


def measure_on(folder, **more):
    """Measure the blocks that the decisions added."""
    measured.measure(folder, plan.read(), **more)


@pytest.mark.parametrize("slower", [1.0, 1.5])
def test_a_difference_never_decides(made, slower):
    folder = made(slower={"docker": slower}, noise=0.05)
    decide(3)
    measure_on(folder, slower={"docker": slower}, noise=0.05)
    decision = decide(FIRST_STAGE)
    assert not decision["enough"]
    assert by_workload(decision, "more") == {"stream": FIRST_STAGE, "linpack": FIRST_STAGE}


def test_a_disturbed_block_is_replaced_and_counts_in_no_width(made):
    folder = made(retries=True)
    measure_on(folder, slower={"docker": 1.02}, noise=0)
    calm = by_workload(decide(3), "half_width")
    os.unlink("results/precision/3.json")
    flag("docker/stream/2")
    decision = decide(3)
    assert "block 2 again: load was 2, and 1 is the most" in decision["reason"]
    assert by_workload(decision, "again") == {"stream": [2], "linpack": []}
    assert by_workload(decision, "more") == {"stream": FIRST_STAGE - 3, "linpack": FIRST_STAGE - 3}
    # The plan has the first blocks, the replacement and the further ones.
    planned = len(open("results/plan.csv").readlines()) - 1
    assert planned == 2 * (2 * FIRST_STAGE + 1)
    assert by_workload(decision, "half_width") == pytest.approx(calm)
    measure_on(folder, noise=0)
    flag("docker/stream/2")
    # Block 4 replaces block 2 and is disturbed itself; a third try is left as it is.
    flag("native/stream/4")
    flag("native/stream/7")
    assert by_workload(decide(FIRST_STAGE + 1), "again") == {"stream": [4, 7], "linpack": []}
    measure_on(folder, noise=0)
    for number in (2, 4, 7, FIRST_STAGE + 2):
        flag(f"native/stream/{number}")
    decision = decide(FIRST_STAGE + 3)
    assert decision["enough"]
    assert by_workload(decision, "again") == {"stream": [], "linpack": []}


@pytest.mark.parametrize(("budget", "again"), [("111s", []), ("112s", [2])])
def test_a_disturbed_block_is_replaced_if_the_budget_pays_for_it(made, budget, again):
    # Six blocks took 96 s.
    made(retries=True, budget=budget)
    flag("docker/stream/2")
    assert by_workload(decide(3), "again") == {"stream": again, "linpack": []}


def test_a_replaced_block_does_not_count_towards_the_largest_number(made):
    folder = made(retries=True, max=4, noise=0.1)
    flag("docker/stream/2")
    decide(3)
    measure_on(folder, noise=0.1)
    # stream has five blocks, of which four count; linpack has four.
    assert by_workload(decide(5), "more") == {"stream": 0, "linpack": 0}
    counts = Counter(row["workload"] for row in projects.table("results/plan.csv"))
    assert counts == {"stream": 2 * 5, "linpack": 2 * 4}


def test_without_an_undisturbed_block_no_interval_is_known(made):
    folder = made(retries=True)
    for again in ([1, 2, 3], [4, 5, 6]):
        for number in again:
            flag(f"docker/stream/{number}")
            flag(f"native/linpack/{number}")
        decision = decide(again[-1])
        assert by_workload(decision, "again") == {"stream": again, "linpack": again}
        assert by_workload(decision, "half_width") == {"stream": None, "linpack": None}
        write_json(
            f"results/precision/{again[-1]}.json", {**decision, "workloads": none_more(decision)}
        )
        measure_on(folder)


def none_more(decision):
    """Return the workloads of a decision without further blocks."""
    return {load: {**state, "more": 0} for load, state in decision["workloads"].items()}


def test_further_blocks_have_native_and_the_environments_with_wide_intervals(made):
    def environments(all_of_them):
        return {**all_of_them, "other": {**all_of_them["docker"], "label": "Other"}}

    folder = made(environments=environments)
    assert set(by_workload(decide(3), "environments").values()) == {None}
    noise = {"noise": 0.003, "noisier": {"other": 0.1}}
    measure_on(folder, **noise)
    decision = decide(FIRST_STAGE)
    assert by_workload(decision, "environments") == {
        "stream": ["native", "other"],
        "linpack": ["native", "other"],
    }
    assert "more of native, other" in decision["reason"]
    measure_on(folder, **noise)
    counts = Counter(row["environment"] for row in projects.table("results/plan.csv"))
    assert counts["native"] == counts["other"] > counts["docker"] == 2 * FIRST_STAGE


def test_a_claim_gets_blocks_of_its_environments_once_all_ratios_are_within_the_target(made):
    def environments(all_of_them):
        return {**all_of_them, "other": {**all_of_them["docker"], "label": "Other"}}

    folder = made(environments=environments, noise=0.03, target="50%", claims=True)
    decide(3)
    measure_on(folder, noise=0.03)
    decision = decide(FIRST_STAGE)
    assert not decision["enough"]
    linpack = decision["workloads"]["linpack"]
    assert linpack["claim"] == "ibm-linpack-docker-identical"
    assert linpack["environments"] == ["docker", "native"]
    # Needed are about (2 % / (0.9 · 1.3 %))² times as many; a decision at most doubles them.
    more = linpack["more"]
    assert 0 < more <= FIRST_STAGE
    measure_on(folder, noise=0.03)
    # A claim gets no blocks if a run breaks a size rule.
    path = "results/raw/docker/linpack/1.json"
    record = read_json(path)
    write_json(path, {**record, "sizes": [{"rule": "large", "source": "docs", "holds": False}]})
    assert decide(FIRST_STAGE)["enough"]
    write_json(path, record)
    decide(FIRST_STAGE)
    assert by_workload(decide(FIRST_STAGE + more), "blocks") == {
        "stream": FIRST_STAGE,
        "linpack": FIRST_STAGE + more,
    }


def test_a_decision_after_another_round_is_refused(made):
    made()
    with pytest.raises(UserError, match=r"after round 2;.* 3"):
        main(["decide", "2"])

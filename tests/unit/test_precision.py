"""Which blocks come next: widths and costs decide, up to target and budget."""

import contextlib
import json
import math
import os
from collections import Counter
from datetime import datetime
from pathlib import Path

import measured
import projects
import pytest
import yaml

from strata.command_line import main
from strata.experiment import blocks, plan, precision
from strata.experiment.precision import FIRST_STAGE, Precision
from strata.results import pairs
from strata.util.clock import format_utc
from strata.util.errors import UserError
from strata.util.files import read_json, write_json

# (states, other arguments, how many blocks each workload gets)
GIVEN = [
    # The first stage is the same whatever the widths.
    (
        {"narrow": (3, 0, 300, 0.001, 5), "wide": (3, 1, 300, 0.9, 5)},
        {},
        {"narrow": FIRST_STAGE - 3, "wide": FIRST_STAGE - 4},
    ),
    # Where the budget ends it, the ratio that takes the least time comes first.
    (
        {"cheap": (3, 0, 300, 0.1, 10), "dear": (3, 0, 300, 0.1, 100)},
        {"budget": 900, "seconds_left": 250},
        {"cheap": 7, "dear": 1},
    ),
    (
        {"one": (3, 0, 300, 0.1, 10, 1), "many": (3, 0, 300, 0.1, 20, 12)},
        {"budget": 900, "seconds_left": 150},
        {"one": 1, "many": 7},
    ),
    # The widest for its cost comes first, and the budget ends it.
    (
        {
            "near": (20, 0, 300, 0.03, 10),
            "far": (20, 0, 300, 0.2, 10),
            "dear": (20, 0, 300, 0.2, 1000),
        },
        {"budget": 3600, "seconds_left": 50},
        {"near": 0, "far": 5, "dear": 0},
    ),
    # So it does where others still lack blocks of the first stage that are dearer.
    (
        {
            "wide": (10, 0, 300, 0.3, 4, 3),
            "narrow": (10, 0, 300, 0.01, 4, 3),
            "dear": (3, 0, 300, 0.3, 200, 4),
        },
        {"budget": 5000, "seconds_left": 240},
        {"wide": 10, "narrow": 0, "dear": 1},
    ),
    # At most half of what is left of a budget at a time.
    ({"far": (20, 0, 300, 0.2, 10)}, {"budget": 300, "seconds_left": 200}, {"far": 10}),
    # None for a workload within the target, and none for one that could not be measured.
    (
        {"done": (20, 0, 300, 0.019, 5), "none": (0, 0, 300, math.inf, 5)},
        {},
        {"done": 0, "none": 0},
    ),
    # At most as many as there are.
    ({"wide": (20, 0, 300, 0.5, 1)}, {}, {"wide": 20}),
    ({"wide": (20, 0, 5, 0.5, 1)}, {}, {"wide": 5}),
]


@pytest.mark.parametrize(("states", "more", "given"), GIVEN)
def test_the_workload_farthest_from_its_target_for_its_cost_gets_blocks(states, more, given):
    arguments = {"target": 0.02, "budget": None, "seconds_left": math.inf, **more}
    states = {load: Precision(*state) for load, state in states.items()}
    assert precision.allot_blocks(states, **arguments) == given


@pytest.mark.parametrize(
    ("lacking", "seconds", "left", "given"),
    [
        # All blocks that a verdict takes, or none: first those with most verdicts for their time.
        ({"many": 4, "few": 4}, (10, 9), 75, {"many": 4, "few": 0}),
        ({"many": 4, "few": 4}, (50, 9), 79, {"many": 0, "few": 4}),
        ({"many": 4, "few": 2}, (50, 9), math.inf, {"many": 4, "few": 2}),
        # A workload without a verdict comes last.
        ({"none": 4, "few": 4}, (20, 20), 80, {"none": 0, "few": 4}),
        ({}, (20, 20), 80, {}),
    ],
)
def test_a_workload_gets_all_blocks_that_a_verdict_takes_or_none(lacking, seconds, left, given):
    answers = {"many": 5, "few": 1, "none": 0}
    seconds = {"many": seconds[0], "none": seconds[0], "few": seconds[1]}
    assert precision.allot_blocks_to_verdicts(lacking, seconds, answers, left) == given


def claim(load="a", name="one", counted=20, again=0, room=300, width=0.02, target=0.018, seconds=1):
    return load, Precision(
        counted, again, room, width, seconds, 1, target, ["docker", "native"], name
    )


def test_the_width_that_decides_a_claim_is_that_of_its_tolerance():
    # R's uniroot over pnorm.
    assert precision.compute_deciding_half_width(0.98, 1.02) == pytest.approx(
        0.013395028058, rel=1e-6
    )
    assert precision.compute_deciding_half_width(0.95, 1.05) == pytest.approx(
        0.033487570145, rel=1e-6
    )
    # Measured from the middle of a tolerance without 1; from 1 to the nearer end of another.
    assert precision.compute_deciding_half_width(0.76, 0.84) == pytest.approx(
        precision.compute_deciding_half_width(0.95, 1.05)
    )
    assert precision.compute_deciding_half_width(
        0.95, 1.5
    ) == precision.compute_deciding_half_width(0.95, 1.05)
    # Of one limit: 1.959964 / (1.644854 + 0.841621) times the distance from the published value.
    for limits in ((1.0, None), (None, 1.0)):
        for value, distance in ((1.2, 0.2), (0.9, 0.1), (1.0, 0.02), (None, 0.02)):
            width = precision.compute_deciding_half_width(*limits, value)
            assert width == pytest.approx(0.788250 * distance, rel=1e-5)


def test_the_claim_that_takes_least_time_comes_first_and_one_beyond_the_budget_gets_none():
    claims = [
        claim("a", "dear", target=0.01),
        claim("a", "cheap"),
        claim("b", "far", target=0.0005),
        claim("c", "done", target=0.03),
    ]
    [(load, (number, chosen))] = precision.allot_blocks_to_claims(claims, 1000).items()
    # 20 (0.02 / 0.9 / 0.018)² is 30.5 blocks, of which there are 20.
    assert (load, number, chosen.claim) == ("a", 11, "cheap")
    assert precision.allot_blocks_to_claims([claim()], 10) == {}
    # A fourth block is foreseen to reach the width, and a verdict takes five.
    assert precision.allot_blocks_to_claims([claim(counted=3, target=0.0199)], 10)["a"][0] == 2
    assert precision.allot_blocks_to_claims([claim(counted=3, target=0.03)], 10)["a"][0] == 2
    assert precision.allot_blocks_to_claims([claim(room=10)], math.inf) == {}
    # The rest of the budget pays for one of the two.
    assert list(precision.allot_blocks_to_claims([claim(seconds=2), claim("b")], 30)) == ["b"]


# A project whose cells take 8 s.  A block of its two environments takes 16 s.


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Make a project with open repetitions, whose first blocks were measured."""

    def make_project(
        slower=None, noise=0.0, environments=None, retries=False, fixed=None, **repetitions
    ):
        rule = {} if "margin" in repetitions else {"target": "2%"}
        repetitions = {"min": 3, "max": 300, **rule, **repetitions}
        settings = fixed or {key: value for key, value in repetitions.items() if value is not None}
        page = measured.page(
            repetitions=settings, interference={"action": "retry" if retries else "flag"}
        )
        if environments:
            page["environments"] = environments(page["environments"])
        return measured.project(tmp_path / "project", monkeypatch, page, slower, noise=noise)

    return make_project


def decide(round):
    """Decide after a round, anew where it was decided before; return the decision."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"results/precision/{round}.json")
    assert main(["decide", str(round)]) == 0
    with open(f"results/precision/{round}.json") as file:
        return json.load(file)


def by_workload(decision, key):
    """Return workload → the value of a key in a decision."""
    return {load: state[key] for load, state in decision["workloads"].items()}


def flag(cell):
    """Mark a cell as disturbed by another use of the machine."""
    flags = [{"what": "load", "when": "before", "value": 2, "threshold": 1}]
    measured.edit(
        Path(f"results/raw/{cell}.json"), lambda record: record["interference"].update(flags=flags)
    )


def measure_on(folder, **more):
    """Measure the cells that the decisions added."""
    measured.measure(folder, plan.read_plan(), **more)


@pytest.mark.parametrize("disturbed", [False, True])
def test_a_short_budget_completes_the_verdicts_of_one_workload_and_leaves_the_other(
    make, disturbed
):
    make(min=1, budget="130s", retries=True)
    # Both blocks took 32 s, and a disturbed one is measured again for 16 s.
    if disturbed:
        flag("docker/linpack/1")
    decision = decide(1)
    # The four kernels of STREAM are four ratios.
    assert by_workload(decision, "more") == {"linpack": 0, "stream": 4}
    assert by_workload(decision, "again") == {"linpack": [1] if disturbed else [], "stream": []}


@pytest.mark.parametrize("slower", [1.0, 1.5])
def test_a_difference_never_decides(make, slower):
    folder = make(slower={"docker": slower}, noise=0.05)
    decide(3)
    measure_on(folder, slower={"docker": slower}, noise=0.05)
    decision = decide(FIRST_STAGE)
    assert not decision["enough"]
    assert by_workload(decision, "more") == {"stream": FIRST_STAGE, "linpack": FIRST_STAGE}


# With a margin: how much slower Docker is, the noise, the blocks that follow, and Docker's
# verdict then.
@pytest.mark.parametrize(
    ("slower", "noise", "more", "verdict"),
    [
        (1.5, 0.005, 0, "different"),
        (1.0, 0.05, 3, "undecided"),
        pytest.param(1.0, 0.001, 0, "equivalent", marks=pytest.mark.long),
        # No number of blocks gives an interval of values that do not vary.
        pytest.param(1.0, 0.0, 0, "undecided", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("budget", [{"budget": "1h"}, {}])
def test_with_a_margin_blocks_follow_until_each_difference_is_decided(
    make, slower, noise, more, verdict, budget
):
    folder = make(slower={"docker": slower}, noise=noise, margin="2%", **budget)
    assert by_workload(decide(3), "more") == {"stream": 2, "linpack": 2}
    measure_on(folder, slower={"docker": slower}, noise=noise)
    decision = decide(5)
    assert by_workload(decision, "more") == {"stream": more, "linpack": more}
    assert decision["enough"] == (more == 0)
    for state in decision["workloads"].values():
        assert {row["verdict"] for row in state["verdicts"]} == {verdict}


# Blocks so far, seconds of one, seconds left, blocks until the next look.
@pytest.mark.parametrize(
    ("measured_blocks", "seconds", "left", "more"),
    [(3, 10, 1000, 2), (5, 10, 1000, 3), (6, 10, 1000, 2), (5, 10, 25, 2), (5, 10, 9, 0),
     (3, 10, -6, 0), (precision.LOOKS[-1], 1, 1000, 0), (5, 0.0, 1000, 0),
     (5, 10, math.inf, 3), (5, 0.0, math.inf, 0)],
)  # fmt: skip
def test_looks_are_planned_and_the_budget_ends_them(measured_blocks, seconds, left, more):
    assert precision.count_blocks_to_next_test(measured_blocks, seconds, left) == more


def test_a_disturbed_block_is_measured_again_and_counts_for_no_width(make):
    folder = make(retries=True)
    measure_on(folder, slower={"docker": 1.02}, noise=0)
    calm = by_workload(decide(3), "half_width")
    os.unlink("results/precision/3.json")
    flag("docker/stream/2")
    decision = decide(3)
    assert "block 2 again: load was 2, and 1 is the most" in decision["reason"]
    assert by_workload(decision, "again") == {"stream": [2], "linpack": []}
    assert by_workload(decision, "more") == {"stream": FIRST_STAGE - 3, "linpack": FIRST_STAGE - 3}
    # The plan holds all blocks up to the decision, with the repeated one.
    planned = len(open("results/plan.csv").readlines()) - 1
    assert planned == 2 * (2 * FIRST_STAGE + 1)
    assert by_workload(decision, "half_width") == pytest.approx(calm)
    measure_on(folder, noise=0)
    flag("docker/stream/2")
    # Block 4 repeats block 2, and a further one repeats that: there is no third time.
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
def test_a_disturbed_block_is_measured_again_if_the_budget_pays_for_it(make, budget, again):
    # Six blocks took 96 s.
    make(retries=True, budget=budget)
    flag("docker/stream/2")
    assert by_workload(decide(3), "again") == {"stream": again, "linpack": []}


def test_a_repeated_block_does_not_count_towards_the_largest_number(make):
    folder = make(retries=True, max=4, noise=0.1)
    flag("docker/stream/2")
    decide(3)
    measure_on(folder, noise=0.1)
    # Of stream's five blocks four count; linpack has four.
    assert by_workload(decide(5), "more") == {"stream": 0, "linpack": 0}
    counts = Counter(row["workload"] for row in projects.table("results/plan.csv"))
    assert counts == {"stream": 2 * 5, "linpack": 2 * 4}


def test_no_interval_is_known_if_every_block_was_disturbed(make):
    folder = make(retries=True)
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


def later(*cells):
    """Return a function that lets cells seem to be measured an hour later than they were."""

    def change(record):
        for key in ("started", "ended"):
            moment = datetime.fromisoformat(record[key]).timestamp() + 3600
            record[key] = format_utc(moment)

    return lambda: [measured.edit(Path(f"results/raw/{cell}.json"), change) for cell in cells]


def on_nodes(name):
    """Return a function that lets docker's cells seem to be measured on another node."""

    def change(record):
        record["node"] = {"name": name, "boot": None}

    return lambda: [
        measured.edit(Path(f"results/raw/docker/stream/{number}.json"), change)
        for number in (1, 2, 3)
    ]


def unable():
    """Let docker seem unable to do the workload."""
    edit = {"cannot": {"reason": "no such call", "commands": []}}
    measured.edit(Path("results/raw/docker/stream/2.json"), lambda record: record.update(edit))
    later("docker/stream/2")()


# What happens to cells → the blocks of stream that another one replaces.
APART = {
    "nothing": (lambda: None, []),
    "a cell": (later("docker/stream/2"), [2]),
    "native": (later("native/stream/1", "native/stream/3"), [1, 3]),
    "all of a block": (later("docker/stream/2", "native/stream/2"), []),
    "a missing cell": (lambda: os.unlink("results/raw/docker/stream/3.log"), [3]),
    "other nodes": (on_nodes("other"), []),
    "an inability": (unable, []),
    "a disturbance as well": (lambda: [later("docker/stream/2")(), flag("docker/stream/2")], [2]),
}


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("change", APART)
def test_a_block_is_torn_by_the_times_of_its_runs_alone(make, fixed, change):
    make(**({} if not fixed else {"fixed": 3}))
    happens, torn = APART[change]
    happens()
    experiment = plan.read_plan()
    found = pairs.find_torn_blocks(experiment, blocks.Order(experiment))
    assert [*found] == [("stream", number) for number in torn]
    # Neither does an order without blocks have pairs, nor an experiment without native.
    sequential = blocks.Order({**experiment, "order": "sequential"})
    assert pairs.find_torn_blocks(experiment, sequential) == {}
    others = {key: entry for key, entry in experiment["environments"].items() if key != "native"}
    experiment["environments"] = others
    assert pairs.find_torn_blocks(experiment, blocks.Order(experiment)) == {}


@pytest.mark.parametrize("repetitions", [{"fixed": 3}, {"budget": "96s", "max": 3}])
def test_a_torn_block_is_replaced_twice_at_most_whatever_the_budget_is(make, repetitions):
    folder = make(**repetitions)
    for round, number in ((3, 2), (4, 4), (5, 5)):
        later(f"docker/stream/{number}")()
        expected = [number] if number < 5 else []
        decision = decide(round)
        assert by_workload(decision, "torn") == {"stream": expected, "linpack": []}
        assert by_workload(decision, "more") == {"stream": 0, "linpack": 0}
        assert decision["enough"] != bool(expected)
        kept = {path: path.read_text() for path in Path("results/raw").glob("*/*/*.json")}
        measure_on(folder, noise=0)
        for path, text in kept.items():
            path.write_text(text)
    assert {row["repetition"] for row in projects.table("results/plan.csv")} == set("12345")


def none_more(decision):
    """Return the workloads of a decision with no more blocks."""
    return {load: {**state, "more": 0} for load, state in decision["workloads"].items()}


def test_further_blocks_have_native_and_the_environments_that_are_still_wide(make):
    def environments(all_of_them):
        return {**all_of_them, "other": {**all_of_them["docker"], "label": "Other"}}

    folder = make(environments=environments)
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


def test_a_claim_gets_blocks_of_its_environments_once_all_is_within_the_target(make):
    def environments(all_of_them):
        return {**all_of_them, "other": {**all_of_them["docker"], "label": "Other"}}

    folder = make(environments=environments, noise=0.03, target="50%", claims=True)
    decide(3)
    measure_on(folder, noise=0.03)
    decision = decide(FIRST_STAGE)
    assert not decision["enough"]
    linpack = decision["workloads"]["linpack"]
    assert linpack["claim"] == "ibm-linpack-docker-identical"
    assert linpack["environments"] == ["docker", "native"]
    # About (2 % / (0.9 · 1.3 %))² times as many, but no more than twice as many.
    more = linpack["more"]
    assert 0 < more <= FIRST_STAGE
    measure_on(folder, noise=0.03)
    # Runs that break a size rule decide no claim.
    path = "results/raw/docker/linpack/1.json"
    record = read_json(path)
    write_json(path, {**record, "sizes": [{"rule": "large", "source": "docs", "holds": False}]})
    assert by_workload(decide(FIRST_STAGE), "more")["linpack"] == 0
    write_json(path, record)
    decision = decide(FIRST_STAGE)
    # A claim of which a part cannot be tested gets no block.
    assert by_workload(decision, "more")["stream"] == 0
    measure_on(folder, noise=0.03)
    last = int(projects.table("results/plan.csv")[-1]["round"])
    assert by_workload(decide(last), "blocks")["linpack"] == FIRST_STAGE + more


def test_a_claim_of_two_containers_with_one_limit_gets_blocks_to_the_width_that_is_given(make):
    def environments(all_of_them):
        hostnet = {**all_of_them["docker"], "label": "Host network"}
        return {"docker": all_of_them["docker"], "docker-hostnet": hostnet}

    folder = make(environments=environments, noise=0.01, target=None, claims="0.2%")
    path = folder / "published/claims.json"

    def keep_one(published):
        entry = next(one for one in published["claims"] if one["id"] == "ibm-mysql-aufs-overhead")
        entry |= {"pairs": [["docker", "docker_nethost"]], "workload": "linpack"}
        entry |= {"metrics": ["gflops"], "tolerance": {"high": 1}}
        del entry["factors"]
        published["claims"] = [entry]

    measured.edit(path, keep_one)
    decide(3)
    measure_on(folder, noise=0.01)
    decision = decide(FIRST_STAGE)
    assert by_workload(decision, "claim") == {"stream": None, "linpack": "ibm-mysql-aufs-overhead"}
    assert "target ± 0.2 %" in decision["reason"]


def test_a_decision_that_is_not_due_is_refused_with_the_round_that_is(make):
    make()
    with pytest.raises(UserError, match=r"after round 2;.* 3"):
        main(["decide", "2"])


def set_budget(folder, budget):
    """Write another budget into a project's configuration and plan."""
    page = yaml.safe_load((folder / "config.yaml").read_text())
    page["repetitions"]["budget"] = budget
    (folder / "config.yaml").write_text(yaml.safe_dump(page))
    plan.write_plan({**measured.planned(), "source": plan.read_plan()["source"]})


def test_a_smaller_budget_leaves_no_measured_block_out(make, capsys):
    # Three blocks of both workloads take 96 s.
    folder = make(noise=0.05, budget="600s")
    decide(3)
    measure_on(folder)
    measured_logs = {*Path("results/raw").rglob("*.log")}
    assert len(measured_logs) > 12
    set_budget(folder, "100s")
    capsys.readouterr()
    assert main(["plan"]) == 0
    printed = capsys.readouterr().out
    assert f"0 of {len(measured_logs)} cells are due" in printed
    assert "the decision on further ones is due" in printed
    order = blocks.Order(plan.read_plan())
    assert decide(order.last)["enough"]
    assert main(["plan"]) == 0
    printed = capsys.readouterr().out
    assert f"0 of {len(measured_logs)} cells are due at" in printed
    assert "decision" not in printed
    assert main(["tidy"]) == 0
    rows = [
        row for name in ("stream", "linpack") for row in projects.table(f"results/tidy/{name}.csv")
    ]
    assert {Path(row["log"]) for row in rows} == measured_logs


def test_a_plan_names_measured_logs_that_it_leaves_out(make, capsys):
    folder = make(min=5)
    config_path = folder / "config.yaml"
    config_path.write_text(config_path.read_text().replace("min: 5", "min: 3"))
    assert main(["plan"]) == 0
    assert "8 logs in results/raw are not in this plan" in capsys.readouterr().out

from collections import Counter
from itertools import groupby

import pytest

from strata.experiment import plan


def experiment(seed=1, repetitions=4, absent=(), order="blocks"):
    names = ["native", "docker", "vm", "other"]
    return {
        "seed": seed,
        "order": order,
        "scale": "smoke",
        "repetitions": repetitions,
        "image": {"recipe": "r"},
        "environments": {name: {"available": name not in absent, "layers": [{name: {}}]} for name in names},
        "workloads": {
            name: {"parameters": {"size": 1}, "cell": {"steps": [{"step": "run", "argv": [name], "timeout": 1}]}}
            for name in ["a", "b", "c"]
        },
    }


def test_the_same_seed_gives_the_same_order_and_another_another():
    assert plan.rows(experiment(seed=5)) == plan.rows(experiment(seed=5))
    assert plan.rows(experiment(seed=5)) != plan.rows(experiment(seed=6))


def test_the_order_of_a_seed_is_fixed_for_good():
    # Results measured with an earlier version must keep their planned positions.
    order = plan.block_order(experiment(seed=2014), 1)
    assert order[:4] == [("native", "b"), ("native", "a"), ("native", "c"), ("vm", "a")]


def test_a_block_holds_everything_once_and_brings_each_environment_up_once():
    rows = plan.rows(experiment())
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    assert all(row[1] == row[4] for row in rows)
    for _, block in groupby(rows, key=lambda row: row[1]):
        cells = [(row[2], row[3]) for row in block]
        assert max(Counter(cells).values()) == 1
        assert len(cells) == 12
        assert len(list(groupby(cells, key=lambda cell: cell[0]))) == 4


def test_orders_differ_between_blocks():
    found = {tuple(plan.block_order(experiment(), block)) for block in range(1, 21)}
    assert len(found) > 15


def test_every_environment_comes_first_about_equally_often():
    first = Counter(plan.block_order(experiment(), block)[0][0] for block in range(1, 2001))
    assert all(400 < count < 600 for count in first.values())


@pytest.mark.parametrize("order", ["blocks", "sequential"])
def test_a_position_is_known_without_the_whole_plan(order):
    planned = experiment(order=order)
    for position, _, environment, workload, repetition in plan.rows(planned):
        assert plan.position(planned, environment, workload, repetition) == position


def test_the_naive_order_takes_one_environment_after_the_other():
    rows = plan.rows(experiment(order="sequential", absent=["vm"]))
    assert [name for name, _ in groupby(row[2] for row in rows)] == ["native", "docker", "other"]
    assert [row[1] for row in rows[:12]] == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]


def test_what_is_not_available_is_not_planned():
    rows = plan.rows(experiment(absent=["vm"]))
    assert len(rows) == 3 * 3 * 4
    assert "vm" not in {row[2] for row in rows}


def test_a_seed_is_shared_by_environments_and_differs_between_blocks_and_workloads():
    seeds = {(workload, block): plan.cell_seed(experiment(), workload, block) for workload in "ab" for block in (1, 2)}
    assert len(set(seeds.values())) == 4
    assert all(0 <= seed < 2**31 for seed in seeds.values())


@pytest.mark.parametrize(
    ("path", "value", "same"),
    [
        (["seed"], 2, False),
        (["scale"], "quick", False),
        (["image", "recipe"], "other", False),
        (["environments", "native", "layers"], [{"native": {"option": 1}}], False),
        (["workloads", "a", "parameters", "size"], 2, False),
        (["workloads", "a", "cell", "steps", 0, "argv"], ["a", "-x"], False),
        (["workloads", "a", "cell", "steps", 0, "timeout"], 99, True),
        (["repetitions"], 30, True),
        (["environments", "docker", "layers"], [], True),
        (["workloads", "b", "parameters", "size"], 2, True),
    ],
)
def test_a_cell_is_measured_again_just_for_what_decides_its_result(path, value, same):
    before = experiment()
    after = experiment()
    inner = after
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    assert (plan.fingerprint(before, "native", "a") == plan.fingerprint(after, "native", "a")) is same

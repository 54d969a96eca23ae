"""The order of cells: blocks, rounds, and the blocks that decisions add."""

import json
from collections import Counter
from itertools import groupby

import measured
import pytest

from strata.experiment import blocks
from strata.util.errors import UserError


def experiment(
    seed=1, repetitions=4, absent=(), order="blocks", emulated=(), precision=None, left_out=()
):
    """Return a plan of four environments and the workloads a, b, c, with all keys of an order."""
    names = ["native", "docker", "vm", "other"]
    return {
        "machine": {"mask": None},
        "seed": seed,
        "order": order,
        "scale": "tiny",
        "repetitions": repetitions,
        **({"precision": {"min": precision}} if precision else {}),
        **({"not_emulated": list(left_out)} if left_out else {}),
        "image": {"recipe": "r"},
        "environments": {
            name: {
                "available": name not in absent,
                "layers": [{name: {}}],
                "descriptions": [],
                "emulated": name in emulated,
            }
            for name in names
        },
        "workloads": {
            name: {
                "parameters": {"size": 1, "again": 3},
                "cell": {"steps": [{"step": "run", "argv": [name], "timeout": 1}]},
            }
            for name in ["a", "b", "c"]
        },
    }


def rows_of(order):
    """Return (position, round, environment, workload, repetition) of every cell."""
    return [(*place, *cell) for cell, place in order.places.items()]


def rows(**options):
    """Return the rows of the plan with these options."""
    return rows_of(blocks.Order(experiment(**options)))


def numbers(order, environment, workload):
    """Return the repetitions of a workload in an environment, in the planned order."""
    return [cell[2] for cell in order.list_cells() if cell[:2] == (environment, workload)]


def require_positions(order):
    """Require that positions count the cells from 1."""
    positions = [row[0] for row in rows_of(order)]
    assert positions == list(range(1, len(positions) + 1))


def decide(folder, planned, round, again=None, of=None, **more):
    """Write a decision after a round into the folder precision.

    again: workload → disturbed blocks.  of: workload → environments.
    more: workload → number of further blocks.
    """
    states = {
        load: {"again": (again or {}).get(load, []), "more": more.get(load, 0)} for load in "abc"
    }
    for load, names in (of or {}).items():
        states[load]["environments"] = names
    measured.decide(folder, planned, round, {}, ".", enough=not (again or more), workloads=states)


def test_an_order_follows_from_its_seed():
    assert rows(seed=5) == rows(seed=5)
    assert rows(seed=5) != rows(seed=6)
    # Results measured with an earlier version must keep their planned positions.
    first = rows(seed=2014)[:12]
    assert [row[3] for row in first[::4]] == ["b", "a", "c"]
    assert [row[2] for row in first[:4]] == ["native", "vm", "other", "docker"]


def test_a_block_has_every_environment_once_and_nothing_in_between():
    planned = rows()
    assert all(row[1] == row[4] for row in planned)
    for start in range(0, len(planned), 4):
        block = planned[start : start + 4]
        assert {row[3:] for row in block} == {planned[start][3:]}
        assert {row[2] for row in block} == {"native", "docker", "vm", "other"}
    for _, cells in groupby(planned, key=lambda row: row[1]):
        assert Counter(row[3] for row in cells) == {"a": 4, "b": 4, "c": 4}
    assert {row[2] for row in rows(absent=["vm"])} == {"native", "docker", "other"}


def test_every_environment_is_first_in_a_block_about_equally_often():
    first = Counter(row[2] for row in rows(repetitions=700)[::4])
    assert sum(first.values()) == 2100
    assert all(425 < count < 625 for count in first.values())


def test_an_emulated_machine_runs_its_workloads_one_after_the_other_in_the_first_round():
    planned = rows(emulated=["vm", "other"])
    runs = []
    for name, cells in groupby(planned, key=lambda row: row[2]):
        if name in ("vm", "other"):
            runs.append((name, sorted(row[3] for row in cells)))
    assert sorted(runs) == [("other", ["a", "b", "c"]), ("vm", ["a", "b", "c"])]
    assert {row[1] for row in planned if row[2] in ("vm", "other")} == {1}
    # No cell of a machine comes between two cells of a block.
    paired = [row for row in planned if row[2] in ("native", "docker")]
    for first, second in zip(paired[::2], paired[1::2], strict=True):
        assert (first[1], *first[3:]) == (second[1], *second[3:])
        assert second[0] - first[0] == 1


def test_workloads_that_are_not_emulated_are_left_out_in_emulated_machines_alone():
    order = blocks.Order(experiment(emulated=["vm"], left_out=["a", "c"]))
    assert Counter(cell[0] for cell in order.list_cells()) == {
        "native": 12,
        "docker": 12,
        "other": 12,
        "vm": 1,
    }
    assert ("vm", "a", 1) not in order.places
    assert numbers(order, "vm", "b") == [1]
    assert len(rows(left_out=["a", "c"])) == len(rows())


@pytest.mark.parametrize("order", ["blocks", "sequential"])
def test_an_environment_leaves_a_workload_out_in_every_block(order):
    whole = experiment(order=order, emulated=["vm"])
    less = {**whole, "leave_out": {"docker": ["a", "c"], "vm": ["b"]}}
    expected, counts = (
        Counter(cell[:2] for cell in blocks.Order(planned).list_cells())
        for planned in (whole, less)
    )
    for pair in [("docker", "a"), ("docker", "c"), ("vm", "b")]:
        del expected[pair]
    assert counts == expected


# Decisions


def test_decided_blocks_follow_the_first_blocks(tmp_path):
    planned = experiment(repetitions=40, precision=3, emulated=["vm"])
    first = blocks.Order(planned, str(tmp_path))
    assert (first.last, first.decided, first.decision_rounds) == (3, False, [3])

    decide(tmp_path, planned, 3, again={"a": [2]}, a=4, b=2)
    second = blocks.Order(planned, str(tmp_path))
    assert (second.last, second.decided, second.decision_rounds) == (8, False, [3, 8])
    assert second.blocks == {"a": 8, "b": 5, "c": 3}
    assert second.disturbed == {("a", 2)}
    assert rows_of(second)[: len(first.places)] == rows_of(first)

    decide(tmp_path, planned, 8)
    third = blocks.Order(planned, str(tmp_path))
    assert (third.last, third.decided, third.decision_rounds) == (8, True, [3, 8])
    require_positions(third)
    assert numbers(third, "vm", "a") == [1]
    # The blocks of a workload are spread over the rounds.
    assert sorted({row[1] for row in rows_of(third) if row[3] == "b" and row[1] > 3}) == [6, 8]
    # Repetitions come in their order.
    assert {load: numbers(third, "docker", load) for load in "abc"} == {
        load: list(range(1, number + 1)) for load, number in third.blocks.items()
    }


def test_blocks_for_a_claim_have_only_the_environments_that_it_compares(tmp_path):
    planned = experiment(repetitions=40, precision=2, emulated=["vm"])
    decide(tmp_path, planned, 2, again={"a": [2]}, of={"a": ["native", "docker"]}, a=3, b=1)
    decide(tmp_path, planned, 6, c=1, a=2)
    decide(tmp_path, planned, 8)
    order = blocks.Order(planned, str(tmp_path))
    require_positions(order)
    # Replacements are whole, and so are the blocks of later decisions.
    assert numbers(order, "other", "a") == [1, 2, 3, 7, 8]
    assert numbers(order, "docker", "a") == list(range(1, 9))
    assert numbers(order, "other", "b") == [1, 2, 3]
    assert not {("other", "a", 4), ("vm", "a", 2)} & order.places.keys()
    for cell, count in (("vm", "a", 4), 1), (("other", "a", 9), 5):
        assert order.explain_missing_cell(*cell).endswith(f": {count} are planned")


def test_a_replacement_has_the_environments_of_the_disturbed_block(tmp_path):
    planned = experiment(repetitions=40, precision=2)
    decide(tmp_path, planned, 2, of={"a": ["native", "docker"]}, a=1)
    decide(tmp_path, planned, 3, again={"a": [2, 3]})
    order = blocks.Order(planned, str(tmp_path))
    assert numbers(order, "docker", "a") == [1, 2, 3, 4, 5]
    assert numbers(order, "other", "a") == [1, 2, 4]


def test_the_block_of_a_cell_is_its_neighbours_in_the_plan(tmp_path):
    planned = experiment(repetitions=40, precision=2, emulated=["vm"], left_out=["b"])
    decide(tmp_path, planned, 2, of={"a": ["native"]}, a=1, c=2)
    order = blocks.Order(planned, str(tmp_path))
    for cell in order.list_cells():
        block = order.list_cells_of_block(*cell)
        assert cell in block
        assert all(order.list_cells_of_block(*mate) == block for mate in block)
        places = [order.places[mate][0] for mate in block]
        assert places == list(range(places[0], places[0] + len(block)))
    names = {
        cell: sorted(mate[0] for mate in order.list_cells_of_block(*cell))
        for cell in order.list_cells()
    }
    assert names["native", "a", 2] == names["native", "c", 3] == ["docker", "native", "other"]
    assert names["native", "a", 3] == ["native"]
    assert order.list_cells_of_block("vm", "a", 1) == [("vm", "a", 1)]
    naive = blocks.Order(experiment(order="sequential", repetitions=2))
    assert naive.list_cells_of_block("docker", "b", 2) == [("docker", "b", 2)]
    require_positions(naive)


@pytest.fixture
def doubted(tmp_path, monkeypatch):
    """Return a plan in which one environment is doubtful, and a function that writes a record.

    The record says that an environment cannot run the workload a, or has other keys.
    """
    monkeypatch.chdir(tmp_path)
    planned = experiment(repetitions=300, precision=3)
    planned["environments"]["other"]["doubtful"] = True

    def write_record(environment, **keys):
        record = keys or {"cannot": {"reason": "no such call", "commands": []}}
        measured.write_json(tmp_path / f"results/raw/{environment}/a/1.json", record)

    return planned, write_record


def test_a_workload_that_an_environment_cannot_run_is_in_no_further_block_of_it(doubted, tmp_path):
    planned, write_record = doubted
    first = blocks.Order(planned).list_cells()
    write_record("other")
    assert blocks.Order(planned).list_cells() == first
    measured.decide(tmp_path, planned, 3, {"a": 4, "b": 4, "c": 4})
    order = blocks.Order(planned)
    assert numbers(order, "other", "a") == [1, 2, 3]
    assert len(numbers(order, "docker", "a")) == len(numbers(order, "other", "b")) == 7
    assert sorted(order.list_environments_of_next_block("a")) == ["docker", "native", "vm"]


def test_only_a_doubtful_environment_may_be_unable(doubted, tmp_path):
    planned, write_record = doubted
    measured.decide(tmp_path, planned, 3, {"a": 4, "b": 4, "c": 4})
    write_record("docker")
    write_record("other", format=1)
    order = blocks.Order(planned)
    assert len(numbers(order, "docker", "a")) == len(numbers(order, "other", "a")) == 7


def test_decisions_of_other_plans_are_ignored_and_damaged_ones_refused(tmp_path):
    planned = experiment(repetitions=40, precision=3)
    decide(tmp_path, planned, 3, a=4)
    decide(tmp_path, planned, 9, a=4)
    assert blocks.Order(planned, str(tmp_path)).last == 7
    other = experiment(repetitions=40, precision=3, absent=["vm"])
    assert blocks.Order(other, str(tmp_path)).last == 3
    (tmp_path / "precision/7.json").write_text(json.dumps({"enough": False, "workloads": "x"}))
    assert blocks.Order(planned, str(tmp_path)).last == 7
    (tmp_path / "precision/3.json").write_text("[")
    with pytest.raises(UserError, match=r"precision/3\.json: "):
        blocks.Order(planned, str(tmp_path))


def with_budget(planned, seconds):
    """Return a plan with another budget."""
    return {**planned, "precision": {**planned["precision"], "budget": seconds}}


def begin(folder, order, *rounds):
    """Measure one cell of each of some rounds."""
    for environment, load, number in (
        next(cell for cell, place in order.places.items() if place[1] == round) for round in rounds
    ):
        log = folder / f"raw/{environment}/{load}/{number}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()


@pytest.mark.parametrize("budget", [50, 200])
def test_rounds_that_were_begun_stay_under_another_budget_and_a_decision_is_due(budget, tmp_path):
    planned = with_budget(experiment(repetitions=40, precision=3), 100)
    decide(tmp_path, planned, 3, again={"c": [2]}, a=4, b=2)
    first = blocks.Order(planned, str(tmp_path))
    begin(tmp_path, first, 1, 2, 3, 5)
    other = with_budget(planned, budget)
    begun = blocks.Order(other, str(tmp_path))
    assert (begun.last, begun.decided, begun.decision_rounds) == (5, False, [3, 5])
    assert rows_of(begun) == [row for row in rows_of(first) if row[1] <= 5]
    # Block 2 of c would have been replaced in a later round.
    assert (begun.disturbed, begun.blocks) == (set(), {"a": 5, "b": 4, "c": 3})
    # The next decision ends the rounds of the first one, also while its own are measured.
    decide(tmp_path, other, 5, again={"c": [2]}, c=2)
    then = blocks.Order(other, str(tmp_path))
    begin(tmp_path, then, 6, 7, 8)
    decide(tmp_path, other, 8)
    last = blocks.Order(other, str(tmp_path))
    assert (last.last, last.decided, last.decision_rounds) == (8, True, [3, 5, 8])
    assert rows_of(last) == rows_of(then)
    assert last.disturbed == {("c", 2)}
    require_positions(last)
    # Budgets that change again, or back, take nothing away.
    for again in (planned, with_budget(planned, 1)):
        order = blocks.Order(again, str(tmp_path))
        assert (rows_of(order), order.decided) == (rows_of(last), False)


@pytest.mark.parametrize("budget", [50, 100])
@pytest.mark.parametrize(
    "change", [{"scale": "small"}, {"leave_out": {"docker": ["a"]}}, {"precision": {"min": 2}}]
)
def test_begun_rounds_of_other_cells_do_not_stay(change, budget, tmp_path):
    planned = with_budget(experiment(repetitions=40, precision=3), 100)
    decide(tmp_path, planned, 3, a=4)
    begin(tmp_path, blocks.Order(planned, str(tmp_path)), *range(1, 8))
    other = with_budget({**planned, **change}, budget)
    order = blocks.Order(other, str(tmp_path))
    assert order.decision_rounds == [order.last] == [other["precision"]["min"]]

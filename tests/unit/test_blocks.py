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
    """(position, round, environment, workload, repetition) of every cell."""
    return [(*place, *cell) for cell, place in order.places.items()]


def rows(**given):
    return rows_of(blocks.Order(experiment(**given)))


def numbers(order, environment, workload):
    return [
        number for name, load, number in order.cells() if (name, load) == (environment, workload)
    ]


def holds_together(order):
    """Whether positions count the cells."""
    found = rows_of(order)
    assert [row[0] for row in found] == list(range(1, len(found) + 1))


def decide(folder, planned, round, again=None, of=None, **more):
    """Write a decision of a plan in results/precision."""
    states = {
        load: {"again": (again or {}).get(load, []), "more": more.get(load, 0)} for load in "abc"
    }
    for load, names in (of or {}).items():
        states[load]["environments"] = names
    measured.decide(folder, planned, round, {}, ".", enough=not (again or more), workloads=states)


def test_the_same_seed_gives_the_same_order_for_good_and_another_another():
    assert rows(seed=5) == rows(seed=5)
    assert rows(seed=5) != rows(seed=6)
    # Results measured with an earlier version must keep their planned positions.
    first = rows(seed=2014)[:12]
    assert [row[3] for row in first[::4]] == ["b", "a", "c"]
    assert [row[2] for row in first[:4]] == ["native", "vm", "other", "docker"]


def test_a_block_holds_every_environment_once_one_right_after_the_other():
    found = rows()
    assert all(row[1] == row[4] for row in found)
    for start in range(0, len(found), 4):
        assert {(row[3], row[4]) for row in found[start : start + 4]} == {found[start][3:]}
        assert {row[2] for row in found[start : start + 4]} == {"native", "docker", "vm", "other"}
    for _, own in groupby(found, key=lambda row: row[1]):
        assert sorted(Counter(row[3] for row in own).items()) == [("a", 4), ("b", 4), ("c", 4)]
    assert {row[2] for row in rows(absent=["vm"])} == {"native", "docker", "other"}


def test_every_environment_comes_first_in_a_block_about_equally_often():
    first = Counter(row[2] for row in rows(repetitions=700)[::4])
    assert sum(first.values()) == 2100
    assert all(425 < count < 625 for count in first.values())


def test_an_emulated_machine_has_all_workloads_of_the_first_round_one_after_the_other():
    found = rows(emulated=["vm", "other"])
    runs = [
        (name, [row[3] for row in cells]) for name, cells in groupby(found, key=lambda row: row[2])
    ]
    machines = {name: loads for name, loads in runs if name in ("vm", "other")}
    assert len([name for name, _ in runs if name in machines]) == 2
    assert all(sorted(loads) == ["a", "b", "c"] for loads in machines.values())
    assert {row[1] for row in found if row[2] in machines} == {1}
    # A block is not torn apart by a machine.
    compared = [row for row in found if row[2] in ("native", "docker")]
    for one, other in zip(compared[::2], compared[1::2], strict=True):
        assert one[1:2] + one[3:] == other[1:2] + other[3:]
        assert abs(one[0] - other[0]) == 1


def test_an_emulated_machine_may_leave_workloads_out_which_no_other_environment_does():
    order = blocks.Order(experiment(emulated=["vm"], left_out=["a", "c"]))
    assert Counter(cell[0] for cell in order.cells()) == {
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
    page = {
        **experiment(order=order, emulated=["vm"]),
        "leave_out": {"docker": ["a", "c"], "vm": ["b"]},
    }
    found = Counter(cell[:2] for cell in blocks.Order(page).cells())
    whole = Counter(
        cell[:2] for cell in blocks.Order(experiment(order=order, emulated=["vm"])).cells()
    )
    gone = {("docker", "a"), ("docker", "c"), ("vm", "b")}
    assert found == {pair: count for pair, count in whole.items() if pair not in gone}


# Decisions


def test_what_was_decided_follows_what_everything_has(tmp_path):
    planned = experiment(repetitions=40, precision=3, emulated=["vm"])
    first = blocks.Order(planned, str(tmp_path))
    assert (first.last, first.decided, first.asked) == (3, False, [3])

    decide(tmp_path, planned, 3, again={"a": [2]}, a=4, b=2)
    second = blocks.Order(planned, str(tmp_path))
    assert (second.last, second.decided, second.asked) == (8, False, [3, 8])
    assert second.blocks == {"a": 8, "b": 5, "c": 3}
    assert second.aside == {("a", 2)}
    assert rows_of(second)[: len(first.places)] == rows_of(first)

    decide(tmp_path, planned, 8)
    third = blocks.Order(planned, str(tmp_path))
    assert (third.last, third.decided, third.asked) == (8, True, [3, 8])
    holds_together(third)
    assert numbers(third, "vm", "a") == [1]
    # Blocks of one workload are spread over the rounds.
    assert sorted({row[1] for row in rows_of(third) if row[3] == "b" and row[1] > 3}) == [6, 8]
    # Each comes after those before it.
    assert {load: numbers(third, "docker", load) for load in "abc"} == {
        load: list(range(1, number + 1)) for load, number in third.blocks.items()
    }


def test_blocks_for_a_claim_hold_what_it_compares_alone(tmp_path):
    planned = experiment(repetitions=40, precision=2, emulated=["vm"])
    decide(tmp_path, planned, 2, again={"a": [2]}, of={"a": ["native", "docker"]}, a=3, b=1)
    decide(tmp_path, planned, 6, c=1, a=2)
    decide(tmp_path, planned, 8)
    order = blocks.Order(planned, str(tmp_path))
    holds_together(order)
    # The block that is measured again is whole, and so are those that are asked for later.
    assert numbers(order, "other", "a") == [1, 2, 3, 7, 8]
    assert numbers(order, "docker", "a") == list(range(1, 9))
    assert numbers(order, "other", "b") == [1, 2, 3]
    assert not {("other", "a", 4), ("vm", "a", 2)} & order.places.keys()
    for cell, so_far in (("vm", "a", 4), 1), (("other", "a", 9), 5):
        assert order.missing(*cell).endswith(f": {so_far} are planned")


def test_a_block_that_is_measured_again_holds_what_it_held(tmp_path):
    planned = experiment(repetitions=40, precision=2)
    decide(tmp_path, planned, 2, of={"a": ["native", "docker"]}, a=1)
    decide(tmp_path, planned, 3, again={"a": [2, 3]})
    order = blocks.Order(planned, str(tmp_path))
    assert numbers(order, "docker", "a") == [1, 2, 3, 4, 5]
    assert numbers(order, "other", "a") == [1, 2, 4]


def test_what_is_measured_together_is_a_block_and_nothing_else(tmp_path):
    planned = experiment(repetitions=40, precision=2, emulated=["vm"], left_out=["b"])
    decide(tmp_path, planned, 2, of={"a": ["native"]}, a=1, c=2)
    order = blocks.Order(planned, str(tmp_path))
    for cell in order.cells():
        block = order.block(*cell)
        assert cell in block
        assert all(order.block(*other) == block for other in block)
        # They stand one right after the other in the plan, in this order.
        places = [order.places[other][0] for other in block]
        assert places == list(range(places[0], places[0] + len(block)))
    found = {cell: sorted({other[0] for other in order.block(*cell)}) for cell in order.cells()}
    assert found["native", "a", 2] == found["native", "c", 3] == ["docker", "native", "other"]
    assert found["native", "a", 3] == ["native"]
    assert order.block("vm", "a", 1) == [("vm", "a", 1)]
    naive = blocks.Order(experiment(order="sequential", repetitions=2))
    assert naive.block("docker", "b", 2) == [("docker", "b", 2)]
    holds_together(naive)


@pytest.fixture
def doubted(tmp_path, monkeypatch):
    """A plan of which one environment may be unable to do something; who is found so, in which cell, and what else."""
    monkeypatch.chdir(tmp_path)
    planned = experiment(repetitions=300, precision=3)
    planned["environments"]["other"]["doubtful"] = True

    def find(environment, **told):
        found = told or {"cannot": {"reason": "no such call", "commands": []}}
        measured.write_json(tmp_path / f"results/raw/{environment}/a/1.json", found)

    return planned, find


def test_what_an_environment_cannot_do_is_asked_no_more_after_the_first_round(doubted, tmp_path):
    planned, find = doubted
    first = blocks.Order(planned).cells()
    find("other")
    assert blocks.Order(planned).cells() == first
    measured.decide(tmp_path, planned, 3, {"a": 4, "b": 4, "c": 4})
    order = blocks.Order(planned)
    assert numbers(order, "other", "a") == [1, 2, 3]
    assert len(numbers(order, "docker", "a")) == len(numbers(order, "other", "b")) == 7
    assert sorted(order.next_block("a")) == ["docker", "native", "vm"]


def test_of_an_environment_that_has_to_do_everything_nothing_like_that_is_heard(doubted, tmp_path):
    planned, find = doubted
    measured.decide(tmp_path, planned, 3, {"a": 4, "b": 4, "c": 4})
    find("docker")
    find("other", format=1)
    order = blocks.Order(planned)
    assert len(numbers(order, "docker", "a")) == len(numbers(order, "other", "a")) == 7


def test_decisions_of_another_course_are_left_alone_and_what_is_no_decision_is_refused(tmp_path):
    planned = experiment(repetitions=40, precision=3)
    decide(tmp_path, planned, 3, a=4)
    decide(tmp_path, planned, 9, a=4)
    assert blocks.Order(planned, str(tmp_path)).last == 7
    # One of another experiment is not for this one, but stays for that.
    assert (
        blocks.Order(experiment(repetitions=40, precision=3, absent=["vm"]), str(tmp_path)).last
        == 3
    )
    (tmp_path / "precision/7.json").write_text(json.dumps({"enough": False, "workloads": "x"}))
    assert blocks.Order(planned, str(tmp_path)).last == 7
    (tmp_path / "precision/3.json").write_text("[")
    with pytest.raises(UserError, match=r"precision/3\.json: "):
        blocks.Order(planned, str(tmp_path))

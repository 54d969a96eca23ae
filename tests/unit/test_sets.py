import json
from collections import Counter
from itertools import groupby

import measured
import pytest

from strata.base.errors import UserError
from strata.experiment import sets


def experiment(seed=1, repetitions=4, absent=(), order="blocks", emulated=(), precision=None, left_out=()):
    names = ["native", "docker", "vm", "other"]
    return {
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
            name: {"parameters": {"size": 1}, "cell": {"steps": [{"step": "run", "argv": [name], "timeout": 1}]}}
            for name in ["a", "b", "c"]
        },
    }


def rows(**given):
    return list(sets.Order(experiment(**given)).rows())


def decide(folder, planned, block, again=None, enough=False, of=None, **more):
    """Write a decision of a plan in results/precision."""
    again = again or {}
    states = {load: {"again": again.get(load, []), "more": more.get(load, 0)} for load in "abc"}
    for load, names in (of or {}).items():
        states[load]["environments"] = names
    measured.decide(folder, planned, block, {}, ".", enough=enough, workloads=states)


def test_the_same_seed_gives_the_same_order_and_another_another():
    assert rows(seed=5) == rows(seed=5)
    assert rows(seed=5) != rows(seed=6)


def test_the_order_of_a_seed_is_fixed_for_good():
    # Results measured with an earlier version must keep their planned positions.
    order = sets.Order(experiment(seed=2014)).in_block(1)
    assert [cell[1] for cell in order[::4]] == ["b", "a", "c"]
    assert [cell[0] for cell in order[:4]] == ["native", "vm", "other", "docker"]


def test_a_set_holds_every_environment_once_one_right_after_the_other():
    found = rows()
    assert [row[0] for row in found] == list(range(1, len(found) + 1))
    assert all(row[1] == row[4] for row in found)
    for start in range(0, len(found), 4):
        assert {(row[3], row[4]) for row in found[start : start + 4]} == {found[start][3:]}
        assert {row[2] for row in found[start : start + 4]} == {"native", "docker", "vm", "other"}
    for _, block in groupby(found, key=lambda row: row[1]):
        assert sorted(Counter(row[3] for row in block).items()) == [("a", 4), ("b", 4), ("c", 4)]


def test_an_emulated_machine_has_all_workloads_of_a_block_one_after_the_other():
    found = rows(emulated=["vm", "other"])
    block = [row for row in found if row[1] == 1]
    runs = [(name, [row[3] for row in cells]) for name, cells in groupby(block, key=lambda row: row[2])]
    machines = {name: loads for name, loads in runs if name in ("vm", "other")}
    assert all(sorted(loads) == ["a", "b", "c"] for loads in machines.values())
    assert len(machines) == 2
    assert {row[4] for row in found if row[2] == "vm"} == {1}
    # A set is not torn apart by a machine.
    compared = [row for row in found if row[2] in ("native", "docker")]
    for one, other in zip(compared[::2], compared[1::2], strict=True):
        assert one[1:2] + one[3:] == other[1:2] + other[3:]
        assert abs(one[0] - other[0]) == 1


def test_an_emulated_machine_may_leave_workloads_out_which_no_other_environment_does():
    found = rows(emulated=["vm"], left_out=["a", "c"])
    assert {row[3] for row in found if row[2] == "vm"} == {"b"}
    assert Counter(row[2] for row in found) == {"native": 12, "docker": 12, "other": 12, "vm": 1}
    order = sets.Order(experiment(emulated=["vm"], left_out=["a", "c"]))
    assert list(order.repetitions("vm", "a")) == []
    assert order.block("vm", "a", 1) is None
    assert len(rows(left_out=["a", "c"])) == len(rows())


def test_every_environment_comes_first_in_a_set_about_equally_often():
    order = sets.Order(experiment(repetitions=700))
    first = Counter(cell[0] for block in range(1, 701) for cell in order.in_block(block)[::4])
    assert sum(first.values()) == 2100
    assert all(425 < count < 625 for count in first.values())


def test_what_is_not_available_is_not_planned():
    found = rows(absent=["vm"])
    assert len(found) == 3 * 3 * 4
    assert "vm" not in {row[2] for row in found}


def test_a_cell_of_a_set_has_a_system_for_itself_and_one_in_an_emulated_machine_that_of_its_block():
    order = sets.Order(experiment(emulated=["vm"]))
    naive = sets.Order(experiment(order="sequential"))
    # So nothing is opened in a system for workloads that never come to it.
    assert order.sharing("native", "b") == ["b"]
    assert order.sharing("vm", "b") == naive.sharing("native", "b") == ["a", "b", "c"]
    fewer = sets.Order(experiment(emulated=["vm"], left_out=["a"]))
    assert fewer.sharing("vm", "b") == ["b", "c"]


# Rounds


def test_what_was_decided_follows_the_first_round(tmp_path):
    planned = experiment(repetitions=40, precision=3, emulated=["vm"])
    first = sets.Order(planned, str(tmp_path))
    assert (first.last, first.decided, first.asked) == (3, False, [3])
    assert {row[1] for row in first.rows()} == {1, 2, 3}

    decide(tmp_path, planned, 3, again={"a": [2]}, a=4, b=2)
    second = sets.Order(planned, str(tmp_path))
    assert (second.last, second.decided, second.asked) == (8, False, [3, 8])
    assert [second.sets(load) for load in "abc"] == [8, 5, 3]
    assert list(second.rows())[: len(list(first.rows()))] == list(first.rows())

    decide(tmp_path, planned, 8, enough=True)
    third = sets.Order(planned, str(tmp_path))
    assert (third.last, third.decided, third.asked) == (8, True, [3, 8])
    found = list(third.rows())
    for position, block, *cell in found:
        assert (third.position(*cell), third.block(*cell)) == (position, block)
    assert [row[0] for row in found] == list(range(1, len(found) + 1))
    assert sorted(row[4] for row in found if row[2:4] == ("native", "a")) == list(range(1, 9))
    assert max(row[4] for row in found if row[2] == "vm") == 1
    # Sets of one workload are spread over the round.
    assert sorted({row[1] for row in found if row[3] == "b" and row[1] > 3}) == [6, 8]
    # Each repetition comes after those before it.
    for load in "abc":
        numbers = [row[4] for row in found if row[2:4] == ("docker", load)]
        assert numbers == sorted(numbers)


def test_sets_for_a_claim_hold_what_it_compares_alone(tmp_path):
    planned = experiment(repetitions=40, precision=2, emulated=["vm"])
    decide(tmp_path, planned, 2, again={"a": [2]}, of={"a": ["native", "docker"]}, a=3, b=1)
    decide(tmp_path, planned, 6, c=1, a=2)
    decide(tmp_path, planned, 8, enough=True)
    order = sets.Order(planned, str(tmp_path))
    # The set that is measured again is whole, and so are those that later rounds ask for.
    assert list(order.repetitions("other", "a")) == [1, 2, 3, 7, 8]
    assert list(order.repetitions("docker", "a")) == list(range(1, 9))
    assert list(order.repetitions("other", "b")) == [1, 2, 3]
    assert order.block("other", "a", 4) is None
    assert order.block("vm", "a", 2) is None
    assert order.missing("vm", "a", 4) == "there is no repetition 4 of vm · a: 1 are planned"
    assert order.missing("other", "a", 9) == "there is no repetition 9 of other · a: 5 are planned"
    found = list(order.rows())
    assert [row[0] for row in found] == list(range(1, len(found) + 1))
    for position, block, *cell in found:
        assert (order.position(*cell), order.block(*cell)) == (position, block)
    held = {number: {row[2] for row in found if row[3:] == ("a", number)} for number in (3, 4, 6, 7)}
    assert held == {
        3: {"native", "docker", "other"},
        4: {"native", "docker"},
        6: {"native", "docker"},
        7: {"native", "docker", "other"},
    }
    for name in ("native", "docker", "other", "vm"):
        for load in "abc":
            assert [row[4] for row in found if row[2:4] == (name, load)] == list(order.repetitions(name, load))


def test_what_is_measured_together_is_a_set_or_the_block_of_a_machine_or_a_naive_repetition(tmp_path):
    planned = experiment(repetitions=40, precision=2, emulated=["vm"], left_out=["b"])
    decide(tmp_path, planned, 2, of={"a": ["native"]}, a=1, c=2)
    order = sets.Order(planned, str(tmp_path))
    for cell in order.cells():
        unit = order.unit(*cell)
        assert cell in unit
        assert all(order.unit(*other) == unit for other in unit)
        # They stand one right after the other in the plan, in this order.
        places = [order.position(*other) for other in unit]
        assert places == list(range(places[0], places[0] + len(unit)))
    found = {cell: sorted({other[0] for other in order.unit(*cell)}) for cell in order.cells()}
    assert found["native", "a", 2] == ["docker", "native", "other"]
    assert found["native", "c", 3] == ["docker", "native", "other"]
    assert found["native", "a", 3] == ["native"]
    assert sorted(order.unit("vm", "a", 1)) == [("vm", "a", 1), ("vm", "c", 1)]
    assert order.unit("vm", "b", 1) == order.unit("native", "a", 9) == []
    naive = sets.Order(experiment(order="sequential", repetitions=2))
    assert naive.unit("docker", "b", 2) == [("docker", load, 2) for load in "abc"]


def test_decisions_of_another_course_are_left_alone_and_what_is_no_decision_is_refused(tmp_path):
    planned = experiment(repetitions=40, precision=3)
    decide(tmp_path, planned, 3, a=4)
    decide(tmp_path, planned, 9, a=4)
    assert sets.Order(planned, str(tmp_path)).last == 7
    # One of another experiment is not for this one, but stays for that.
    assert sets.Order(experiment(repetitions=40, precision=3, absent=["vm"]), str(tmp_path)).last == 3
    (tmp_path / "precision/7.json").write_text('{"block": 7, "enough": false, "workloads": "x"}')
    assert sets.Order(planned, str(tmp_path)).last == 7
    for text in ("[", json.dumps({"rests_on": sets.rests_on(planned), "enough": False, "workloads": "x"})):
        (tmp_path / "precision/3.json").write_text(text)
        with pytest.raises(UserError, match=r"precision/3\.json: "):
            sets.Order(planned, str(tmp_path))

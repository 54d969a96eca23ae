"""What is said of what takes long, and how long the rest of a run takes."""

import json
import os
import random
import re
import time

import pytest

from strata.base import progress

# What each workload takes, what each environment takes to come up, and what it takes once in a run.
TAKES = {"stream": 1.0, "linpack": 4.0, "pxz": 7.0}
UP = {"native": 0.5, "docker": 2.0, "vm": 12.0}
ONCE = {"native": 0.0, "docker": 20.0, "vm": 90.0}
SLOWER = {"native": 1.0, "docker": 1.1, "vm": 3.0}
BLOCKS = 5


@pytest.fixture
def clock(tmp_path, monkeypatch):
    """A folder of its own and a time that only tests let pass."""
    monkeypatch.chdir(tmp_path)
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "_once", 0.0)
    return now


def told(text):
    """Seconds that the last line says are left; None where it says none."""
    found = re.findall(r"about ([\d.]+) (s|min|h)$", text, re.MULTILINE)
    return float(found[-1][0]) * {"s": 1, "min": 60, "h": 3600}[found[-1][1]] if found else None


def begin(cells, **more):
    """Begin the run of so many cells, each in a system of its own."""
    planned = [("bare", "noop", number) for number in range(1, cells + 1)]
    progress.begin(os.getpid(), planned, [(cell[0], str(cell[2])) for cell in planned], **more)


def measure(clock, capsys, seed):
    """A run in random order within its blocks; (block, seconds that were told, seconds that it took) of each cell."""
    order = random.Random(seed)
    plan = []
    for block in range(1, BLOCKS + 1):
        for environment in order.sample(sorted(UP), len(UP)):
            plan += [(environment, workload, block) for workload in order.sample(sorted(TAKES), len(TAKES))]
    progress.begin(os.getpid(), plan, [(environment, str(block)) for environment, _, block in plan])
    up, seen, said = None, set(), []
    for environment, workload, block in plan:
        progress._once = 0.0  # every cell is a process of its own
        begun = clock[0]
        progress.announce("cell")
        fresh = up != (environment, block)
        if fresh and environment not in seen:
            with progress.once():
                clock[0] += ONCE[environment]
        clock[0] += UP[environment] * fresh + TAKES[workload] * SLOWER[environment]
        progress.done((environment, workload, block), "cell", clock[0] - begun, UP[environment] if fresh else None)
        said.append((block, told(capsys.readouterr().err), clock[0]))
        up = (environment, block)
        seen.add(environment)
    return [(block, rest, clock[0] - at) for block, rest, at in said]


@pytest.mark.parametrize("seed", range(5))
def test_after_the_first_block_the_time_left_is_exact(clock, capsys, seed):
    later = [(rest, took) for block, rest, took in measure(clock, capsys, seed) if block > 1 and rest is not None]
    assert len(later) == (BLOCKS - 1) * len(UP) * len(TAKES) - 1
    for rest, took in later:
        assert rest == pytest.approx(took, abs=30 if took >= 90 else 0.6)


def test_within_the_first_block_what_happens_once_is_not_told_again(clock, capsys):
    for seed in range(20):
        said = measure(clock, capsys, seed)
        first = [(rest, took) for block, rest, took in said if block == 1]
        # From the second environment on all workloads are known; before, one is taken for another.
        assert all(rest < 2 * took for rest, took in first[len(TAKES) :])
        # The end of the block knows all but what still happens once, which is nothing.
        rest, took = first[-1]
        assert rest == pytest.approx(took, abs=30)


def test_an_unknown_cell_is_taken_for_those_of_its_workload(clock):
    run = {"took": {"a/quick": [2, 2.0], "b/quick": [1, 3.0], "a/slow": [1, 50.0]}, "up": {"a": [1, 5.0]}}
    assert progress.remaining({**run, "left": {"c/quick": 2}, "ups": {}}) == pytest.approx(4.0)
    assert progress.remaining({**run, "left": {"a/slow": 3, "a/quick": 0}, "ups": {}}) == pytest.approx(150.0)
    assert progress.remaining({**run, "left": {"c/other": 1}, "ups": {"c": 2}}) == pytest.approx(54.0 / 3 + 10.0)
    assert progress.remaining({"took": {}, "up": {}, "left": {"a/quick": 4}, "ups": {"a": 1}}) == 0


def test_a_failed_cell_is_counted_and_its_time_is_no_pace(clock, capsys):
    begin(3)
    progress.announce("one")
    clock[0] += 600
    progress.failed(("bare", "noop", 1))
    progress.announce("two")
    clock[0] += 3
    progress.done(("bare", "noop", 2), "two", 3.0)
    assert "[2/3] two: 3.0 s; 1 to go, about 3 s" in capsys.readouterr().err


def test_what_is_once_within_what_is_once_counts_once(clock):
    with progress.once():
        clock[0] += 1
        with progress.once():
            clock[0] += 2
    assert progress.seconds_once() == 3


def test_cells_beyond_those_foreseen_are_told_too(clock, capsys):
    begin(1, more=True)
    for repetition in (1, 2):
        progress.announce("cell")
        clock[0] += 2
        progress.done(("bare", "noop", repetition), f"cell {repetition}", 2.0, 1.0)
    assert "[2/2] cell 2: 2.0 s" in capsys.readouterr().err
    assert json.loads(open(progress.PATH).read())["left"] == {"bare/noop": 0}


def test_a_long_step_says_what_runs_and_for_how_long(capsys):
    with progress.step("image", "building it", every=0.05):
        time.sleep(0.3)
    first, *between, last = capsys.readouterr().err.splitlines()
    assert first == "image: building it …"
    assert between
    assert set(between) == {"image: building it: 0 s so far …"}
    assert last == "image: building it: 0 s"


def test_a_step_that_failed_is_not_said_to_have_ended(capsys):
    with pytest.raises(ValueError, match="out of order"), progress.step("image", "building it"):
        raise ValueError("out of order")
    assert capsys.readouterr().err == "image: building it …\n"


_DAMAGE = [
    *[{name: value} for name in ("owner", "left", "ups", "took", "up") for value in (None, "x", [1], {"a/quick": "x"})],
    *[{name: value} for name in ("cells", "done") for value in (None, "x", -1, 1.5, True, [], 10**400)],
    *[{"since": value} for value in ("x", [], True, float("nan"), float("inf"), -1)],
    *[{"owner": {"pid": pid, "start": start}} for pid, start in (("x", "1"), (None, "1"), ([], "1"), (1, None))],
    *[{name: {"bare/noop": value}} for name in ("took", "up") for value in ([], [1], [0, 1.0], [1, "x"], 3, [1, None])],
    *[{name: {"bare/noop": value}} for name in ("left", "ups") for value in ([], 1.5, -1, None)],
]


@pytest.mark.parametrize("damage", [*_DAMAGE, "gone"], ids=str)
def test_damage_within_the_note_of_a_run_is_no_run(clock, capsys, damage):
    begin(2)
    with open(progress.PATH) as file:
        run = json.load(file)
    notes = [{**run, **damage}] if damage != "gone" else [{k: run[k] for k in run if k != gone} for gone in run]
    # What is noted only later may be missing; of a run that may grow nothing else is asked.
    for note in notes:
        if note.keys() in (run.keys() - {"more"}, run.keys() - {"ends"}):
            continue
        with open(progress.PATH, "w") as file:
            json.dump(note, file)
        progress.announce("cell")
        progress.done(("bare", "noop", 1), "cell", 2.0, 1.0)
        progress.failed(("bare", "noop", 1))
        progress.interrupt()
        assert not progress.interrupted()
        assert not progress.last()
        assert capsys.readouterr().err == "cell …\ncell: 2.0 s\n"

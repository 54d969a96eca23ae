"""Cells that are measured in turns: on the host alone, whose systems stand idle like those of containers."""

import contextlib
import itertools
import json
import os
import re
import subprocess
import time

import projects
import pytest

from strata.base import process, progress
from strata.base.errors import CellFailed, UserError
from strata.cell import cell as cell_of
from strata.cell import logs, together
from strata.cell.cell import checks
from strata.experiment import workload
from strata.system import state, testbed

LAPS = {
    "parameters": {
        "laps": {"about": "x", "schema": {"type": "integer", "minimum": 1, "maximum": 1000}, "value": 3},
        "number": projects.NOOP["parameters"]["number"],
    },
    "laps": "laps",
}
ALL = ("one", "three", "two")


def environments(**more):
    return {"environments": {name: {"layers": ["host"]} for name in ALL}, **more}


@pytest.fixture
def owner():
    """A process that stands for a run."""
    with subprocess.Popen(["sleep", "300"]) as running:
        yield running
        running.kill()


@pytest.fixture
def planned(project, owner):
    """A project of three environments that is planned, with a run that is going to measure these cells."""

    def go(cells, config=None, **changes):
        described = {"noop": {**projects.NOOP, **LAPS, **changes}}
        folder = project(projects.on_host(**environments(**(config or {}))), described)
        projects.plan(folder)
        progress.begin(owner.pid, cells, [(cell[0], str(cell[2])) for cell in cells])
        return folder

    return go


def measure(folder, owner, environment, repetition=1):
    words = ("strata", "cell", environment, "noop", str(repetition))
    return projects.run(folder, *words, STRATA_OWNER=str(owner.pid))


def record(folder, environment, repetition=1):
    return json.loads((folder / f"results/raw/{environment}/noop/{repetition}.json").read_text())


def log(folder, environment, repetition=1):
    return (folder / f"results/raw/{environment}/noop/{repetition}.log").read_text()


def test_cells_of_a_set_take_turns_and_each_is_put_in_place_when_it_is_asked_for(planned, owner):
    trace = {"argv": ["/bin/sh", "-c", "echo 7; echo $PPID >>here"], "timeout": 20}
    folder = planned([(name, "noop", 1) for name in ALL], run=[trace])
    first = measure(folder, owner, "two")
    assert first.returncode == 0, first.stderr
    assert re.search(r"two · noop · repetition 1, in turns with (one, three|three, one) …", first.stderr)
    # The others were measured too, and nothing looks like that yet.
    assert sorted(os.listdir(folder / "results/raw")) == [".measured", "two"]
    runs = (folder / "here").read_text()
    assert len(runs.splitlines()) == 3 * 3
    for name in ("one", "three"):
        done = measure(folder, owner, name)
        assert done.returncode == 0, done.stderr
        assert "…" not in done.stderr
    assert (folder / "here").read_text() == runs
    records = {name: record(folder, name) for name in ALL}
    for name, own in records.items():
        assert own["interleaved"] == [other for other in ALL if other != name]
        assert [command["lap"] for command in own["commands"]] == [1, 2, 3]
        assert log(folder, name) == '{"lap": 1}\n7\n{"lap": 2}\n7\n{"lap": 3}\n7\n'
        assert own["checks"] == [{"name": "printed", "passed": True}]
        assert own["quiet"] == records["one"]["quiet"]
    assert len({own["system"]["id"] for own in records.values()}) == 3
    assert [records[name]["position"]["actual"] for name in ("two", "one", "three")] == [1, 2, 3]
    # Within a lap one right after the other, and never two at a time.
    taken = sorted(
        (command["started"], command["seconds"], command["lap"], name)
        for name, own in records.items()
        for command in own["commands"]
    )
    assert [lap for _, _, lap, _ in taken] == [1] * 3 + [2] * 3 + [3] * 3
    spans = [(moment(started), moment(started) + seconds) for started, seconds, _, _ in taken]
    assert all(early[1] <= late[0] + 0.002 for early, late in itertools.pairwise(spans))
    # What was done for all is shared.
    whole = moment(max(own["ended"] for own in records.values())) - moment(
        min(own["started"] for own in records.values())
    )
    assert sum(own["seconds"] for own in records.values()) <= whole + 0.5
    assert state.all_up() == []


def moment(text):
    hours, minutes, seconds = text.rstrip("Z").partition("T")[2].split(":")
    return 3600 * int(hours) + 60 * int(minutes) + float(seconds)


def test_the_order_within_a_lap_changes_with_the_lap_and_is_the_same_for_a_seed(planned, owner):
    folder = planned([(name, "noop", 1) for name in ALL], {"workloads": {"noop": {"laps": 12}}})
    measure(folder, owner, "two")
    done = {name: json.loads(aside(folder, name).read_text())["known"] for name in ("one", "three")}
    done["two"] = record(folder, "two")
    taken = sorted((c["started"], c["lap"], name) for name, own in done.items() for c in own["commands"])
    orders = {tuple(name for _, of, name in taken if of == lap) for lap in range(1, 13)}
    assert len(orders) > 2


def aside(folder, environment, repetition=1):
    return folder / f"results/tmp/{environment}/noop/{repetition}.json"


def test_one_cell_that_is_missing_is_measured_alone(planned, owner):
    folder = planned([("two", "noop", 1)])
    done = measure(folder, owner, "two")
    assert done.returncode == 0, done.stderr
    assert "in turns" not in done.stderr
    assert "interleaved" not in record(folder, "two")
    assert log(folder, "two").count('{"lap": ') == 3
    assert not list((folder / "results/tmp").rglob("*/noop/*"))


def test_a_cell_outside_of_a_run_is_measured_alone(planned, owner):
    folder = planned([(name, "noop", 1) for name in ALL])
    owner.kill()
    owner.wait()
    done = projects.run(folder, "strata", "cell", "two", "noop", "1")
    assert done.returncode == 0, done.stderr
    assert "interleaved" not in record(folder, "two")


def test_only_cells_of_the_same_set_that_are_still_to_come_take_part(planned, owner):
    folder = planned([("one", "noop", 1), ("two", "noop", 1), ("one", "noop", 2), ("three", "noop", 2)])
    measure(folder, owner, "one")
    assert record(folder, "one")["interleaved"] == ["two"]
    measure(folder, owner, "two")
    measure(folder, owner, "three", 2)
    assert record(folder, "three", 2)["interleaved"] == ["one"]


@pytest.mark.parametrize("config", [{"order": "sequential"}, {"workloads": {"noop": {"laps": 1}}}])
def test_an_order_without_sets_and_a_single_lap_know_no_turns(planned, owner, config):
    folder = planned([(name, "noop", 1) for name in ALL], config)
    done = measure(folder, owner, "two")
    assert done.returncode == 0, done.stderr
    assert "interleaved" not in record(folder, "two")


FAILS_ONCE = """
number=$(cat count 2>/dev/null || echo 0); echo $((number + 1)) >count
echo 7
[ "$number" != 1 ]
"""


def test_whoever_fails_among_the_others_is_measured_alone_and_takes_nobody_along(planned, owner):
    folder = planned([(name, "noop", 1) for name in ALL], run=[{"argv": ["/bin/sh", "-c", FAILS_ONCE], "timeout": 20}])
    # The second run of all fails: that of one of the others, or of the first.
    first = measure(folder, owner, "two")
    if first.returncode:
        assert "cell failed: two · noop · repetition 1" in first.stderr
        assert state.all_up() == []
        assert not (folder / "results/raw/two").exists()
        first = measure(folder, owner, "one")
        assert record(folder, "one")["interleaved"] == ["three"]
        return
    (failed,) = re.findall(r"cell: (\w+) · noop · repetition 1 takes no turns any more", first.stderr)
    assert failed not in record(folder, "two")["interleaved"]
    done = measure(folder, owner, failed)
    assert done.returncode == 0, done.stderr
    assert "interleaved" not in record(folder, failed)


def test_what_another_run_left_aside_is_not_taken(planned, owner):
    folder = planned([(name, "noop", 1) for name in ALL])
    measure(folder, owner, "two")
    assert aside(folder, "one").exists()
    with subprocess.Popen(["sleep", "300"]) as later:
        progress.begin(later.pid, [("one", "noop", 1)], [("one", "1")])
        done = measure(folder, later, "one")
        assert done.returncode == 0, done.stderr
        assert "interleaved" not in record(folder, "one")
        later.kill()


def test_a_run_that_is_killed_amid_turns_leaves_no_system(planned, owner, tmp_path):
    slow = {"argv": ["/bin/sh", "-c", "echo 7; sleep 60"], "timeout": 90}
    folder = planned([(name, "noop", 1) for name in ALL], run=[slow])
    words = ("strata", "cell", "two", "noop", "1")
    measuring = subprocess.Popen(
        projects.command(*words),
        cwd=folder,
        env={**projects.environment(), "STRATA_OWNER": str(owner.pid)},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while len(state.all_up()) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    measuring.kill()
    measuring.communicate()
    assert len(testbed.take_down()) == 3
    assert state.all_up() == []
    assert not (folder / "results/raw").exists()


class Quiet:
    """A host of which nothing is seen."""

    lookout = type("Lookout", (), {"report": {}})

    def __init__(self, plan):
        pass

    def begin(self):
        pass

    ready = begin

    def end(self, environments):
        return {}


def pretended(environment, left):
    """A cell that runs nothing, and tells what it left running."""
    one = cell_of.Cell.__new__(cell_of.Cell)
    one.environment, one.workload, one.repetition, one.laps = environment, "noop", 1, 2
    one.plan, one.key, one.name, one.known = {"seed": 1}, (environment, "noop", 1), environment, {}
    one.begin = one.check = lambda *_: None
    one.at_work = contextlib.nullcontext
    system = type("System", (), {"left": lambda self: left})()
    one.steps = type("Steps", (), {"begin": lambda self: None, "lap": lambda self, lap: None, "system": system})()
    one.observe = lambda *_: None
    return one


@pytest.mark.parametrize("who", ["one", "two"])
def test_a_lap_that_leaves_something_at_work_beside_the_others_fails_its_set(project, monkeypatch, who):
    monkeypatch.chdir(project())
    monkeypatch.setattr(together, "Surroundings", Quiet)
    cells = [pretended(name, ["sleep 9"] if name == who else []) for name in ("one", "two")]
    with pytest.raises(CellFailed, match=f"^{who} left running, while others of its set were measured: sleep 9"):
        together.measure(cells[0], cells[1:])
    cells = [pretended(name, []) for name in ("one", "two")]
    together.measure(cells[0], cells[1:])
    assert [one.known["interleaved"] for one in cells] == [["two"], ["one"]]


def test_systems_that_stand_beside_one_are_taken_down_one_by_one_or_together(project, monkeypatch):
    folder = project()
    monkeypatch.chdir(folder)
    for name in ALL:
        testbed.bring_up(name, [{"host": {}}], "1", None, beside=name != ALL[0])
    assert [system["environment"] for system in state.all_up()] == list(ALL)
    assert [words.partition("(")[2] for words in testbed.take_down("two")] == ["two)"]
    assert [system["environment"] for system in state.all_up()] == ["one", "three"]
    testbed.bring_up("two", [{"host": {}}], "1", None)
    assert [system["environment"] for system in state.all_up()] == ["two"]
    testbed.take_down()
    assert state.read() == {"system": None, "cell": None}


@pytest.mark.parametrize("beside", ["a", [{"id": "x"}], [7]])
def test_what_makes_no_sense_beside_a_system_is_told(project, beside):
    project()
    owner = process.identity(os.getpid())
    system = {"id": "strata-x", "environment": "one", "owner": owner, "traces": []}
    state.write({"system": system, "beside": beside, "cell": None})
    assert "beside" in state.complaint()


# The log and its checks.


def test_a_log_is_split_into_laps_each_behind_what_came_before_all():
    assert logs.laps("a\n") == ["a\n"]
    assert logs.laps('first\n{"lap": 1}\none\n{"lap": 2}\ntwo\n') == ["first\none\n", "first\ntwo\n"]


@pytest.mark.parametrize(
    ("log", "passed"),
    [
        ('yes\n{"lap": 1}\nno\n{"lap": 2}\nno\n', True),
        ('{"lap": 1}\nyes\n{"lap": 2}\nno\n', False),
        ('{"lap": 1}\nyes\n{"lap": 2}\nyes\n', True),
    ],
)
def test_a_check_is_of_every_lap(log, passed):
    assert checks([{"name": "x", "pattern": "^yes$"}], log) == [{"name": "x", "passed": passed}]


# The declaration.


COUNT = {"about": "x", "schema": {"type": "integer"}, "value": 3}
PERCENTILE = {"label": "Rate", "unit": "1/s", "better": "higher", "statistic": "percentile"}
WRONG = [
    ({"laps": "lap"}, "laps"),
    ({"parameters": {"laps": COUNT}}, "laps"),
    ({"run": [{"argv": ["/bin/echo", "7"], "timeout": 20, "at": "client"}]}, "run.0"),
    ({"run": [{"observe": "cpu"}, *projects.NOOP["run"]]}, "run.0"),
    ({"metrics": {"rate": PERCENTILE}}, "metrics.rate.statistic"),
]


@pytest.mark.parametrize(("change", "key"), WRONG)
def test_laps_that_cannot_be_are_refused_by_key(project, change, key):
    project(workloads={"noop": {**projects.NOOP, **LAPS, **change}})
    with pytest.raises(UserError, match=rf"workload\.yaml: {key}: "):
        workload.load("noop")


def test_laps_are_of_the_plan_and_none_of_emulated_machines(checkout):
    from strata.experiment import plan

    assert workload.cell("stream", "smoke")["laps"] == "laps"
    planned = {"cell": {"laps": "laps"}, "parameters": {"laps": 5}}
    made = {"workloads": {"a": planned}, "environments": {"vm": {"emulated": True}, "docker": {}}}
    assert (plan.laps(made, "docker", "a"), plan.laps(made, "vm", "a")) == (5, 1)

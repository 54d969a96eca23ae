"""Cells that are measured in turns: on the host alone, whose systems stand idle like those of containers."""

import itertools
import json
import os
import random
import re
import subprocess
import time

import projects
import pytest

from strata.experiment import workload
from strata.measure.log_sections import checks
from strata.testbed import journal
from strata.util import paths, process
from strata.util.errors import UserError

LAPS = {
    "parameters": {
        "laps": {
            "about": "x",
            "schema": {"type": "integer", "minimum": 1, "maximum": 1000},
            "value": 3,
        },
        "number": projects.NOOP["parameters"]["number"],
    },
    "laps": "laps",
}
ALL = ("one", "three", "two")


@pytest.fixture
def planned(project):
    """A project of three environments that is planned."""

    def go(config=None, **changes):
        described = {"noop": {**projects.NOOP, **LAPS, **changes}}
        environments = {name: {"layers": ["host"]} for name in ALL}
        folder = project(projects.on_host(environments=environments, **(config or {})), described)
        projects.plan(folder)
        return folder

    return go


def measure(folder, environment, repetition=1):
    return projects.run(folder, "strata", "cell", environment, "noop", str(repetition))


def record(folder, environment, repetition=1, kind="raw"):
    return json.loads((folder / f"results/{kind}/{environment}/noop/{repetition}.json").read_text())


def log(folder, environment, repetition=1):
    return (folder / f"results/raw/{environment}/noop/{repetition}.log").read_text()


def test_cells_of_a_block_take_turns_and_each_is_put_in_place_when_it_is_asked_for(planned):
    trace = {"argv": ["/bin/sh", "-c", "echo 7; echo $PPID >>here"], "timeout": 20}
    folder = planned(run=[trace])
    first = measure(folder, "two")
    assert first.returncode == 0, first.stderr
    assert re.search(
        r"two · noop · repetition 1, in turns with (one, three|three, one) …", first.stderr
    )
    # The others were measured too, and nothing looks like that yet.
    assert sorted(os.listdir(folder / "results/raw")) == ["two"]
    runs = (folder / "here").read_text()
    assert len(runs.splitlines()) == 3 * 3
    for name in ("one", "three"):
        done = measure(folder, name)
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
        assert own["together"] == {"first": "two", "started": records["two"]["started"]}
    assert len({own["system"]["id"] for own in records.values()}) == 3
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
    assert journal.all_up() == []


def moment(text):
    hours, minutes, seconds = text.rstrip("Z").partition("T")[2].split(":")
    return 3600 * int(hours) + 60 * int(minutes) + float(seconds)


def test_the_order_within_a_lap_changes_with_the_lap_and_is_the_same_for_a_seed(planned):
    folder = planned({"workloads": {"noop": {"laps": 12}}})
    measure(folder, "two")
    done = {name: record(folder, name, kind="raw" if name == "two" else "pending") for name in ALL}
    taken = sorted(
        (c["started"], c["lap"], name) for name, own in done.items() for c in own["commands"]
    )
    orders = [tuple(name for _, of, name in taken if of == lap) for lap in range(1, 13)]
    assert len(set(orders)) > 2
    again = [sorted(ALL) for _ in orders]
    for lap, names in enumerate(again, 1):
        random.Random(f"1/noop/1/{lap}").shuffle(names)
    assert orders == [tuple(names) for names in again]


def test_only_those_of_the_block_take_part_that_are_due(planned):
    folder = planned()
    for name in ALL:
        measure(folder, name)
    (folder / "results/raw/one/noop/1.log").unlink()
    (folder / "results/raw/two/noop/1.log").unlink()
    others = [log(folder, "three"), record(folder, "three")]
    assert "in turns with two" in measure(folder, "one").stderr
    assert record(folder, "one")["interleaved"] == ["two"]
    assert [log(folder, "three"), record(folder, "three")] == others
    assert measure(folder, "two").returncode == 0
    # One that is missing alone is measured alone.
    (folder / "results/raw/two/noop/1.log").unlink()
    done = measure(folder, "two")
    assert done.returncode == 0, done.stderr
    assert "in turns" not in done.stderr
    assert not {"interleaved", "together"} & set(record(folder, "two"))
    assert log(folder, "two").count('{"lap": ') == 3


FAILS_ONCE = """
number=$(cat count 2>/dev/null || echo 0); echo $((number + 1)) >count
echo 7
[ "$number" != {failing} ]
"""


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_whoever_fails_takes_nobody_along(planned, failing):
    folder = planned(
        run=[{"argv": ["/bin/sh", "-c", FAILS_ONCE.format(failing=failing)], "timeout": 20}]
    )
    first = measure(folder, "two")
    if first.returncode:
        assert "cell failed: two · noop · repetition 1" in first.stderr
        assert journal.all_up() == []
        assert not (folder / "results/raw").exists()
        assert measure(folder, "one").returncode == 0
        assert record(folder, "one")["interleaved"] == ["three", "two"]
        return
    (failed,) = re.findall(r"cell: (\w+) · noop · repetition 1 no longer takes turns", first.stderr)
    (other,) = record(folder, "two")["interleaved"]
    assert {failed, other} == {"one", "three"}
    for name in (failed, other):
        done = measure(folder, name)
        assert done.returncode == 0, done.stderr
    assert "interleaved" not in record(folder, failed)
    assert record(folder, other)["interleaved"] == ["two"]


@pytest.mark.parametrize("laps", [0, 1, 7])
def test_what_is_killed_amid_turns_leaves_systems_that_the_next_removes_and_nothing_else(
    planned, laps
):
    """Killed while systems come up, in the first lap, and later."""
    slow = {
        "argv": ["/bin/sh", "-c", "echo $$ >>pids; echo 7; test -e fast || sleep 0.3"],
        "timeout": 90,
    }
    folder = planned(run=[slow])
    argv = projects.command("strata", "cell", "two", "noop", "1")
    measuring = subprocess.Popen(
        argv, cwd=folder, env=projects.environment(), stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 30
    pids = folder / "pids"
    while (
        len(journal.all_up()) < 1 or len(pids.read_text().split() if pids.exists() else []) < laps
    ):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    measuring.kill()
    measuring.wait()
    programs = map(int, pids.read_text().split() if laps else [])
    left = {system["id"] for system in journal.all_up()}
    assert left
    assert not (folder / "results/raw").exists()
    assert not (folder / "results/pending").exists()
    (folder / "fast").touch()
    done = measure(folder, "one")
    assert done.returncode == 0, done.stderr
    assert record(folder, "one")["interleaved"] == ["three", "two"]
    assert journal.all_up() == []
    assert not left & set(os.listdir(paths.systems()))
    assert not any(map(process.start_time, programs))
    # The killed one's own job takes what waits.
    assert measure(folder, "two").returncode == 0
    assert record(folder, "two")["together"] == record(folder, "one")["together"]


# The log and its checks.


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
WRONG = [
    ({"laps": "lap"}, "laps"),
    ({"parameters": {"laps": COUNT}}, "laps"),
    ({"run": [{"argv": ["/bin/echo", "7"], "timeout": 20, "fresh": "number"}]}, "run.0.fresh"),
]


@pytest.mark.parametrize(("change", "key"), WRONG)
def test_laps_that_cannot_be_are_refused_by_key(project, change, key):
    project(workloads={"noop": {**projects.NOOP, **LAPS, **change}})
    with pytest.raises(UserError, match=rf"workload\.yaml: {key}[.:]"):
        workload.load("noop")


def test_laps_are_of_the_plan_and_none_of_emulated_machines(checkout):
    from strata.experiment import plan

    assert workload.cell("stream", "tiny")["laps"] == "laps"
    planned = {"cell": {"laps": "laps"}, "parameters": {"laps": 5}}
    made = {"workloads": {"a": planned}, "environments": {"vm": {"emulated": True}, "docker": {}}}
    assert (plan.laps(made, "docker", "a"), plan.laps(made, "vm", "a")) == (5, 1)


def test_a_run_in_turns_is_limited_by_its_own_time_and_its_turns_are_in_the_log(planned):
    # On the bare host nothing is frozen, and what sleeps through the turns of others has slept.
    folder = planned(
        run=[{"argv": ["/bin/sh", "-c", "echo 7; sleep 1.5"], "timeout": 1.2}], turn=0.05
    )
    turns = {}
    for name in ("two", "one", "three"):
        done = measure(folder, name)
        assert done.returncode == 0, done.stderr
        own = record(folder, name)
        found = [
            json.loads(line)
            for line in log(folder, name).splitlines()
            if line.startswith('{"turns"')
        ]
        turns[name] = [turn for line in found for turn in line["turns"]]
        assert len(found) == len(own["commands"]) == 3
        worked = [sum(asked - begun for begun, asked, _ in line["turns"]) / 1e6 for line in found]
        for command, seconds in zip(own["commands"], worked, strict=True):
            assert command["seconds"] == pytest.approx(seconds, abs=0.1)
            assert command["seconds"] < 1.2
    # One goes on at a time.
    taken = sorted(turn for own in turns.values() for turn in own)
    assert all(begun <= asked <= frozen for begun, asked, frozen in taken)
    assert all(early[2] <= late[0] for early, late in itertools.pairwise(taken))

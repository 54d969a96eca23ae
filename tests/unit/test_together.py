"""Interleaved cells, on the bare host, whose systems use no CPU between commands."""

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
from strata.testbed import journal
from strata.util import paths, process

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
    """Plans a project of three environments, and returns its folder."""

    def make(config=None, **changes):
        workloads = {"noop": {**projects.NOOP, **LAPS, **changes}}
        environments = {name: {"layers": ["host"]} for name in ALL}
        settings = {"environments": environments, **(config or {})}
        folder = project(projects.on_host(**settings), workloads)
        projects.plan(folder)
        return folder

    return make


def measure(folder, environment, repetition=1):
    return projects.run(folder, "strata", "cell", environment, "noop", str(repetition))


def record(folder, environment, repetition=1, kind="raw"):
    return json.loads((folder / f"results/{kind}/{environment}/noop/{repetition}.json").read_text())


def log(folder, environment, repetition=1):
    return (folder / f"results/raw/{environment}/noop/{repetition}.log").read_text()


def test_cells_of_a_block_are_interleaved_and_each_is_put_in_place_by_its_own_job(planned):
    trace = {"argv": ["/bin/sh", "-c", "echo 7; echo $PPID >>here"], "timeout": 20}
    folder = planned(run=[trace])
    first = measure(folder, "two")
    assert first.returncode == 0, first.stderr
    assert re.search(
        r"two · noop · repetition 1, interleaved with (one, three|three, one) …", first.stderr
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
    for name, cell in records.items():
        assert cell["interleaved"] == [other for other in ALL if other != name]
        assert [command["lap"] for command in cell["commands"]] == [1, 2, 3]
        laps = [f'{{"lap": {lap}, "how": "whole"}}\n7\n' for lap in (1, 2, 3)]
        assert log(folder, name) == "".join(laps)
        assert cell["ways"] == ["whole"]
        assert cell["interference"] == records["one"]["interference"]
        assert cell["together"] == {"first": "two", "started": records["two"]["started"]}
    assert len({cell["system"]["id"] for cell in records.values()}) == 3
    # Within a lap one right after the other, and never two at a time.
    commands = in_order(records)
    assert [command["lap"] for command, _ in commands] == [1] * 3 + [2] * 3 + [3] * 3
    begins = [moment(command["started"]) for command, _ in commands]
    ends = [
        begin + command["seconds"] for begin, (command, _) in zip(begins, commands, strict=True)
    ]
    assert all(end <= begin + 0.002 for end, begin in zip(ends, begins[1:], strict=False))
    # The time of steps for all cells is shared.
    begin = moment(min(cell["started"] for cell in records.values()))
    end = moment(max(cell["ended"] for cell in records.values()))
    assert sum(cell["seconds"] for cell in records.values()) <= end - begin + 0.5
    assert journal.read_entries() == []


def in_order(records):
    """The commands of all cells in the order of their start, each with its environment."""
    commands = [(command, name) for name in records for command in records[name]["commands"]]
    return sorted(commands, key=lambda pair: pair[0]["started"])


def moment(text):
    hours, minutes, seconds = text.rstrip("Z").partition("T")[2].split(":")
    return 3600 * int(hours) + 60 * int(minutes) + float(seconds)


def test_the_order_within_a_lap_changes_with_the_lap_and_is_the_same_for_a_seed(planned):
    folder = planned({"workloads": {"noop": {"laps": 12}}})
    measure(folder, "two")
    kinds = {"one": "pending", "three": "pending", "two": "raw"}
    commands = in_order({name: record(folder, name, kind=kind) for name, kind in kinds.items()})
    orders = []
    for lap in range(1, 13):
        names = [name for command, name in commands if command["lap"] == lap]
        orders.append(names)
        expected = sorted(ALL)
        random.Random(f"1/noop/1/{lap}").shuffle(expected)
        assert names == expected
    assert len(set(map(tuple, orders))) > 2


def test_only_cells_of_the_block_that_are_due_take_part(planned):
    folder = planned()
    for name in ALL:
        measure(folder, name)
    (folder / "results/raw/one/noop/1.log").unlink()
    (folder / "results/raw/two/noop/1.log").unlink()
    untouched = [log(folder, "three"), record(folder, "three")]
    assert "interleaved with two" in measure(folder, "one").stderr
    assert record(folder, "one")["interleaved"] == ["two"]
    assert [log(folder, "three"), record(folder, "three")] == untouched
    assert measure(folder, "two").returncode == 0
    # The only missing cell of a block is measured alone.
    (folder / "results/raw/two/noop/1.log").unlink()
    done = measure(folder, "two")
    assert done.returncode == 0, done.stderr
    assert "interleaved with" not in done.stderr
    assert not {"interleaved", "together"} & set(record(folder, "two"))
    assert log(folder, "two").count('{"lap": ') == 3


FAILS_ONCE = """
number=$(cat count 2>/dev/null || echo 0); echo $((number + 1)) >count
echo 7
[ "$number" != {failing} ]
"""


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_cell_that_fails_ends_no_other(planned, failing):
    folder = planned(
        run=[{"argv": ["/bin/sh", "-c", FAILS_ONCE.format(failing=failing)], "timeout": 20}]
    )
    first = measure(folder, "two")
    if first.returncode:
        assert "cell failed: two · noop · repetition 1" in first.stderr
        assert journal.read_entries() == []
        assert not (folder / "results/raw").exists()
        assert measure(folder, "one").returncode == 0
        assert record(folder, "one")["interleaved"] == ["three", "two"]
        return
    (failed,) = re.findall(
        r"cell: (\w+) · noop · repetition 1 is no longer interleaved", first.stderr
    )
    (other,) = record(folder, "two")["interleaved"]
    assert {failed, other} == {"one", "three"}
    for name in (failed, other):
        done = measure(folder, name)
        assert done.returncode == 0, done.stderr
    assert "interleaved" not in record(folder, failed)
    assert record(folder, other)["interleaved"] == ["two"]


@pytest.mark.parametrize("laps", [0, 1, 7])
def test_a_block_that_is_killed_leaves_systems_that_the_next_removes_and_nothing_else(
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
        len(journal.read_entries()) < 1
        or len(pids.read_text().split() if pids.exists() else []) < laps
    ):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    measuring.kill()
    measuring.wait()
    programs = map(int, pids.read_text().split() if laps else [])
    left = {system["id"] for system in journal.read_entries()}
    assert left
    assert not (folder / "results/raw").exists()
    assert not (folder / "results/pending").exists()
    (folder / "fast").touch()
    done = measure(folder, "one")
    assert done.returncode == 0, done.stderr
    assert record(folder, "one")["interleaved"] == ["three", "two"]
    assert journal.read_entries() == []
    assert not left & set(os.listdir(paths.get_systems_folder()))
    assert not any(map(process.read_start_time, programs))
    # The killed cell's own job finds its pending results.
    assert measure(folder, "two").returncode == 0
    assert record(folder, "two")["together"] == record(folder, "one")["together"]


def test_laps_are_of_the_plan_and_none_of_emulated_machines(checkout):
    from strata.experiment import plan

    assert workload.plan_cell("stream", "tiny")["laps"] == "laps"
    planned = {"cell": {"laps": "laps"}, "parameters": {"laps": 5}}
    made = {"workloads": {"a": planned}, "environments": {"vm": {"emulated": True}, "docker": {}}}
    assert (plan.count_laps(made, "docker", "a"), plan.count_laps(made, "vm", "a")) == (5, 1)


def test_native_takes_its_run_in_slices_and_whole_and_a_cell_without_others_whole(planned):
    config = {"environments": {name: {"layers": ["host"]} for name in ("native", "two")}}
    step = {"argv": ["/bin/sh", "-c", "echo 7; sleep 0.1"], "timeout": 20}
    folder = planned(config, run=[step], slice=0.05)
    for name in ("two", "native"):
        done = measure(folder, name)
        assert done.returncode == 0, done.stderr
    ways = {"native": ["slices", "whole"], "two": ["slices"]}
    spans = {}
    for name, expected in ways.items():
        cell = record(folder, name)
        assert cell["ways"] == expected
        taken = [(command["lap"], command["how"]) for command in cell["commands"]]
        assert sorted(taken) == [(lap, way) for lap in (1, 2, 3) for way in expected]
        text = log(folder, name)
        markers = [json.loads(line) for line in text.splitlines() if line.startswith('{"lap"')]
        assert [(marker["lap"], marker["how"]) for marker in markers] == taken
        for command in cell["commands"]:
            begun = moment(command["started"])
            spans[name, command["lap"], command["how"]] = begun, begun + command["seconds"]
    for lap in (1, 2, 3):
        # While the whole run goes on, those in slices have not begun or have ended.
        begun, ended = spans["native", lap, "whole"]
        for name in ways:
            other_begun, other_ended = spans[name, lap, "slices"]
            assert other_ended <= begun + 0.01 or ended <= other_begun + 0.01
    (folder / "results/raw/two/noop/1.log").unlink()
    assert measure(folder, "two").returncode == 0
    assert record(folder, "two")["ways"] == ["whole"]


def test_a_run_in_slices_is_limited_by_its_own_time_and_its_slices_are_in_the_log(planned):
    # Nothing is frozen on the bare host: a program that sleeps goes on in the slices of others.
    folder = planned(
        run=[{"argv": ["/bin/sh", "-c", "echo 7; sleep 1.5"], "timeout": 1.2}], slice=0.05
    )
    all_slices = []
    for name in ("two", "one", "three"):
        done = measure(folder, name)
        assert done.returncode == 0, done.stderr
        commands = record(folder, name)["commands"]
        lines = [line for line in log(folder, name).splitlines() if line.startswith('{"slices"')]
        assert len(lines) == len(commands) == 3
        for command, line in zip(commands, lines, strict=True):
            slices = json.loads(line)["slices"]
            worked = sum(requested - thawed for thawed, requested, _ in slices) / 1e6
            assert command["seconds"] == pytest.approx(worked, abs=0.1)
            assert command["seconds"] < 1.2
            all_slices += slices
    # One goes on at a time.
    all_slices.sort()
    for thawed, requested, frozen in all_slices:
        assert thawed <= requested <= frozen
    for early, late in itertools.pairwise(all_slices):
        assert early[2] <= late[0]

"""What an environment is found unable to do: a result of its own, found in the first round and asked no more."""

import copy
import json
from types import SimpleNamespace

import measured
import pytest

from strata.base.errors import CellFailed, Endless, Unable
from strata.cell import cell as one
from strata.cell import logs
from strata.experiment import blocks


def experiment(**given):
    environments = {name: {"available": True, "emulated": False} for name in ("native", "docker", "gvisor")}
    environments["gvisor"]["doubtful"] = True
    return {
        "seed": 1,
        "order": "blocks",
        "repetitions": 300,
        "precision": {"min": 3, "max": 300, "target": 0.02, "budget": None, "retries": 2},
        "environments": environments,
        "workloads": {"pxz": {}, "stream": {}},
        **given,
    }


def find(folder, environment, workload, repetition=1, **told):
    path = folder / f"results/raw/{environment}/{workload}/{repetition}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told or {"cannot": {"reason": "no such call", "commands": []}}))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cells_of(order, environment, workload):
    return [cell for cell in order.cells() if cell[:2] == (environment, workload)]


def test_what_an_environment_cannot_do_is_asked_no_more_after_the_first_round(folder):
    measured.decide(folder, experiment(), 3, {"pxz": 4, "stream": 4})
    find(folder, "gvisor", "pxz")
    order = blocks.Order(experiment())
    assert [cell[2] for cell in cells_of(order, "gvisor", "pxz")] == [1, 2, 3]
    assert len(cells_of(order, "docker", "pxz")) == len(cells_of(order, "gvisor", "stream")) == 7
    assert order.next_block("pxz") == ["docker", "native"]
    assert ("gvisor", "pxz", 4) not in order.places


def test_the_first_round_stays_as_it_was_planned(folder):
    before = blocks.Order(experiment()).cells()
    find(folder, "gvisor", "pxz")
    assert blocks.Order(experiment()).cells() == before


def test_of_an_environment_that_has_to_do_everything_nothing_like_that_is_heard(folder):
    measured.decide(folder, experiment(), 3, {"pxz": 4, "stream": 4})
    find(folder, "docker", "pxz")
    find(folder, "gvisor", "pxz", format=1)
    order = blocks.Order(experiment())
    assert {len(cells_of(order, *pair)) for pair in [("docker", "pxz"), ("gvisor", "pxz")]} == {7}


class Cell(one.Cell):
    """One whose log and commands are given."""

    def __init__(self, folder, log, commands):
        printed = logs.Log(str(folder / "draft"))
        printed.write(log.removesuffix("\n"))
        self.steps = SimpleNamespace(log=printed)
        self.known = {"commands": commands}


def test_the_finding_says_what_failed_and_what_was_said_last(folder):
    commands = [{"step": "prepare", "argv": ["a"], "exit": 0}, {"step": "warmup", "argv": ["b"], "exit": 3}]
    cell = Cell(folder, "first\n\nsecond\nstatx: Invalid argument\n\n", copy.deepcopy(commands))
    cell.note_that_it_cannot(CellFailed("its warmup step ended with exit code 3"))
    assert cell.known["cannot"] == {
        "reason": "its warmup step ended with exit code 3; it said last: first / second / statx: Invalid argument",
        "commands": commands[1:],
    }
    assert cell.known["commands"] == commands[:1]
    assert cell.known["checks"] == []
    assert cell.known["log"]["bytes"] > 0
    silent = Cell(folder, "", [])
    silent.note_that_it_cannot(CellFailed("its server db was not ready\nafter 30 s"))
    assert silent.known["cannot"] == {"reason": "its server db was not ready after 30 s", "commands": []}


class Failing(one.Cell):
    """One in which something failed."""

    def __init__(self, folder, mark="same", doubtful=True):
        self.known = {"fingerprint": mark}
        self.environment, self.workload, self.repetition = "gvisor", "pxz", 2
        self.entry = {"doubtful": doubtful}


def test_what_was_done_in_another_repetition_is_no_inability(folder):
    said = Unable("its run step ended with exit code 1")
    assert Failing(folder).shows_inability(said)
    assert not Failing(folder, doubtful=False).shows_inability(said)
    find(folder, "gvisor", "pxz", fingerprint="same", cannot={})
    assert Failing(folder).shows_inability(said)
    find(folder, "gvisor", "pxz", 3, fingerprint="same")
    assert not Failing(folder).shows_inability(said)
    assert Failing(folder, "another").shows_inability(said)


def test_what_came_to_no_end_is_an_inability_only_where_another_repetition_failed(folder):
    late = Endless("its run step was ended: no end after 60 s")
    assert not Failing(folder).shows_inability(late)
    find(folder, "gvisor", "pxz", fingerprint="same", cannot={})
    assert Failing(folder).shows_inability(late)
    assert not Failing(folder, "another").shows_inability(late)
    find(folder, "gvisor", "pxz", 3, fingerprint="same")
    assert not Failing(folder).shows_inability(late)

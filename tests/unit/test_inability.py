"""What an environment is found unable to do: a result of its own, found in the first round and asked no more."""

import json

import measured
import pytest

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

"""What decides a cell's result, and the seal of a plan before its first run."""

import pytest
from test_blocks import experiment

from strata.archive import seal
from strata.experiment import plan
from strata.util.errors import UserError


def test_a_seed_is_shared_by_environments_and_differs_between_blocks_and_workloads():
    seeds = {
        (workload, block): plan.compute_cell_seed(experiment(), workload, block)
        for workload in "ab"
        for block in (1, 2)
    }
    assert len(set(seeds.values())) == 4
    assert all(0 <= seed < 2**31 for seed in seeds.values())


@pytest.mark.parametrize(
    ("path", "value", "same"),
    [
        (["seed"], 2, False),
        (["scale"], "standard", False),
        (["image", "recipe"], "other", False),
        (["environments", "native", "layers"], [{"native": {"option": 1}}], False),
        (["workloads", "a", "parameters", "size"], 2, False),
        (["workloads", "a", "cell", "steps", 0, "argv"], ["a", "-x"], False),
        (["workloads", "a", "cell", "steps", 0, "timeout"], 99, True),
        (["workloads", "a", "cell", "slice"], 0.1, False),
        (["workloads", "a", "cell", "laps"], "again", False),
        (["workloads", "b", "cell", "slice"], 0.1, True),
        (["repetitions"], 30, True),
        (["environments", "docker", "layers"], [], True),
        (["workloads", "b", "parameters", "size"], 2, True),
    ],
)
def test_the_fingerprint_follows_what_decides_a_result_and_nothing_else(path, value, same):
    before = plan.compute_fingerprint(experiment(), "native", "a")
    changed = experiment()
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert (plan.compute_fingerprint(changed, "native", "a") == before) is same


@pytest.mark.parametrize(
    ("environment", "kinds", "entry", "chosen", "ways"),
    [
        ("native", ["bare"], {}, {}, ["slices", "whole"]),
        ("docker", ["container"], {}, {}, ["slices"]),
        ("docker", ["container"], {}, {"ways": "both"}, ["slices", "whole"]),
        ("gvisor", ["sandbox"], {}, {}, ["whole"]),
        ("gvisor", ["sandbox"], {}, {"ways": "both"}, ["slices", "whole"]),
        ("vm", ["machine"], {}, {"ways": "both"}, ["whole"]),
        ("vm", ["machine", "container"], {}, {}, ["whole"]),
        ("beside", ["bare"], {"counterpart": True}, {}, ["whole"]),
    ],
)
def test_how_a_cell_takes_its_run_follows_from_its_layers(environment, kinds, entry, chosen, ways):
    entry = {
        "emulated": False,
        "layers": [],
        "descriptions": [{"kind": kind} for kind in kinds],
        **entry,
    }
    made = {**experiment(), **chosen, "environments": {environment: entry}}
    assert plan.list_run_ways(made, environment, "a") == ["whole"]
    plain = plan.compute_fingerprint(made, environment, "a")
    made["workloads"]["a"]["cell"]["slice"] = 0.05
    assert plan.list_run_ways(made, environment, "a") == ways
    # Slices, and the ways, decide the result; without slices their length does not.
    first = plan.compute_fingerprint(made, environment, "a")
    made["workloads"]["a"]["cell"]["slice"] = 0.1
    assert (plan.compute_fingerprint(made, environment, "a") == first) is ("slices" not in ways)
    assert (first == plain) is (environment == "beside")


def test_a_seal_shows_whether_the_plan_was_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = {"revision": "a" * 40, "changed": False}
    made = {"seed": 1, "environments": {"native": {}}, "workloads": {"stream": {}}}
    with pytest.raises(UserError, match="KVM"):
        seal.seal_plan({**made, "environments": {"vm": {"accelerator": None}}}, source)
    assert seal.read_seal(made) is None
    content = seal.seal_plan(made, source)
    assert content["sha256"] == seal.hash_plan({**made, "source": source, "sealed": content})
    assert seal.read_seal(made)["kept"] is True
    assert seal.read_seal({**made, "seed": 2})["kept"] is False
    with pytest.raises(UserError, match="sealed already"):
        seal.seal_plan(made, source)
    (tmp_path / seal.FILE).unlink()
    log = tmp_path / "results/raw/native/stream/1.log"
    log.parent.mkdir(parents=True)
    log.touch()
    with pytest.raises(UserError, match="before the first"):
        seal.seal_plan(made, source)

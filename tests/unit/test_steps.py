"""The steps of a cell on the host alone, and what of them decides a result."""

import copy
import json

import projects
import pytest

from strata.experiment import plan, workload
from strata.util.errors import UserError

SWEEP = {
    **projects.NOOP,
    "parameters": {
        "sizes": {"about": "x", "schema": {"type": "array"}, "value": [2, 1]},
        "ways": {"about": "x", "schema": {"type": "array"}, "value": ["in", "out"]},
    },
    "run": [
        {
            "for": "sizes",
            "steps": [
                {"argv": ["/bin/echo", "{sizes}", "{ways}"], "timeout": 20},
                {
                    "for": "ways",
                    "steps": [{"argv": ["/bin/echo", "{sizes}", "{ways}"], "timeout": 20}],
                },
                {"observe": "cpu"},
            ],
        }
    ],
}


def test_a_group_is_done_for_every_value_in_order(project):
    folder = project(workloads={"noop": SWEEP})
    projects.plan(folder)
    done = projects.run(folder, "strata", "cell", "bare", "noop", "1")
    assert done.returncode == 0, done.stderr
    lines = (folder / "results/raw/bare/noop/1.log").read_text().splitlines()
    words = [line for line in lines if not line.startswith("{")]
    assert words == ["2 in,out", "2 in", "2 out", "1 in,out", "1 in", "1 out"]
    assert [place for place, line in enumerate(lines) if line.startswith("{")] == [3, 7]
    first, second = (json.loads(line) for line in lines if line.startswith("{"))
    assert set(first) == {"observed", "seconds", "busy_seconds", "steal_seconds", "cpus", "cycles"}
    assert second["seconds"] > first["seconds"]
    assert second["busy_seconds"] >= first["busy_seconds"]


def changed(path, value):
    data = copy.deepcopy(SWEEP)
    *way, last = path
    part = data
    for step in way:
        part = part[step]
    part[last] = value
    return data


SERVER = {
    "name": "a",
    "argv": ["x"],
    "ready": {"argv": ["x"], "timeout": 1},
    "stop": {"timeout": 1},
}
WRONG = [
    (["run", 0, "for"], "moon", "run.0.for"),
    (["run", 0, "steps", 1, "for"], "size", "run.0.steps.1.for"),
    (["run", 0, "steps", 0, "argv"], ["/bin/echo", "{moon}"], "run.0.steps.0.argv"),
    (["run", 0, "steps", 2, "observe"], "sky", "run.0.steps.2.observe"),
    (["run", 0, "steps", 2, "argv"], ["x"], "run.0.steps.2"),
    (["run", 0, "argv"], ["x"], "run.0"),
    (["ports"], ["door"], "ports.0"),
    (["data"], {"argv": ["make", "{moon}"], "timeout": 5}, "data.argv"),
    (["run", 0, "steps", 0, "at"], "moon", "run.0.steps.0.at"),
    (["run", 0, "steps", 0, "fresh"], "ways", "run.0.steps.0.fresh"),
    (["servers"], [{**SERVER, "argv": ["x", "{moon}"]}], "servers.0.argv"),
    (
        ["servers"],
        [{key: value for key, value in SERVER.items() if key != "ready"}],
        "servers.0.ready",
    ),
]


@pytest.mark.parametrize(("path", "value", "key"), WRONG)
def test_a_wrong_step_is_refused_by_its_key(project, path, value, key):
    project(workloads={"noop": changed(path, value)})
    with pytest.raises(UserError, match=rf"workload\.yaml: {key}: "):
        workload.load("noop")


def planned(data, tmp_path, monkeypatch, scale="tiny"):
    monkeypatch.chdir(tmp_path)
    projects.write_yaml(tmp_path / "workloads/w/workload.yaml", data)
    workload.load.cache_clear()
    cell = workload.cell("w", scale)
    workload.load.cache_clear()
    return cell


def experiment(cell):
    return {
        "seed": 1,
        "machine": {"mask": None},
        "scale": "tiny",
        "image": {"recipe": "r"},
        "client": {"kind": "namespace", "rate": None},
        "environments": {"e": {"layers": []}},
        "workloads": {"w": {"parameters": {"port": 5, "other": 3}, "cell": cell}},
    }


def test_a_fingerprint_changes_with_what_decides_a_result_and_with_nothing_else(
    tmp_path, monkeypatch
):
    seen = set()
    server = {
        "name": "a",
        "argv": ["x"],
        "ready": {"argv": ["y"], "timeout": 1},
        "stop": {"timeout": 1},
    }
    for data in (
        SWEEP,
        changed(["run", 0, "for"], "ways"),
        changed(["run", 0, "steps", 0, "at"], "client"),
        changed(["servers"], [server]),
        changed(["servers"], [{**server, "argv": ["z"]}]),
        changed(["data"], {"argv": ["x"], "timeout": 1}),
    ):
        seen.add(plan.fingerprint(experiment(planned(data, tmp_path, monkeypatch)), "e", "w"))
    assert len(seen) == 6
    longer = changed(["run", 0, "steps", 0, "timeout"], 99)
    assert plan.fingerprint(experiment(planned(longer, tmp_path, monkeypatch)), "e", "w") in seen


def test_the_client_decides_the_result_of_those_who_use_it_alone(tmp_path, monkeypatch):
    alone = experiment(planned(SWEEP, tmp_path, monkeypatch))
    beside = experiment(
        planned(changed(["run", 0, "steps", 0, "at"], "client"), tmp_path, monkeypatch)
    )
    prints = [plan.fingerprint(one, "e", "w") for one in (alone, beside)]
    for one in (alone, beside):
        one["client"]["rate"] = "1gbit"
    assert plan.fingerprint(alone, "e", "w") == prints[0]
    assert plan.fingerprint(beside, "e", "w") != prints[1]
    assert plan.uses_client(beside["workloads"]["w"]["cell"])
    assert not plan.uses_client(alone["workloads"]["w"]["cell"])

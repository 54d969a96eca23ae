"""The steps of a cell on the host alone, and which of their changes measure a cell again."""

import json

import projects
from test_declarations import SERVER, SWEEP, changed

from strata.experiment import plan, workload


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


def planned(data, tmp_path, monkeypatch, scale="tiny"):
    monkeypatch.chdir(tmp_path)
    projects.write_yaml(tmp_path / "workloads/w/workload.yaml", data)
    workload.read_declaration.cache_clear()
    cell = workload.plan_cell("w", scale)
    workload.read_declaration.cache_clear()
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
    def fingerprint(data):
        return plan.compute_fingerprint(experiment(planned(data, tmp_path, monkeypatch)), "e", "w")

    fingerprints = set()
    for data in (
        SWEEP,
        changed(SWEEP, ["run", 0, "for"], "ways"),
        changed(SWEEP, ["run", 0, "steps", 0, "at"], "client"),
        changed(SWEEP, ["run", 0, "steps", 0, "neighbour"], "busy"),
        changed(SWEEP, ["servers"], [SERVER]),
        changed(SWEEP, ["servers"], [{**SERVER, "argv": ["z"]}]),
        changed(SWEEP, ["data"], {"argv": ["x"], "timeout": 1}),
    ):
        fingerprints.add(fingerprint(data))
    assert len(fingerprints) == 7
    assert fingerprint(changed(SWEEP, ["run", 0, "steps", 0, "timeout"], 99)) in fingerprints


def test_the_client_decides_the_result_of_those_who_use_it_alone(tmp_path, monkeypatch):
    at_client = changed(SWEEP, ["run", 0, "steps", 0, "at"], "client")
    for data, uses_client in ((SWEEP, False), (at_client, True)):
        made = experiment(planned(data, tmp_path, monkeypatch))
        fingerprint = plan.compute_fingerprint(made, "e", "w")
        made["client"]["rate"] = "1gbit"
        assert (plan.compute_fingerprint(made, "e", "w") != fingerprint) == uses_client
        assert plan.has_client_commands(made["workloads"]["w"]["cell"]) == uses_client

"""Several equal systems at the same time, on the host alone: their outputs, and their failures."""

import json
import os
import subprocess
import time

import projects
import pytest

from strata.experiment import plan
from strata.testbed import journal

NUMBER = {
    "about": "Systems",
    "schema": {"type": "integer", "minimum": 1, "maximum": 64},
    "value": 2,
}


def several(script="echo 7", systems=2, timeout=20, **changes):
    """A workload whose command, a script, gets the number of its system."""
    return {
        **projects.NOOP,
        "parameters": {**projects.NOOP["parameters"], "systems": {**NUMBER, "value": systems}},
        "systems": "systems",
        "run": [{"argv": ["/bin/sh", "-c", script, "sh", "{part}"], "timeout": timeout}],
        **changes,
    }


@pytest.fixture
def run(project):
    """Plan a project with one workload and measure its first cell on the host."""

    def go(data):
        folder = project(workloads={"noop": data})
        projects.plan(folder)
        return folder, projects.run(folder, "strata", "cell", "bare", "noop", "1")

    return go


def read(folder, suffix, kind="raw"):
    return (folder / f"results/{kind}/bare/noop/1.{suffix}").read_text()


def test_systems_run_at_the_same_time_and_their_outputs_stand_apart(run, tmp_path):
    # Each waits for the other: one after the other they would wait in vain.
    meet = f"touch {tmp_path}/$1; until [ -e {tmp_path}/0 -a -e {tmp_path}/1 ]; do sleep 0.01; done"
    working = several(f"{meet}; echo 7$1; date +%s%N; sleep 0.3; date +%s%N")
    folder, done = run(working | {"run": [{"observe": "cpu"}, *working["run"], {"observe": "cpu"}]})
    assert done.returncode == 0, done.stderr
    before, *lines, of_none, after = read(folder, "log").splitlines()
    # Observations of the host belong to no system.
    assert {text.partition(":")[0] for text in (before, after)} == {'{"observed"'}
    assert of_none == '{"system": null}'
    assert lines[:2] == ['{"system": 0}', "70"]
    assert lines[4:6] == ['{"system": 1}', "71"]
    first, second = (tuple(map(int, lines[at : at + 2])) for at in (2, 6))
    assert max(first[0], second[0]) < min(first[1], second[1])
    record = json.loads(read(folder, "json"))
    ends = [(command["system"], command["exit"]) for command in record["commands"]]
    assert ends == [(0, 0), (1, 0)]
    assert [command["argv"][-1] for command in record["commands"]] == ["0", "1"]
    assert record["parameters"] == {"number": 7, "systems": 2}
    assert record["system"]["count"] == 2
    ids = [system["id"] for system in record["system"]["each"]]
    assert ids == [f"{record['system']['id']}-{part}" for part in (0, 1)]
    assert journal.read_entries() == []


def test_a_bad_end_of_one_ends_all_and_says_in_which(run, tmp_path):
    fails = 'if [ "$1" = 1 ]; then sleep 0.3; exit 5; fi'
    script = f"echo $1; {fails}; echo $$ >{tmp_path}/pid; sleep 4321"
    begun = time.monotonic()
    folder, done = run(several(script, timeout=60))
    assert done.returncode == 1
    assert "its run step in system 1 ended with exit code 5" in done.stderr
    assert time.monotonic() - begun < 30
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text().strip()}")
    assert not (folder / "results/raw").exists()
    # The output of both is kept.
    assert read(folder, "log", "failed") == '{"system": 0}\n0\n{"system": 1}\n1\n'
    exits = [command["exit"] for command in json.loads(read(folder, "json", "failed"))["commands"]]
    assert exits == [None, 5]


def test_a_log_is_refused_for_the_output_of_one_system(run):
    _, done = run(several('if [ "$1" = 0 ]; then echo 7; else echo broken; fi'))
    assert done.returncode == 1
    assert "its parser refuses the log: system 1: its program is broken" in done.stderr


def test_a_system_that_is_killed_with_its_cell_is_removed_with_the_others(project):
    folder = project(workloads={"noop": several("echo 7; sleep 4325", systems=3, timeout=60)})
    projects.plan(folder)
    measuring = projects.start(
        folder, "strata", "cell", "bare", "noop", "1", output=subprocess.DEVNULL
    )
    pids = ["pgrep", "-f", "^sleep 4325$"]
    projects.until(
        lambda: len(subprocess.run(pids, capture_output=True, check=False).stdout.split()) == 3
    )
    systems = os.path.join(os.environ["STRATA_HOME"], "systems")
    id = journal.read_entries()[-1]["id"]
    assert sorted(os.listdir(systems)) == [f"{id}-{part}" for part in range(3)]
    measuring.kill()
    measuring.wait()
    projects.good(folder, "strata", "clean")
    assert os.listdir(systems) == []
    assert subprocess.run(pids, capture_output=True, check=False).stdout == b""


def fingerprint(number, **cell):
    planned = {"parameters": {"n": number}, "cell": {"steps": [], **cell}}
    experiment = {
        "seed": 1,
        "machine": {"mask": None},
        "scale": "tiny",
        "image": {"recipe": "r"},
        "environments": {"e": {"layers": []}},
        "workloads": {"w": planned},
    }
    return plan.compute_fingerprint(experiment, "e", "w")


def test_the_number_of_systems_decides_a_result_and_one_is_as_none():
    assert fingerprint(1, systems="n") == fingerprint(1)
    assert fingerprint(2, systems="n") != fingerprint(2)
    assert fingerprint(2, systems="n") != fingerprint(3, systems="n")

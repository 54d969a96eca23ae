"""Several equal systems at the same time: real processes on the host, and their failures."""

import json
import os
import subprocess
import time

import projects
import pytest

from strata.experiment import config, plan, workload
from strata.host import capacity
from strata.measure import log_sections
from strata.testbed import journal
from strata.util.errors import UserError

NUMBER = {
    "about": "Systems",
    "schema": {"type": "integer", "minimum": 1, "maximum": 64},
    "value": 2,
}
PORT = {"about": "x", "schema": {"type": "integer"}, "value": 7000}


def several(script="echo 7", systems=2, timeout=20, **changes):
    """Return a workload whose run step is a script with the number of its system as argument."""
    return {
        **projects.NOOP,
        "parameters": {**projects.NOOP["parameters"], "systems": {**NUMBER, "value": systems}},
        "systems": "systems",
        "run": [{"argv": ["/bin/sh", "-c", script, "sh", "{part}"], "timeout": timeout}],
        **changes,
    }


@pytest.fixture
def run(project):
    """Return the function that measures a workload's first cell in a new project.

    It returns the project's folder and the finished process.
    """

    def measure_first_cell(data):
        folder = project(workloads={"noop": data})
        projects.plan(folder)
        return folder, projects.run(folder, "strata", "cell", "bare", "noop", "1")

    return measure_first_cell


def read(folder, suffix, kind="raw"):
    """Return the text of the first cell's log or record."""
    return (folder / f"results/{kind}/bare/noop/1.{suffix}").read_text()


def test_systems_run_at_the_same_time_and_their_outputs_are_separate(run, tmp_path):
    # Each marks that it has begun and waits for the other's mark: one after the other would hang.
    meet = f"touch {tmp_path}/$1; until [ -e {tmp_path}/0 -a -e {tmp_path}/1 ]; do sleep 0.01; done"
    working = several(f"{meet}; echo 7$1; date +%s%N; sleep 0.3; date +%s%N")
    folder, done = run(working | {"run": [{"observe": "cpu"}, *working["run"], {"observe": "cpu"}]})
    assert done.returncode == 0, done.stderr
    before, *lines, no_system, after = read(folder, "log").splitlines()
    # Observations of the host belong to no system.
    assert {text.partition(":")[0] for text in (before, after)} == {'{"observed"'}
    assert no_system == '{"system": null}'
    assert lines[:2] == ['{"system": 0}', "70"]
    assert lines[4:6] == ['{"system": 1}', "71"]
    begun, ended = zip(*(map(int, lines[start : start + 2]) for start in (2, 6)), strict=True)
    assert max(begun) < min(ended)
    record = json.loads(read(folder, "json"))
    commands = [
        (command["system"], command["exit"], command["argv"][-1]) for command in record["commands"]
    ]
    assert commands == [(0, 0, "0"), (1, 0, "1")]
    assert record["parameters"] == {"number": 7, "systems": 2}
    assert record["checks"] == [{"name": "printed", "passed": True}]
    assert record["system"]["parts"] == 2
    id = record["system"]["id"]
    assert [system["id"] for system in record["system"]["each"]] == [f"{id}-0", f"{id}-1"]
    assert journal.all_up() == []


def test_a_failure_in_one_system_ends_all_and_names_the_system(run, tmp_path):
    script = (
        f'echo $1; if [ "$1" = 1 ]; then sleep 0.3; exit 5; fi; echo $$ >{tmp_path}/pid; sleep 4321'
    )
    begun = time.monotonic()
    folder, done = run(several(script, timeout=60))
    assert done.returncode == 1
    assert "its run step in system 1 ended with exit code 5" in done.stderr
    assert time.monotonic() - begun < 30
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text().strip()}")
    assert not (folder / "results/raw").exists()
    # The output of both is kept with the failure.
    assert read(folder, "log", "failed") == '{"system": 0}\n0\n{"system": 1}\n1\n'
    exits = [command["exit"] for command in json.loads(read(folder, "json", "failed"))["commands"]]
    assert exits == [None, 5]


def test_a_check_must_hold_in_every_system(run):
    _, done = run(several('if [ "$1" = 0 ]; then echo 7; else echo seven; fi'))
    assert done.returncode == 1
    assert "its check failed: printed" in done.stderr


def test_clean_removes_all_systems_of_a_killed_cell(project):
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
    id = journal.all_up()[-1]["id"]
    assert sorted(os.listdir(systems)) == [f"{id}-{part}" for part in range(3)]
    children = subprocess.check_output(["pgrep", "-P", str(measuring.pid)], text=True).split()
    measuring.kill()
    measuring.wait()
    for child in children:
        os.killpg(int(child), 9)
    projects.good(folder, "strata", "clean")
    assert os.listdir(systems) == []


def test_a_pattern_that_the_client_prints_counts_for_all():
    log = '{"system": 0}\nno\n{"system": 1}\nno\n{"system": null}\nyes\n'
    declared = [
        {"name": "yes", "pattern": "^yes$"},
        {"name": "no", "pattern": "^no$"},
        {"name": "x", "pattern": "^x$"},
    ]
    assert [check["passed"] for check in log_sections.checks(declared, log, 2)] == [
        True,
        True,
        False,
    ]
    assert [
        check["passed"]
        for check in log_sections.checks(declared, log.replace("1}\nno", "1}\nna"), 2)
    ] == [
        True,
        False,
        False,
    ]
    # The line that tells of systems is nobody's own.
    assert not log_sections.checks([{"name": "x", "pattern": "system"}], log, 2)[0]["passed"]


# The declaration, and the plan that follows from it.

DECLARED = {**projects.NOOP, "parameters": {"number": NUMBER}, "systems": "number"}
WAY = {
    "about": "x",
    "schema": {"type": "string", "enum": ["restored", "booted"]},
    "value": "booted",
}
MISTAKES = [
    ({"systems": "numbers"}, "systems"),
    ({"parameters": {"number": {**NUMBER, "schema": {"type": "integer"}}}}, "systems"),
    (
        {"parameters": {"number": {**NUMBER, "schema": {**NUMBER["schema"], "maximum": 65}}}},
        "systems",
    ),
    ({"parameters": {"number": {**NUMBER, "value": {"rule": "cpus"}}}}, "systems"),
    (
        {
            "parameters": {"number": NUMBER, "way": WAY},
            "run": [{"argv": ["x"], "fresh": "way", "timeout": 5}],
        },
        "run.0.fresh",
    ),
    ({"data": {"argv": ["make", "{part}"], "timeout": 5}}, "data.argv"),
    ({"data": {"argv": ["make", "{address}"], "timeout": 5}}, "data.argv"),
]


@pytest.mark.parametrize(("change", "key"), MISTAKES)
def test_a_wrong_declaration_is_refused_with_its_key(project, change, key):
    project(workloads={"noop": {**DECLARED, **change}})
    with pytest.raises(UserError, match=rf"workload\.yaml: {key}[.:]"):
        workload.load("noop")


def test_ports_that_two_systems_would_share_are_refused(project):
    parameters = {"systems": {**NUMBER, "value": 3}, "one": PORT, "two": {**PORT, "value": 7002}}
    project(workloads={"noop": several(parameters=parameters, ports=["one", "two"])})
    with pytest.raises(UserError, match=r"config\.yaml: workloads\.noop\.two: "):
        config.experiment(config.read(), capacity.facts())


@pytest.mark.parametrize(
    ("port", "laps", "systems", "limit"),
    [
        (65535, 1, 1, None),
        (65343, 8, 1, None),
        (65344, 8, 1, 65343),
        (65534, 1, 3, 65533),
        (0, 1, 1, 1),
        (65343, 8, 2, 65342),
    ],
)
def test_a_port_outside_the_range_in_some_system_is_refused_with_its_limit(
    port, laps, systems, limit
):
    values = {"port": port, "laps": laps, "systems": systems}
    entry = {
        "parameters": values,
        "cell": {"ports": ["port"], "laps": "laps", "systems": "systems"},
    }
    mistakes = [*plan.wrong_ports({"w": entry}, 4)]
    limits = [(key, int(sentence.rpartition(" ")[2])) for key, sentence in mistakes]
    assert limits == ([] if limit is None else [("workloads.w.port", limit)])


def fingerprint(number, **keys):
    """Return the fingerprint of a cell with these keys and the parameter n."""
    planned = {"parameters": {"n": number}, "cell": {"steps": [], **keys}}
    environments = {"e": {"layers": []}}
    facts = {
        "seed": 1,
        "machine": {"mask": None},
        "scale": "tiny",
        "image": {"recipe": "r"},
        "environments": environments,
    }
    return plan.fingerprint({**facts, "workloads": {"w": planned}}, "e", "w")


def test_the_fingerprint_follows_the_number_of_systems():
    assert fingerprint(1, systems="n") == fingerprint(1)
    assert fingerprint(2, systems="n") != fingerprint(2)
    assert fingerprint(2, systems="n") != fingerprint(3, systems="n")

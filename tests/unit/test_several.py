"""Several equal systems at the same time, on the host alone: real processes, their outputs, and who fails whom."""

import json
import os
import subprocess
import time
import types

import projects
import pytest

from strata.environments.common import registry
from strata.experiment import config, plan, workload
from strata.host import capacity
from strata.measure import log_sections, steps
from strata.measure.arguments import Inputs
from strata.testbed import journal
from strata.util import clock
from strata.util.errors import UserError

NUMBER = {
    "about": "Systems",
    "schema": {"type": "integer", "minimum": 1, "maximum": 64},
    "value": 2,
}
PORT = {"about": "x", "schema": {"type": "integer"}, "value": 7000}


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
    # Each says that it is there and waits for the other, which one after the other would be in vain.
    meet = f"touch {tmp_path}/$1; until [ -e {tmp_path}/0 -a -e {tmp_path}/1 ]; do sleep 0.01; done"
    working = several(f"{meet}; echo 7$1; date +%s%N; sleep 0.3; date +%s%N")
    folder, done = run(working | {"run": [{"observe": "cpu"}, *working["run"], {"observe": "cpu"}]})
    assert done.returncode == 0, done.stderr
    before, *lines, of_none, after = read(folder, "log").splitlines()
    # What is observed of the host is of no system.
    assert {text.partition(":")[0] for text in (before, after)} == {'{"observed"'}
    assert of_none == '{"system": null}'
    assert lines[:2] == ['{"system": 0}', "70"]
    assert lines[4:6] == ['{"system": 1}', "71"]
    first, second = (tuple(map(int, lines[at : at + 2])) for at in (2, 6))
    assert max(first[0], second[0]) < min(first[1], second[1])
    record = json.loads(read(folder, "json"))
    assert [(command["system"], command["exit"]) for command in record["commands"]] == [
        (0, 0),
        (1, 0),
    ]
    assert [command["argv"][-1] for command in record["commands"]] == ["0", "1"]
    assert record["parameters"] == {"number": 7, "systems": 2}
    assert record["checks"] == [{"name": "printed", "passed": True}]
    assert record["system"]["parts"] == 2
    assert [one["id"] for one in record["system"]["each"]] == [
        f"{record['system']['id']}-{part}" for part in (0, 1)
    ]
    assert journal.all_up() == []


def test_a_bad_end_of_one_ends_all_and_says_in_which(run, tmp_path):
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
    # What both had printed is kept for who looks.
    assert read(folder, "log", "failed") == '{"system": 0}\n0\n{"system": 1}\n1\n'
    exits = [command["exit"] for command in json.loads(read(folder, "json", "failed"))["commands"]]
    assert exits == [None, 5]


def test_a_check_must_hold_in_every_system(run):
    _, done = run(several('if [ "$1" = 0 ]; then echo 7; else echo seven; fi'))
    assert done.returncode == 1
    assert "its check failed: printed" in done.stderr


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
    id = journal.all_up()[-1]["id"]
    assert sorted(os.listdir(systems)) == [f"{id}-{part}" for part in range(3)]
    measuring.kill()
    measuring.wait()
    projects.good(folder, "strata", "clean")
    assert os.listdir(systems) == []
    assert subprocess.run(pids, capture_output=True, check=False).stdout == b""


def taken(tmp_path, argv, number):
    """The log of a command that was run in so many systems on the host."""
    path = tmp_path / "log"
    contexts = [
        registry.Context("x", str(tmp_path), None, part=part, of=number) for part in range(number)
    ]
    tops = [registry.build([], context)[-1] for context in contexts]
    system = types.SimpleNamespace(tops=tops, client=None, shift=0, listen=lambda part: "127.0.0.1")
    inputs = Inputs(
        "w", {"steps": [{"step": "run", "timeout": 20, "argv": argv}]}, system, {"seed": 1}
    )
    taking = steps.Steps(inputs, log_sections.Log(str(path), number), clock.Watch(), None)
    taking.run()
    taking.finish()
    return path.read_text()


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


# The declaration, and what follows from it for a plan.

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
def test_a_wrong_declaration_is_refused_by_its_key(project, change, key):
    project(workloads={"noop": {**DECLARED, **change}})
    with pytest.raises(UserError, match=rf"workload\.yaml: {key}[.:]"):
        workload.load("noop")


def test_a_plan_with_such_ports_is_refused(project):
    parameters = {"systems": {**NUMBER, "value": 3}, "one": PORT, "two": {**PORT, "value": 7002}}
    project(workloads={"noop": several(parameters=parameters, ports=["one", "two"])})
    with pytest.raises(UserError, match=r"config\.yaml: workloads\.noop\.two: "):
        config.experiment(config.read(), capacity.facts())


@pytest.mark.parametrize(
    ("port", "laps", "systems", "most"),
    [
        (65535, 1, 1, None),
        (65343, 8, 1, None),
        (65344, 8, 1, 65343),
        (65534, 1, 3, 65533),
        (65343, 8, 2, 65342),
    ],
)
def test_a_port_that_some_system_would_have_above_the_last_is_refused_with_the_largest(
    port, laps, systems, most
):
    values = {"port": port, "laps": laps, "systems": systems}
    entry = {
        "parameters": values,
        "cell": {"ports": ["port"], "laps": "laps", "systems": "systems"},
    }
    found = [
        (key, int(words.rpartition(" ")[2])) for key, words in plan.wrong_ports({"w": entry}, 4)
    ]
    assert found == ([] if most is None else [("workloads.w.port", most)])


def fingerprint(number, **cell_of):
    planned = {"parameters": {"n": number}, "cell": {"steps": [], **cell_of}}
    environments = {"e": {"layers": []}}
    facts = {
        "seed": 1,
        "machine": {"mask": None},
        "scale": "tiny",
        "image": {"recipe": "r"},
        "environments": environments,
    }
    return plan.fingerprint({**facts, "workloads": {"w": planned}}, "e", "w")


def test_the_number_of_systems_decides_a_result_and_one_is_as_none():
    assert fingerprint(1, systems="n") == fingerprint(1)
    assert fingerprint(2, systems="n") != fingerprint(2)
    assert fingerprint(2, systems="n") != fingerprint(3, systems="n")

"""Several equal systems at the same time, on the host alone: real processes, their outputs, and who fails whom."""

import json
import os
import subprocess
import time

import projects
import pytest

from strata import layers
from strata.base import clock
from strata.base.errors import CellFailed, UserError
from strata.cell import cell, logs, servers, steps
from strata.cell.inputs import Inputs
from strata.experiment import config, plan, workload
from strata.host import capacity
from strata.system import state, testbed

NUMBER = {"about": "Systems", "schema": {"type": "integer", "minimum": 1, "maximum": 64}, "value": 2}
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
    folder, done = run(several(f"{meet}; echo 7$1; date +%s%N; sleep 0.3; date +%s%N"))
    assert done.returncode == 0, done.stderr
    lines = read(folder, "log").splitlines()
    assert lines[:2] == ['{"system": 0}', "70"]
    assert lines[4:6] == ['{"system": 1}', "71"]
    first, second = (tuple(map(int, lines[at : at + 2])) for at in (2, 6))
    assert max(first[0], second[0]) < min(first[1], second[1])
    record = json.loads(read(folder, "json"))
    assert [(command["system"], command["exit"]) for command in record["commands"]] == [(0, 0), (1, 0)]
    assert [command["argv"][-1] for command in record["commands"]] == ["0", "1"]
    assert record["parameters"] == {"number": 7, "systems": 2}
    assert record["checks"] == [{"name": "printed", "passed": True}]


def test_the_record_tells_of_each_system(run):
    folder, done = run(several())
    assert done.returncode == 0, done.stderr
    system = json.loads(read(folder, "json"))["system"]
    assert system["parts"] == 2
    assert [one["id"] for one in system["each"]] == [f"{system['id']}-0", f"{system['id']}-1"]
    assert state.all_up() == []


def test_one_system_is_as_ever(run):
    folder, done = run(several("echo 7", systems=1))
    assert done.returncode == 0, done.stderr
    assert read(folder, "log") == "7\n"
    record = json.loads(read(folder, "json"))
    assert "system" not in record["commands"][0]
    assert record["system"]["parts"] == 1
    assert "each" not in record["system"]


def test_prepare_and_warmup_run_in_all_systems_too(run):
    data = several(
        prepare=[{"argv": ["/bin/echo", "prepared", "{part}"], "timeout": 20}],
        warmup={"about": "x", "steps": [{"argv": ["/bin/echo", "warm", "{part}"], "timeout": 20}]},
    )
    folder, done = run(data)
    assert done.returncode == 0, done.stderr
    record = json.loads(read(folder, "json"))
    assert [(command["step"], command["system"]) for command in record["commands"]] == [
        (step, part) for step in ("prepare", "warmup", "run") for part in (0, 1)
    ]
    parts = logs.split(read(folder, "log"), 2)
    assert parts == {None: "", 0: "prepared 0\nwarm 0\n7", 1: "prepared 1\nwarm 1\n7\n"}


def test_a_bad_end_of_one_ends_all_and_says_in_which(run, tmp_path):
    script = f'echo $1; if [ "$1" = 1 ]; then sleep 0.3; exit 5; fi; echo $$ >{tmp_path}/pid; sleep 4321'
    begun = time.monotonic()
    folder, done = run(several(script, timeout=60))
    assert done.returncode == 1
    assert "its run step in system 1 ended with exit code 5" in done.stderr
    assert time.monotonic() - begun < 30
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text().strip()}")
    assert not (folder / "results/raw").exists()
    # What both had printed is kept for who looks.
    assert logs.split(read(folder, "log", "failed"), 2) == {None: "", 0: "0", 1: "1\n"}
    exits = [command["exit"] for command in json.loads(read(folder, "json", "failed"))["commands"]]
    assert exits == [None, 5]


def test_the_time_limit_of_one_ends_all_and_says_in_which(run):
    folder, done = run(several('echo 7; if [ "$1" != 1 ]; then sleep 4324; fi', systems=3, timeout=0.5))
    assert done.returncode == 1
    assert "its run step was ended: no end after 0.5 s in systems 0, 2" in done.stderr
    assert subprocess.run(["pgrep", "-f", "^sleep 4324$"], capture_output=True, check=False).returncode == 1
    exits = [command["exit"] for command in json.loads(read(folder, "json", "failed"))["commands"]]
    assert exits == [None, 0, None]


def test_a_check_must_hold_in_every_system(run):
    _, done = run(several('if [ "$1" = 0 ]; then echo 7; else echo seven; fi'))
    assert done.returncode == 1
    assert "its check failed: printed" in done.stderr


def test_a_system_that_is_killed_with_its_cell_is_removed_with_the_others(project):
    folder = project(workloads={"noop": several("echo 7; sleep 4325", systems=3, timeout=60)})
    projects.plan(folder)
    argv = projects.command("strata", "cell", "bare", "noop", "1")
    measuring = subprocess.Popen(argv, cwd=folder, env=projects.environment(), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 15
    while len(subprocess.run(["pgrep", "-f", "^sleep 4325$"], capture_output=True, check=False).stdout.split()) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    systems = os.path.join(os.environ["STRATA_HOME"], "systems")
    id = state.all_up()[-1]["id"]
    assert sorted(os.listdir(systems)) == [f"{id}-{part}" for part in range(3)]
    children = subprocess.check_output(["pgrep", "-P", str(measuring.pid)], text=True).split()
    measuring.kill()
    measuring.wait()
    for child in children:
        os.killpg(int(child), 9)
    cleaned = projects.run(folder, "strata", "clean")
    assert cleaned.returncode == 0, cleaned.stderr
    assert os.listdir(systems) == []


def test_a_system_of_another_number_is_not_used_again(project):
    folder = project(
        # In this order a repetition has one system for all workloads that fit in it.
        projects.on_host(workloads={"noop": None, "both": None, "also": None}, order="sequential"),
        {"noop": projects.NOOP, "both": several(), "also": several()},
    )
    projects.plan(folder)
    for name in ("noop", "both", "also"):
        done = projects.run(folder, "strata", "cell", "bare", name, "1")
        assert done.returncode == 0, done.stderr
    found = {record["workload"]: record["system"] for record in projects.records(folder)}
    assert found["both"]["id"] == found["also"]["id"] != found["noop"]["id"]
    assert [found[name]["cells_before"] for name in ("noop", "both", "also")] == [0, 0, 1]
    assert [found[name]["parts"] for name in ("noop", "both", "also")] == [1, 2, 2]


# Without a process: what stands in the commands.


class Fake(layers.Layer):
    """A system that is up somewhere, whose commands run here and name their place."""

    name, own_machine = "fake", None
    up = None

    def wrap(self, argv, fed=False):
        return argv

    def address(self):
        return f"10.0.0.{self.context.part + 1}"

    def machine(self):
        return self.own_machine

    def command(self, argv):
        return ["/usr/bin/env", f"PLACE=system {self.context.part}", *argv]


Fake.__abstractmethods__ = frozenset()


class FakeClient:
    def command(self, argv):
        return ["/usr/bin/env", "PLACE=client", *argv]


class FakeSystem:
    def __init__(self, number):
        contexts = [layers.Context("x", "/x", None, part=part, of=number) for part in range(number)]
        self.tops = [Fake(None, {}, context) for context in contexts]
        self.top, self.client = self.tops[0], FakeClient()

    def listen(self, part):
        return f"10.9.0.{part}"


def taken(tmp_path, declared, number, **values):
    """The log and the record of steps that were taken in so many systems."""
    path = tmp_path / "log"
    planned = {"steps": [{"step": "run", "timeout": 20, **step} for step in declared], "ports": ["port"]}
    given = {"seed": 1, "port": 7000, **values}
    inputs = Inputs("w", planned, FakeSystem(number), given)
    taking = steps.Steps(inputs, logs.Log(str(path), number), clock.Watch(), None)
    taking.prepare()
    taking.run()
    taking.finish()
    return {"commands": taking.commands, "log": path.read_text()}


def test_a_log_has_a_largest_size_and_what_is_kept_of_a_larger_one_is_its_beginning(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "LARGEST", 1000)
    say = ["/bin/sh", "-c", "head -c $1 /dev/zero | tr '\\0' x", "sh"]
    assert len(taken(tmp_path, [{"argv": [*say, "1000"]}], 1)["log"]) == 1000
    for number in (1, 2):
        with pytest.raises(CellFailed, match="its run step printed too much: the log has 0 MiB"):
            taken(tmp_path, [{"argv": [*say, "1001"]}], number)
        assert (tmp_path / "log").stat().st_size == 1000


SAY = ["/bin/sh", "-c", 'echo "$PLACE: $1 $2 $3"', "sh", "{address}", "{port}", "{part}"]


def test_each_system_has_its_own_address_and_ports_and_the_client_those_of_all(tmp_path):
    record = taken(tmp_path, [{"argv": SAY, "at": "client"}, {"argv": SAY}, {"argv": SAY, "at": "client"}], 2)
    of_client = "client: 10.0.0.1,10.0.0.2 7000,7001 0,1"
    assert record["log"].splitlines() == [
        of_client,
        '{"system": 0}',
        "system 0: 10.0.0.1 7000 0",
        '{"system": 1}',
        "system 1: 10.0.0.2 7001 1",
        '{"system": null}',
        of_client,
    ]
    assert [command.get("system") for command in record["commands"]] == [None, 0, 1, None]
    assert [command.get("at") for command in record["commands"]] == ["client", None, None, "client"]


def test_lists_of_ports_are_moved_as_a_whole(tmp_path):
    record = taken(tmp_path, [{"argv": SAY}, {"argv": SAY, "at": "client"}], 2, port=[7000, 7100])
    assert "system 1: 10.0.0.2 7001,7101 1" in record["log"]
    assert "client: 10.0.0.1,10.0.0.2 7000,7100,7001,7101 0,1" in record["log"]


def test_one_system_has_what_was_declared_and_no_marks(tmp_path):
    record = taken(tmp_path, [{"argv": SAY}, {"argv": SAY, "at": "client"}], 1)
    assert record["log"].splitlines() == ["system 0: 10.0.0.1 7000 0", "client: 10.0.0.1 7000 0"]


def test_what_is_observed_is_of_no_system(tmp_path):
    steps_ = [{"observe": "cpu"}, {"argv": SAY}, {"observe": "cpu"}, {"argv": SAY, "at": "client"}]
    lines = taken(tmp_path, steps_, 2)["log"].splitlines()
    assert [line.split(":")[0] for line in lines] == [
        '{"observed"',
        '{"system"',
        "system 0",
        '{"system"',
        "system 1",
        '{"system"',
        '{"observed"',
        "client",
    ]


def test_output_without_an_end_of_line_does_not_run_into_the_next(tmp_path):
    argv = ["/bin/sh", "-c", "printf x; printf y >>/dev/stdout"]
    assert taken(tmp_path, [{"argv": argv}], 2)["log"] == '{"system": 0}\nxy\n{"system": 1}\nxy\n'


def test_long_output_is_whole(tmp_path):
    argv = ["/bin/sh", "-c", "yes $1 | head -c 3000000", "sh", "{part}"]
    parts = logs.split(taken(tmp_path, [{"argv": argv}], 2)["log"], 2)
    assert [len(parts[part].rstrip("\n")) for part in (0, 1)] == [2999999, 2999999]
    assert set(parts[1]) == {"1", "\n"}


def test_a_failure_in_a_system_is_told_with_its_number(tmp_path):
    argv = ["/bin/sh", "-c", "exit $1", "sh", "{part}"]
    with pytest.raises(CellFailed, match="its run step in system 1 ended with exit code 1"):
        taken(tmp_path, [{"argv": argv}], 2)


def test_a_pattern_that_the_client_prints_counts_for_all():
    log = '{"system": 0}\nno\n{"system": 1}\nno\n{"system": null}\nyes\n'
    declared = [{"name": "yes", "pattern": "^yes$"}, {"name": "no", "pattern": "^no$"}, {"name": "x", "pattern": "^x$"}]
    assert [check["passed"] for check in logs.checks(declared, log, 2)] == [True, True, False]
    assert [check["passed"] for check in logs.checks(declared, log.replace("1}\nno", "1}\nna"), 2)] == [
        True,
        False,
        False,
    ]
    # The line that tells of systems is nobody's own.
    assert not logs.checks([{"name": "x", "pattern": "system"}], log, 2)[0]["passed"]


# The declaration, and what follows from it for a plan.

DECLARED = {**projects.NOOP, "parameters": {"number": NUMBER}, "systems": "number"}
WAY = {"about": "x", "schema": {"type": "string", "enum": ["restored", "booted"]}, "value": "booted"}
MISTAKES = [
    ({"systems": "numbers"}, "systems"),
    ({"parameters": {"number": {**NUMBER, "schema": {"type": "integer"}}}}, "systems"),
    ({"parameters": {"number": {**NUMBER, "schema": {**NUMBER["schema"], "maximum": 65}}}}, "systems"),
    ({"parameters": {"number": {**NUMBER, "value": {"rule": "cpus"}}}}, "systems"),
    (
        {"parameters": {"number": NUMBER, "way": WAY}, "run": [{"argv": ["x"], "fresh": "way", "timeout": 5}]},
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


MACHINE = {"cpus": 8, "memory_bytes": 16 * 2**30, "cache_bytes": 2**25}


def test_systems_share_the_memory_of_the_machine(checkout):
    def resolved(name, **overrides):
        return workload.resolve(name, overrides, "paper", MACHINE)

    assert [resolved("randomaccess", systems=number)[0]["log2"] for number in (1, 2, 8)] == [30, 29, 27]
    (sizes, notes), (fewer, of_four) = resolved("linpack"), resolved("linpack", systems=4)
    assert fewer["sizes"][0] < sizes["sizes"][0]
    assert "(17.2 GB here)" in notes[0]
    assert "(4.3 GB for each of 4 systems)" in of_four[0]
    with pytest.raises(UserError, match=r"workloads.stream.elements: 500000000 in 2 systems needs 24.0 GB of memory"):
        resolved("stream", elements=500_000_000, systems=2)
    assert resolved("stream", elements=500_000_000)[0]["elements"] == 500_000_000


@pytest.mark.parametrize("name", ["stream", "linpack", "pxz", "randomaccess"])
def test_workloads_of_a_processor_can_run_in_several_systems(checkout, name):
    assert workload.cell(name, "tiny")["systems"] == "systems"
    assert workload.resolve(name, {}, "tiny", MACHINE)[0]["systems"] == 1


def of_ports(number, **ports):
    """A workload of a plan with so many systems and these ports."""
    return {"parameters": {"n": number, **ports}, "cell": {"steps": [], "systems": "n", "ports": list(ports)}}


def test_ports_are_those_of_the_workloads_with_as_many_systems():
    experiment = {"workloads": {"a": of_ports(1, p=5), "b": of_ports(2, p=9, q=[3, 6]), "c": of_ports(2, p=9)}}
    assert plan.ports(experiment, "abc") == [5]
    assert plan.ports(experiment, "abc", 2) == [3, 6, 9]
    # Those of the others are nothing that this system opens.
    assert plan.ports(experiment, "bc") == []
    assert plan.ports(experiment, "c", 2) == [9]
    assert plan.shifted([3, 6, 9], 1) == [4, 7, 10]


def test_a_plan_with_such_ports_is_refused(project):
    parameters = {"systems": {**NUMBER, "value": 3}, "one": PORT, "two": {**PORT, "value": 7002}}
    project(workloads={"noop": several(parameters=parameters, ports=["one", "two"])})
    with pytest.raises(UserError, match=r"config\.yaml: workloads\.noop\.two: "):
        config.experiment(config.read(), capacity.facts())


def fingerprint(number, **cell_of):
    planned = {"parameters": {"n": number}, "cell": {"steps": [], **cell_of}}
    environments = {"e": {"layers": []}}
    facts = {"seed": 1, "scale": "tiny", "image": {"recipe": "r"}, "environments": environments}
    return plan.fingerprint({**facts, "workloads": {"w": planned}}, "e", "w")


def test_the_number_of_systems_decides_a_result_and_one_is_as_none():
    assert fingerprint(1, systems="n") == fingerprint(1)
    assert fingerprint(2, systems="n") != fingerprint(2)
    assert fingerprint(2, systems="n") != fingerprint(3, systems="n")


@pytest.mark.parametrize(("cpus", "systems", "each"), [(8, 1, 8), (8, 3, 2), (2, 4, 1)])
def test_processors_are_shared_by_systems_that_all_see_them(project, cpus, systems, each):
    threads = {"about": "x", "schema": {"type": "integer"}, "value": {"rule": "cpus"}}
    folder = project(workloads={"noop": several(systems=systems) | {"parameters": {"systems": NUMBER, "t": threads}}})
    projects.plan(folder)
    experiment = plan.read()
    experiment["workloads"]["noop"]["parameters"]["systems"] = systems
    one = cell.Cell(experiment, "bare", "noop", 1)
    system = FakeSystem(systems)
    assert one._values(one._cpus(system, {"cpus": cpus}), None)["t"] == each
    # A machine has its processors for itself.
    system.top.own_machine = system.top
    assert one._cpus(system, {"cpus": cpus}) == cpus
    with pytest.raises(CellFailed, match="does not say how many CPUs it has; set t"):
        one._values(one._cpus(system, {"cpus": "not available"}), None)


# What layers make of their part.


def test_containers_publish_the_ports_of_their_system():
    stack = [{"docker": {"network": "bridge", "data": "volume"}}]
    stacks = testbed.stacks("strata-x", stack, None, "10.0.0.1", [7000, 7100], 2)
    published = [stack[-1].published() for stack in stacks]
    assert published[0][:4] == ["--publish", "10.0.0.1:7000:7000/tcp", "--publish", "10.0.0.1:7000:7000/udp"]
    assert [word for word in published[1] if word.endswith("tcp")] == [
        "10.0.0.1:7001:7001/tcp",
        "10.0.0.1:7101:7101/tcp",
    ]
    assert [stack[-1].context.id for stack in stacks] == ["strata-x-0", "strata-x-1"]
    assert [(stack[-1].context.part, stack[-1].context.of) for stack in stacks] == [(0, 2), (1, 2)]
    assert {stack[-1].context.first for stack in stacks} == {stacks[0][-1].context.folder}


# Servers.


class Script:
    """What a fake system's `serve` and questions answer, in the order of time."""

    def __init__(self, monkeypatch, ready_after):
        self.asked, self.ready_after = {}, ready_after
        monkeypatch.setattr(servers, "capture", self.capture)
        monkeypatch.setattr(servers, "PAUSES", (0, 0))

    def capture(self, argv, timeout=0, check=True):
        place = argv[1]
        done = subprocess.CompletedProcess(argv, 0, "", "")
        if "serve" in argv[2]:
            done.stdout = "running" if argv[3] == "state" else "143" if argv[3] == "end" else f"from {place}"
        elif argv[2] == "/w/ask":
            self.asked[place] = self.asked.get(place, 0) + 1
            done.returncode = int(self.asked[place] <= self.ready_after[place])
        else:
            done.returncode = 1
        return done


def with_servers(tmp_path, monkeypatch, declared):
    monkeypatch.setattr("strata.cell.inputs.PROGRAMS", "")
    planned = {"steps": [], "ports": ["port"], "servers": [declared]}
    started = servers.Servers(Inputs("w", planned, FakeSystem(2), {"seed": 1, "port": 7000}))
    started.start()
    started.stop()
    return started.records


SERVER = {
    "name": "one",
    "argv": ["server", "{port}", "{part}"],
    "ready": {"argv": ["ask", "{address}", "{port}"], "timeout": 5},
    "stop": {"timeout": 5},
    "exits": [143],
}


def test_every_system_has_its_server_and_all_must_answer(tmp_path, monkeypatch):
    script = Script(monkeypatch, {"PLACE=system 0": 3, "PLACE=system 1": 1})
    records = with_servers(tmp_path, monkeypatch, SERVER)
    assert script.asked == {"PLACE=system 0": 4, "PLACE=system 1": 2}
    assert [(one["name"], one["system"], one["exit"]) for one in records] == [
        ("one", 0, 143),
        ("one", 1, 143),
    ]
    assert records[1]["ready_seconds"] <= records[0]["ready_seconds"]
    assert records[1]["output"] == "from PLACE=system 1"


def test_a_server_that_never_answers_is_named_with_its_system(tmp_path, monkeypatch):
    Script(monkeypatch, {"PLACE=system 0": 0, "PLACE=system 1": 10**9})
    with pytest.raises(CellFailed, match=r"its server one in system 1 was not ready after 0\.2 s"):
        with_servers(tmp_path, monkeypatch, {**SERVER, "ready": {**SERVER["ready"], "timeout": 0.2}})


@pytest.mark.parametrize(("takes", "pause"), [(0.01, 0.05), (0.75, 0.75), (9, 2)])
def test_questions_leave_a_server_the_time_that_they_take(monkeypatch, takes, pause):
    now, slept = [0.0], []

    class Slow:
        asked = 0

        def start(self):
            pass

        def ask(self):
            self.asked += 1
            now[0] += takes
            return self.asked == 3

    class Time:
        monotonic = staticmethod(lambda: now[0])
        sleep = staticmethod(slept.append)

    monkeypatch.setattr(servers, "time", Time)
    servers.start([Slow()])
    assert slept == pytest.approx([pause, pause])

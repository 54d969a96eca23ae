"""Declarations of workloads that contradict themselves: each is refused, with file and key."""

import copy
from pathlib import Path

import projects
import pytest

from strata.experiment import config, plan, planning, workload
from strata.host import capacity
from strata.util.errors import UserError

MACHINE = {"cpus": 2, "mask": None, "memory_bytes": 2**30, "cache_bytes": None}
INTEGER = {"about": "x", "schema": {"type": "integer"}, "value": 7000}
COUNT = {
    "about": "x",
    "schema": {"type": "integer", "minimum": 1, "maximum": 64},
    "value": 2,
}
LIST = {"about": "x", "schema": {"type": "array"}, "value": ["in", "out"]}
WAY = {
    "about": "x",
    "schema": {"type": "string", "enum": ["restored", "booted"]},
    "value": "booted",
}
SERVER = {
    "name": "a",
    "argv": ["x"],
    "ready": {"argv": ["x"], "timeout": 1},
    "stop": {"timeout": 1},
}
GROUP = [
    {"argv": ["/bin/echo", "{sizes}", "{ways}"], "timeout": 20},
    {"for": "ways", "steps": [{"argv": ["/bin/echo", "{sizes}", "{ways}"], "timeout": 20}]},
    {"observe": "cpu"},
]
SWEEP = {
    **projects.NOOP,
    "parameters": {"sizes": {**LIST, "value": [2, 1]}, "ways": LIST},
    "run": [{"for": "sizes", "steps": GROUP}],
}
SYSTEMS = {**projects.NOOP, "parameters": {"number": COUNT}, "systems": "number"}
LAPS = {**projects.NOOP, "parameters": {"number": INTEGER, "laps": COUNT}, "laps": "laps"}
ROLES = {
    **projects.NOOP,
    "parameters": {
        "number": INTEGER,
        "web_port": INTEGER,
        "database_port": {**INTEGER, "value": 7100},
        "placed": {**LIST, "value": ["web+database"]},
    },
    "ports": ["web_port", "database_port"],
    "roles": {
        "parameter": "placed",
        "ports": {"web": ["web_port"], "database": ["database_port"]},
    },
    "servers": [{**SERVER, "name": role, "role": role} for role in ("database", "web")],
    "run": [{"argv": ["/bin/echo", "{address.web}"], "at": "client", "timeout": 5}],
}


def without(mapping, key):
    return {name: value for name, value in mapping.items() if name != key}


# A declaration, the place of a value in it, another value, and the key that the message names.
WRONG = [
    (SWEEP, ["run", 0, "for"], "moon", "run.0.for"),
    (SWEEP, ["run", 0, "steps", 1, "for"], "size", "run.0.steps.1.for"),
    (SWEEP, ["run", 0, "steps", 0, "argv"], ["/bin/echo", "{moon}"], "run.0.steps.0.argv"),
    (SWEEP, ["run", 0, "steps", 2, "observe"], "sky", "run.0.steps.2.observe"),
    (SWEEP, ["run", 0, "steps", 2, "argv"], ["x"], "run.0.steps.2"),
    (SWEEP, ["run", 0, "argv"], ["x"], "run.0"),
    (SWEEP, ["question"], "procesor", "question"),
    (SWEEP, ["ports"], ["door"], "ports.0"),
    (SWEEP, ["data"], {"argv": ["make", "{moon}"], "timeout": 5}, "data.argv"),
    (SWEEP, ["run", 0, "steps", 0, "at"], "moon", "run.0.steps.0.at"),
    (SWEEP, ["run", 0, "steps", 0, "fresh"], "ways", "run.0.steps.0.fresh"),
    (SWEEP, ["run", 0, "steps", 0, "neighbour"], "idle", "run.0.steps.0.neighbour"),
    (SWEEP, ["servers"], [{**SERVER, "argv": ["x", "{moon}"]}], "servers.0.argv"),
    (SWEEP, ["servers"], [without(SERVER, "ready")], "servers.0.ready"),
    (SYSTEMS, ["systems"], "numbers", "systems"),
    (SYSTEMS, ["parameters", "number", "schema"], {"type": "integer"}, "systems"),
    (SYSTEMS, ["parameters", "number", "schema", "maximum"], 65, "systems"),
    (SYSTEMS, ["parameters", "number", "value"], {"rule": "cpus"}, "systems"),
    (
        {**SYSTEMS, "parameters": {"number": COUNT, "way": WAY}},
        ["run"],
        [{"argv": ["x"], "fresh": "way", "timeout": 5}],
        "run.0.fresh",
    ),
    (
        {**SWEEP, "parameters": {**SWEEP["parameters"], "way": WAY}},
        ["run"],
        [{"argv": ["x"], "fresh": "way", "neighbour": "busy", "timeout": 5}],
        "run.0",
    ),
    (SYSTEMS, ["data"], {"argv": ["make", "{part}"], "timeout": 5}, "data.argv"),
    (SYSTEMS, ["data"], {"argv": ["make", "{address}"], "timeout": 5}, "data.argv"),
    (LAPS, ["laps"], "lap", "laps"),
    (LAPS, ["parameters", "laps"], INTEGER, "laps"),
    (LAPS, ["run", 0, "fresh"], "number", "run.0.fresh"),
    (LAPS, ["run", 0, "more"], "number", "run.0.more"),
    (SYSTEMS, ["run", 0, "more"], "number", "run.0.more"),
    (SWEEP, ["run", 0, "steps", 0, "more"], "ways", "run.0.steps.0.more"),
    (ROLES, ["roles", "parameter"], "number", "roles.parameter"),
    (ROLES, ["roles", "ports", "database"], [], "roles.ports"),
    (ROLES, ["roles", "ports", "web"], ["web_port", "x"], "roles.ports"),
    (ROLES, ["servers", 0], SERVER, "servers.0.role"),
    (ROLES, ["servers", 0, "role"], "cache", "servers.0.role"),
    (ROLES, ["run", 0, "argv"], ["/bin/echo", "{address}"], "run.0.argv"),
    (ROLES, ["run", 0, "argv"], ["/bin/echo", "{address.cache}"], "run.0.argv"),
]


def changed(declaration, path, value):
    """A copy of a declaration with another value at a place."""
    copied = copy.deepcopy(declaration)
    *way, last = path
    part = copied
    for key in way:
        part = part[key]
    part[last] = value
    return copied


@pytest.mark.parametrize(("declaration", "path", "value", "key"), WRONG)
def test_a_wrong_declaration_is_refused_by_its_key(project, declaration, path, value, key):
    project(workloads={"noop": declaration})
    assert workload.read_declaration("noop")
    workload.read_declaration.cache_clear()
    wrong = changed(declaration, path, value)
    projects.write_yaml(Path("workloads/noop/workload.yaml"), wrong)
    with pytest.raises(UserError, match=rf"workload\.yaml: {key}[.:]"):
        workload.read_declaration("noop")


@pytest.mark.parametrize(
    "placed", [[], ["web"], ["web+web", "database"], ["web", "database", "cache"], ["web,database"]]
)
def test_every_role_must_be_in_one_system(project, placed):
    project(workloads={"noop": changed(ROLES, ["parameters", "placed", "value"], placed)})
    reason = r"workloads.noop.placed: is .*must name each of web, database once"
    with pytest.raises(UserError, match=reason):
        workload.resolve_parameters("noop", {}, "tiny", MACHINE)


def test_a_plan_whose_systems_would_share_a_port_is_refused(project):
    parameters = {"number": {**COUNT, "value": 3}, "a": INTEGER, "b": {**INTEGER, "value": 7002}}
    project(workloads={"noop": {**SYSTEMS, "parameters": parameters, "ports": ["a", "b"]}})
    with pytest.raises(UserError, match=r"config\.yaml: workloads\.noop\.b: "):
        planning.build_plan(config.read_config(), capacity.read_host_facts())


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
    parameters = {"port": port, "laps": laps, "systems": systems}
    cell = {"ports": ["port"], "laps": "laps", "systems": "systems"}
    wrong = plan.list_port_mistakes({"w": {"parameters": parameters, "cell": cell}}, 4)
    largest = [(key, int(sentence.rpartition(" ")[2])) for key, sentence in wrong]
    assert largest == ([] if most is None else [("workloads.w.port", most)])

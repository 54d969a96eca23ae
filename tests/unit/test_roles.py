"""Servers with roles, in one or several systems: their places, and how they reach each other."""

import types

import projects
import pytest

from strata.experiment import plan, workload
from strata.measure import servers
from strata.measure.arguments import Inputs, fill
from strata.util.errors import UserError

MACHINE = {"cpus": 2, "mask": None, "memory_bytes": 2**30, "cache_bytes": None}
PORT = {"schema": {"type": "integer"}, "about": "x"}


def with_roles(placed=("web+database",), **changes):
    """Return a workload with a server for each of two roles."""
    argv = ["/bin/server", "{listen}", "{web_port}", "{address.database}", "{database_port}"]
    ready = {"argv": ["/bin/true"], "timeout": 5}
    return {
        **projects.NOOP,
        "parameters": {
            "number": {"about": "x", "schema": {"type": "integer"}, "value": 7},
            "web_port": {**PORT, "value": 7000},
            "database_port": {**PORT, "value": 7100},
            "placed": {
                "about": "x",
                "schema": {"type": "array", "items": {"type": "string"}},
                "value": list(placed),
            },
        },
        "ports": ["web_port", "database_port"],
        "roles": {
            "parameter": "placed",
            "ports": {"web": ["web_port"], "database": ["database_port"]},
        },
        "servers": [
            {
                "name": "database",
                "role": "database",
                "argv": argv,
                "ready": ready,
                "stop": {"timeout": 5},
            },
            {"name": "web", "role": "web", "argv": argv, "ready": ready, "stop": {"timeout": 5}},
        ],
        "run": [
            {"argv": ["/bin/echo", "{address.web}", "{web_port}"], "at": "client", "timeout": 5}
        ],
        **changes,
    }


class Part:
    """A stub of the top layer of a system: a container, or with `machine` a virtual machine."""

    def __init__(self, number, machine=None):
        self.number, self.of = number, machine

    def address(self):
        return f"10.0.0.{self.number}" if self.of else "192.168.0.1"

    def machine(self):
        return self.of


def make_inputs(project, placed, units=1, machine=None):
    """Return the inputs of a cell of the workload in stubs of systems, and its parameters."""
    schema = {"type": "integer", "minimum": 1, "maximum": 64}
    systems = {"about": "x", "schema": schema, "value": units}
    data = with_roles(placed)
    data |= {"parameters": data["parameters"] | {"systems": systems}, "systems": "systems"}
    project(workloads={"noop": data})
    cell = workload.cell("noop", "tiny")
    values, _ = workload.resolve("noop", {}, "tiny", MACHINE)
    count = plan.systems({"cell": cell, "parameters": values})
    tops = [Part(number, machine) for number in range(count)]
    system = types.SimpleNamespace(tops=tops, client=None, shift=0)
    system.listen = lambda part: f"172.17.0.{part}"
    system.reached = lambda part: tops[part].address() if machine else system.listen(part)
    return Inputs("noop", cell, system, values), values


def command(inputs, values, part):
    """Return the arguments of a server in a system."""
    return fill(with_roles()["servers"][0]["argv"], inputs.of(part, values), "x")[1:]


def names(inputs):
    """Return the names of the servers in each system."""
    by_system = [[] for _ in range(inputs.parts)]
    for server in servers.of(inputs):
        by_system[server.record["system"]].append(server.record["name"])
    return by_system


def test_servers_in_two_systems_reach_each_other(project):
    inputs, values = make_inputs(project, ["web", "database"])
    assert inputs.parts == 2
    assert names(inputs) == [["web"], ["database"]]
    # The ports of the second system are the next ones, for every server and client.
    assert command(inputs, values, 0) == ["172.17.0.0", "7000", "172.17.0.1", "7101"]
    assert command(inputs, values, 1) == ["172.17.0.1", "7000", "172.17.0.1", "7101"]
    at_client = inputs.of_all(values)
    assert (at_client["web_port"], at_client["database_port"]) == ([7000], [7101])
    assert at_client["address.web"] == at_client["address.database"] == ["192.168.0.1"]


def test_in_several_units_each_web_server_has_its_own_database(project):
    inputs, values = make_inputs(project, ["database", "web"], units=3, machine="a machine")
    assert inputs.parts == 6
    assert names(inputs) == [["database"], ["web"]] * 3
    assert command(inputs, values, 3) == ["172.17.0.3", "7003", "10.0.0.2", "7102"]
    at_client = inputs.of_all(values)
    assert at_client["web_port"] == [7001, 7003, 7005]
    assert at_client["address.web"] == ["10.0.0.1", "10.0.0.3", "10.0.0.5"]
    assert at_client["database_port"] == [7100, 7102, 7104]


@pytest.mark.parametrize(
    "placed", [[], ["web"], ["web+web", "database"], ["web", "database", "cache"], ["web,database"]]
)
def test_every_role_must_be_in_one_system(project, placed):
    project(workloads={"noop": with_roles(placed)})
    with pytest.raises(
        UserError, match=r"workloads.noop.placed: is .*must name each of web, database once"
    ):
        workload.resolve("noop", {}, "tiny", MACHINE)


ROLES = with_roles()["roles"]
WRONG = [
    ({"roles": {**ROLES, "parameter": "number"}}, "roles.parameter"),
    ({"roles": {**ROLES, "ports": {"web": ["web_port"], "database": []}}}, "roles.ports"),
    (
        {"roles": {**ROLES, "ports": {"web": ["web_port", "x"], "database": ["database_port"]}}},
        "roles.ports",
    ),
    (
        {"servers": [{k: v for k, v in with_roles()["servers"][0].items() if k != "role"}]},
        "servers.0.role",
    ),
    ({"servers": [{**with_roles()["servers"][0], "role": "cache"}]}, "servers.0.role"),
    ({"run": [{"argv": ["/bin/echo", "{address}"], "at": "client", "timeout": 5}]}, "run.0.argv"),
    ({"run": [{"argv": ["/bin/echo", "{address.cache}"], "timeout": 5}]}, "run.0.argv"),
]


@pytest.mark.parametrize(("change", "key"), WRONG)
def test_wrong_roles_are_refused_by_key(project, change, key):
    project(workloads={"noop": with_roles(**change)})
    with pytest.raises(UserError, match=rf"workload\.yaml: {key}[.:]"):
        workload.load("noop")

"""Servers with roles, in one system or in several that work together, and how they reach others."""

import types

from test_declarations import COUNT, MACHINE, ROLES, changed

from strata.experiment import plan, workload
from strata.measure import servers
from strata.measure.arguments import Inputs, fill_command

SERVER = ["/bin/server", "{listen}", "{web_port}", "{address.database}", "{database_port}"]


class Part:
    """The top of a system's stack: a container, or with `machine` a machine."""

    context = types.SimpleNamespace(entrypoint=[])

    def __init__(self, number, machine=None):
        self.number, self._machine = number, machine

    def get_address(self):
        return f"10.0.0.{self.number}" if self._machine else "192.168.0.1"

    def machine(self):
        return self._machine


def inputs_of(project, placed, units=1, machine=None):
    """The inputs of a cell in systems of which nothing is up, and its parameters."""
    data = changed(ROLES, ["parameters", "placed", "value"], placed)
    data = changed(data, ["parameters", "systems"], {**COUNT, "value": units})
    project(workloads={"noop": {**data, "systems": "systems"}})
    cell = workload.plan_cell("noop", "tiny")
    values, _ = workload.resolve_parameters("noop", {}, "tiny", MACHINE)
    count = plan.count_systems({"cell": cell, "parameters": values})
    tops = [Part(number, machine) for number in range(count)]
    system = types.SimpleNamespace(tops=tops, client=None, port_offset=0)
    system.get_listen_address = lambda part: f"172.17.0.{part}"
    system.get_peer_address = lambda part: (
        tops[part].get_address() if machine else system.get_listen_address(part)
    )
    return Inputs("noop", cell, system, values), values


def command(inputs, values, part):
    """The arguments of a server's command in a system."""
    return fill_command(SERVER, inputs.build_placeholder_values(part, values), "x")[1:]


def names(inputs):
    """The servers of each system."""
    by_part = [[] for _ in range(inputs.system_count)]
    for server in servers.create_servers(inputs):
        by_part[server.record["system"]].append(server.record["name"])
    return by_part


def test_apart_each_has_its_servers_and_reaches_the_other(project):
    inputs, values = inputs_of(project, ["web", "database"])
    assert inputs.system_count == 2
    assert names(inputs) == [["web"], ["database"]]
    # The ports of the second system are the next ones, in every command.
    assert command(inputs, values, 0) == ["172.17.0.0", "7000", "172.17.0.1", "7101"]
    assert command(inputs, values, 1) == ["172.17.0.1", "7000", "172.17.0.1", "7101"]
    at_client = inputs.build_client_values(values)
    assert (at_client["web_port"], at_client["database_port"]) == ([7000], [7101])
    assert at_client["address.web"] == at_client["address.database"] == ["192.168.0.1"]


def test_of_several_each_web_has_its_own_database(project):
    inputs, values = inputs_of(project, ["database", "web"], units=3, machine="a machine")
    assert inputs.system_count == 6
    assert names(inputs) == [["database"], ["web"]] * 3
    assert command(inputs, values, 3) == ["172.17.0.3", "7003", "10.0.0.2", "7102"]
    at_client = inputs.build_client_values(values)
    assert at_client["web_port"] == [7001, 7003, 7005]
    assert at_client["address.web"] == ["10.0.0.1", "10.0.0.3", "10.0.0.5"]
    assert at_client["database_port"] == [7100, 7102, 7104]

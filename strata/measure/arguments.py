"""Fill the arguments of a cell's commands with parameters, ports and addresses."""

from collections.abc import Iterator

from strata.environments.common.layer import Layer
from strata.experiment import plan
from strata.testbed.lifecycle import System
from strata.util.data_types import CellWork, Fields, Step
from strata.util.placeholders import convert_to_list, parse_placeholder

# The folder of the workloads' own programs in every system and at the client.
PROGRAMS = "/opt/strata/workloads"


def fill_command(argv: list[str], values: Fields, workload: str) -> list[str]:
    """Return a declared command with each placeholder replaced by its value.

    argv: the program and its arguments, as workload.yaml declares them.  A placeholder, such as
    ``{threads}``, is a whole argument.
    values: the value of each placeholder by name.  A list becomes ``a,b``, and None an empty
    argument; `entrypoint` becomes one argument for each word of the image's ENTRYPOINT.
    workload: the name of the workload.  A program without a slash is one of that workload's
    programs, and gets its full path in the image (:data:`PROGRAMS`).
    The cell's record keeps the returned command as `argv`.  Raises KeyError if a value is missing.
    """
    filled: list[str] = []
    for argument in argv:
        name = parse_placeholder(argument)
        if name is None:
            filled.append(argument)
        elif name == "entrypoint":
            filled += values[name]
        else:
            items = ["" if item is None else str(item) for item in convert_to_list(values[name])]
            filled.append(",".join(items))
    if "/" not in filled[0] and parse_placeholder(argv[0]) != "entrypoint":
        filled[0] = f"{PROGRAMS}/{workload}/{filled[0]}"
    return filled


def iterate_steps(steps: list[Step], values: Fields) -> Iterator[tuple[Step, Fields]]:
    """Yield (step, values) for each step to execute, in the order of execution.

    steps: steps and groups of steps, which may contain groups.
    values: the parameters by name.
    A group with ``for`` yields its inner steps once for each item of its parameter's list; their
    values have this item in place of the list.  A group with ``when`` yields its inner steps only
    if its parameter is the required value, or a list that contains it.
    """
    for step in steps:
        if "for" in step:
            for value in values[step["for"]]:
                yield from iterate_steps(step["steps"], {**values, step["for"]: value})
        elif "when" in step:
            [(parameter, required_value)] = step["when"].items()
            if required_value in convert_to_list(values[parameter]):
                yield from iterate_steps(step["steps"], values)
        else:
            yield step, values


class Inputs:
    """Provide the layers that run a cell's commands, and the values of their placeholders.

    workload: the name of the workload.
    cell: the plan's `cell` of that workload.
    system: the systems under test and the client; replaced where a step starts a new system.
    values: the parameters and the seed, by name.
    groups: the roles of each system in a group of systems that work together.  System k (from 0)
    has the roles at index k modulo the size of the group.
    system_count: how many systems under test are up; each has ports and its own address.
    """

    def __init__(self, workload: str, cell: CellWork, system: System, values: Fields) -> None:
        """Keep the arguments, and compute the groups of roles from the cell and its values."""
        self.workload, self.cell, self.system, self.values = workload, cell, system, values
        self.groups = plan.list_role_groups(cell, values)
        self.system_count = len(system.tops)

    def find_layer(self, system_number: int | None) -> Layer:
        """Return the layer that runs the commands of a system or of the client.

        system_number: the number of the system (from 0); None for the client, which must be up.
        """
        layer = self.system.client if system_number is None else self.system.tops[system_number]
        assert layer
        return layer

    def build_placeholder_values(self, system_number: int, values: Fields) -> Fields:
        """Return the values of the placeholders in the commands of one system, by their names.

        system_number: the number of the system, from 0.
        values: the parameters by name; the mapping is not changed.
        The result holds the parameters, :data:`strata.util.placeholders.BUILT_IN` for this system,
        and `address.ROLE` of each role.  Ports get the offset of the system that listens on them.
        """
        top, offset = self.system.tops[system_number], self.system.port_offset
        result = {
            **values,
            "part": system_number,
            "listen": self.system.get_listen_address(system_number),
            "entrypoint": top.context.entrypoint,
            "address": top.get_address(),
        }
        for name in self.cell.get("ports", []):
            result[name] = plan.add_port_offset(values[name], offset + system_number)
        for role, names in self.cell.get("roles", {}).get("ports", {}).items():
            role_system = self._find_system_with_role(role, system_number)
            for name in names:
                result[name] = plan.add_port_offset(values[name], offset + role_system)
            result[f"address.{role}"] = self.system.get_peer_address(role_system)
        return result

    def build_client_values(self, values: Fields) -> Fields:
        """Return the values of the placeholders in commands at the client, by their names.

        A value that differs between systems is a list in the order of the systems.  `address`,
        `listen` and `part` have an item for each system.  Ports have those of the first system of
        each group, and `address.ROLE` one address for each group.
        values: the parameters by name; the mapping is not changed.
        """
        systems = [
            self.build_placeholder_values(system_number, values)
            for system_number in range(self.system_count)
        ]
        # The first system of each group: the systems of a group have consecutive numbers.
        first_systems = systems[:: len(self.groups)]
        result = dict(values)
        for name in ("address", "listen", "part"):
            result[name] = [system[name] for system in systems]
        for name in self.cell.get("ports", []):
            result[name] = [
                port for system in first_systems for port in convert_to_list(system[name])
            ]
        for role in self.cell.get("roles", {}).get("ports", {}):
            numbers = [self._find_system_with_role(role, first["part"]) for first in first_systems]
            result[f"address.{role}"] = [systems[number]["address"] for number in numbers]
        return result

    def _find_system_with_role(self, role: str, system_number: int) -> int:
        """Return the number of the system that has a role, in the same group as a given system.

        role: the name of the role.
        system_number: the number of the given system, from 0.
        Groups have equal sizes, and their systems consecutive numbers.  The checks of workload.yaml
        and config.yaml ensure that a system of each group has the role.
        """
        first_of_group = system_number - system_number % len(self.groups)
        index = next(index for index, roles in enumerate(self.groups) if role in roles)
        return first_of_group + index

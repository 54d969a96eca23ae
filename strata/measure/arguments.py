"""The arguments of a cell's commands: parameters, ports and addresses."""

from collections.abc import Iterator

from strata.environments.common.layer import Layer
from strata.experiment import plan
from strata.testbed.lifecycle import System
from strata.util.data_types import CellWork, Fields, Step
from strata.util.placeholders import convert_to_list, parse_placeholder

# The folder of the workloads' own programs in every system and at the client.
PROGRAMS = "/opt/strata/workloads"


def fill_command(argv: list[str], values: Fields, workload: str) -> list[str]:
    """Return a declared command with its placeholders replaced by values.

    argv: the program and its arguments, as workload.yaml declares them.  A placeholder, such as
    ``{threads}``, is a whole argument.
    values: the value of each placeholder by name.  A list becomes ``a,b``, and None an empty
    argument; `entrypoint` becomes one argument for each word of the image's ENTRYPOINT.
    workload: the name of the workload.  A program without a slash is one of that workload's own
    programs, and gets its full path.
    The cell's record has the returned command as `argv`.  Raises KeyError if a value is missing.
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
    """Yield each step with its values, in the order of execution.

    A group with ``for`` yields its inner steps once for each value in the list of its parameter;
    they find this value under the parameter's name.  A group with ``when`` yields them once, if its
    parameter has the value, or a list with the value.  A group may contain groups.
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
    """Provide the layers that run one cell's commands, and the values of placeholders.

    workload: the name of the workload.
    cell: the plan's `cell` of that workload.
    system: the systems under test and the client; replaced where a step starts a new system.
    values: the parameters and the seed, by name.
    groups: the roles of each system in a group of systems that work together.  System k (from 0)
    has the roles at index k modulo the size of the group.
    system_count: how many systems under test are up; each has ports and its own address.
    """

    def __init__(self, workload: str, cell: CellWork, system: System, values: Fields) -> None:
        """Keep the arguments; the groups of roles follow from the cell and its values."""
        self.workload, self.cell, self.system, self.values = workload, cell, system, values
        self.groups = plan.list_role_groups(cell, values)
        self.system_count = len(system.tops)

    def find_layer(self, part: int | None) -> Layer:
        """Return the layer that runs the commands of a system or of the client.

        part: the number of the system (from 0); None for the client, which must be up.
        """
        layer = self.system.client if part is None else self.system.tops[part]
        assert layer
        return layer

    def build_placeholder_values(self, part: int, values: Fields) -> Fields:
        """Return the values of the placeholders in the commands of one system, by their names.

        part: the number of the system, from 0.
        values: the parameters by name; the mapping is not changed.
        The result holds the parameters, :data:`strata.util.placeholders.BUILT_IN` for this system,
        and `address.ROLE` of each role.  Ports get the offset of the system that listens on them.
        """
        top, offset = self.system.tops[part], self.system.port_offset
        result = {
            **values,
            "part": part,
            "listen": self.system.get_listen_address(part),
            "entrypoint": top.context.entrypoint,
            "address": top.get_address(),
        }
        for name in self.cell.get("ports", []):
            result[name] = plan.add_port_offset(values[name], offset + part)
        for role, names in self.cell.get("roles", {}).get("ports", {}).items():
            holder = self._find_part_with_role(role, part)
            for name in names:
                result[name] = plan.add_port_offset(values[name], offset + holder)
            result[f"address.{role}"] = self.system.get_peer_address(holder)
        return result

    def list_client_values(self, values: Fields) -> Fields:
        """Return the values for commands at the client.

        A value that differs between systems is a list in the order of the systems: `address`,
        `listen` and `part` of all systems, and the ports of the first system of each group, which
        serves for its group.  Only `address.ROLE` has one address for each group.
        values: parameters by name; they are not changed.
        """
        systems = [self.build_placeholder_values(part, values) for part in range(self.system_count)]
        # The first system of each group.
        first_systems = systems[:: len(self.groups)]
        result = dict(values)
        for name in ("address", "listen", "part"):
            result[name] = [system[name] for system in systems]
        for name in self.cell.get("ports", []):
            result[name] = [
                port for system in first_systems for port in convert_to_list(system[name])
            ]
        for role in self.cell.get("roles", {}).get("ports", {}):
            holders = [self._find_part_with_role(role, first["part"]) for first in first_systems]
            result[f"address.{role}"] = [systems[holder]["address"] for holder in holders]
        return result

    def _find_part_with_role(self, role: str, part: int) -> int:
        """Return the number of the system that has a role, in the group of the system `part`.

        The checks of workload.yaml and config.yaml ensure that a system of each group has the role.
        """
        first_of_group = part - part % len(self.groups)
        index = next(index for index, roles in enumerate(self.groups) if role in roles)
        return first_of_group + index

"""The arguments of a cell's commands: parameters, ports and addresses."""

from collections.abc import Iterator

from strata.environments.common.layer import Layer
from strata.experiment import plan
from strata.testbed.lifecycle import System
from strata.util.data_types import CellWork, Fields, Step
from strata.util.placeholders import as_list, find_parameter

# The folder of the workloads' own programs in every system and at the client.
PROGRAMS = "/opt/strata/workloads"


def fill(argv: list[str], values: Fields, workload: str) -> list[str]:
    """Return a declared command with its placeholders replaced by values.

    argv: the program and its arguments, as workload.yaml declares them.
    values: the value of each parameter by name.  A list becomes ``a,b``, and None an empty
    argument; `entrypoint` is as many words as the image has in its ENTRYPOINT.
    workload: the name of the workload.  A program without a slash is one of that workload's own
    programs, and gets its full path.
    """
    filled = []
    for word in argv:
        name = find_parameter(word)
        if name == "entrypoint":
            filled += values[name]
            continue
        if name is not None:
            items = as_list(values[name])
            word = ",".join(str("" if item is None else item) for item in items)
        filled.append(word)
    if "/" not in filled[0] and find_parameter(argv[0]) != "entrypoint":
        filled[0] = f"{PROGRAMS}/{workload}/{filled[0]}"
    return filled


def expanded(steps: list[Step], values: Fields) -> Iterator[tuple[Step, Fields]]:
    """Yield each step with its values, in the order in which the steps are executed.

    A group (``for``) yields its inner steps once for each value in the list of its parameter.
    """
    for step in steps:
        if "for" not in step:
            yield step, values
            continue
        for value in values[step["for"]]:
            yield from expanded(step["steps"], {**values, step["for"]: value})


class Inputs:
    """Provide the values that the commands of one cell are given.

    workload: the name of the workload.
    cell: the plan's `cell` of that workload.
    system: the systems under test and the client; replaced where a step starts a new system.
    values: the parameters and the seed, by name.
    groups: the roles of each system in a group of systems that work together.  System k (from 0)
    has the roles at index k modulo the size of the group.
    parts: the number of systems that are up; each has ports and an address of its own.
    """

    def __init__(self, workload: str, cell: CellWork, system: System, values: Fields) -> None:
        self.workload, self.cell, self.system, self.values = workload, cell, system, values
        self.groups = plan.list_role_groups(cell, values)
        self.parts = len(system.tops)

    def place(self, part: int | None) -> Layer:
        """Return the layer in which commands are executed.

        part: the number of the system (from 0); None for the client.
        """
        place = self.system.client if part is None else self.system.tops[part]
        assert place
        return place

    def of(self, part: int, values: Fields) -> Fields:
        """Return the values for commands in one system.

        They hold the system's own ports and address, and those of the systems with each role.
        part: the number of the system (from 0).
        values: parameters by name; they are not changed.
        """
        offset = self.system.port_offset
        result = {**values, "part": part, "listen": self.system.listen_address(part)}
        result["entrypoint"] = self.system.tops[part].context.entrypoint
        result["address"] = self.system.tops[part].address()
        for name in self.cell.get("ports", []):
            result[name] = plan.add_port_offset(values[name], offset + part)
        for role, names in self.cell.get("roles", {}).get("ports", {}).items():
            holder = self._part_with(role, part)
            for name in names:
                result[name] = plan.add_port_offset(values[name], offset + holder)
            result[f"address.{role}"] = self.system.peer_address(holder)
        return result

    def of_all(self, values: Fields) -> Fields:
        """Return the values for commands at the client.

        Where systems have values of their own, the value is a list.  In a group of systems that
        work together, each system has its own address, and the ports of the first stand for all of
        them.
        values: parameters by name; they are not changed.
        """
        systems = [self.of(part, values) for part in range(self.parts)]
        firsts = systems[:: len(self.groups)]
        result = dict(values)
        for name in ("address", "listen", "part"):
            result[name] = [system[name] for system in systems]
        for name in self.cell.get("ports", []):
            result[name] = [port for system in firsts for port in as_list(system[name])]
        for role in self.cell.get("roles", {}).get("ports", {}):
            holders = [self._part_with(role, first["part"]) for first in firsts]
            result[f"address.{role}"] = [systems[holder]["address"] for holder in holders]
        return result

    def _part_with(self, role: str, part: int) -> int:
        """Return the number of the system that has a role, in the group of the system `part`."""
        number = next(number for number, roles in enumerate(self.groups) if role in roles)
        return part - part % len(self.groups) + number

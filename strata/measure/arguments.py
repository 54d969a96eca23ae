"""The arguments of a cell's commands: parameters, ports and addresses."""

from collections.abc import Iterator

from strata.environments.common.layer import Layer
from strata.experiment import plan
from strata.testbed.lifecycle import System
from strata.util.data_types import CellWork, Fields, Step
from strata.util.placeholders import as_list, find_parameter

# The folder of the workloads' own programs in every system.
PROGRAMS = "/opt/strata/workloads"


def fill(argv: list[str], values: Fields, workload: str) -> list[str]:
    """Replace the placeholders of a declared command by values.

    A list becomes ``a,b``, and None the empty word.  A program without a slash is one of the
    workload's own.
    """
    filled = []
    for word in argv:
        name = find_parameter(word)
        if name is not None:
            items = as_list(values[name])
            word = ",".join(str("" if item is None else item) for item in items)
        filled.append(word)
    if "/" not in filled[0]:
        filled[0] = f"{PROGRAMS}/{workload}/{filled[0]}"
    return filled


def expanded(steps: list[Step], values: Fields) -> Iterator[tuple[Step, Fields]]:
    """Yield each step in order with its values; a group's steps once for each value of its list."""
    for step in steps:
        if "for" not in step:
            yield step, values
            continue
        for value in values[step["for"]]:
            yield from expanded(step["steps"], {**values, step["for"]: value})


class Inputs:
    """The values that the commands of one cell are given.

    cell: of the plan.  values: the parameters and the seed.
    groups: the roles of each of the systems that work together; system k has those of the
    (k modulo their number)-th.
    parts: how many equal systems are up; each has ports and an address of its own.
    """

    def __init__(self, workload: str, cell: CellWork, system: System, values: Fields) -> None:
        self.workload, self.cell, self.system, self.values = workload, cell, system, values
        self.groups = plan.list_role_groups(cell, values)
        self.parts = len(system.tops)

    def place(self, part: int | None) -> Layer:
        """The layer in which commands run: of the system with this number, or (None) the client."""
        place = self.system.client if part is None else self.system.tops[part]
        assert place
        return place

    def of(self, part: int, values: Fields) -> Fields:
        """The values for commands in the system with this number.

        They hold its own ports and address, and those of the system with each role.
        """
        offset = self.system.port_offset
        result = {**values, "part": part, "listen": self.system.listen_address(part)}
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
        """The values for commands at the client, with lists where each system has its own.

        Of systems that work together each has its address, and the ports of all are those of the
        first.
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
        """The number of the system with a role, among those that work together with `part`."""
        number = next(number for number, roles in enumerate(self.groups) if role in roles)
        return part - part % len(self.groups) + number

"""What the commands of a cell are given: parameters, ports and addresses, as each system and the client see them."""

from collections.abc import Iterator

from strata.environments.common.layer import Layer
from strata.experiment import plan
from strata.testbed.lifecycle import System
from strata.util.data_types import CellWork, Fields, Step
from strata.util.placeholders import placeholder, several

PROGRAMS = "/opt/strata/workloads"


def fill(argv: list[str], values: Fields, workload: str) -> list[str]:
    """A declared command with its parameters; lists become ``a,b``, empty values the empty word.

    A program without a slash is one of the workload's own.
    """
    words = []
    for word in argv:
        name = placeholder(word)
        if name is not None:
            word = ",".join("" if item is None else str(item) for item in several(values[name]))
        words.append(word)
    if "/" not in words[0]:
        words[0] = f"{PROGRAMS}/{workload}/{words[0]}"
    return words


def expanded(steps: list[Step], values: Fields) -> Iterator[tuple[Step, Fields]]:
    """Every step in order with the values for it; those of a group once for each value of its list."""
    for step in steps:
        if "for" in step:
            for value in values[step["for"]]:
                yield from expanded(step["steps"], {**values, step["for"]: value})
        else:
            yield step, values


class Inputs:
    """The inputs of one cell.

    cell: of the plan.  values: the parameters and the seed.  Of several equal systems each has ports and an address of
    its own; of those that work together system k has the roles of the k-th of `groups`, in turn.
    """

    def __init__(self, workload: str, cell: CellWork, system: System, values: Fields) -> None:
        self.workload, self.cell, self.system, self.values = workload, cell, system, values
        self.groups = plan.groups(cell, values)
        self.parts = len(system.tops)

    def place(self, part: int | None) -> Layer:
        """Where the commands of the system with this number run; of None those of the client."""
        place = self.system.client if part is None else self.system.tops[part]
        assert place
        return place

    def of(self, part: int, values: Fields) -> Fields:
        """The values as they are in the system with this number: its own ports, its address; those of each role."""
        shift = self.system.shift
        own = {
            name: plan.shifted(values[name], shift + part) for name in self.cell.get("ports", [])
        }
        places = {"address": self.system.tops[part].address(), "listen": self.system.listen(part)}
        for role, names in self.cell.get("roles", {}).get("ports", {}).items():
            other = self._part_of(role, part)
            own |= {name: plan.shifted(values[name], shift + other) for name in names}
            places[f"address.{role}"] = self.system.reached(other)
        return {**values, **own, **places, "part": part}

    def of_all(self, values: Fields) -> Fields:
        """The values as the client has them: of what each system has its own, a list in the order of the systems.

        Of systems that work together each has its own address, and the ports of all are those of the first.
        """
        each = [self.of(part, values) for part in range(self.parts)]
        firsts = each[:: len(self.groups)]
        found = {name: [own[name] for own in each] for name in ("address", "listen", "part")}
        found |= {
            name: [port for own in firsts for port in several(own[name])]
            for name in self.cell.get("ports", [])
        }
        for role in self.cell.get("roles", {}).get("ports", {}):
            parts = [self._part_of(role, own["part"]) for own in firsts]
            found[f"address.{role}"] = [each[part]["address"] for part in parts]
        return {**values, **found}

    def _part_of(self, role: str, part: int) -> int:
        """The number of the system with a role, among those that work together with the one of this number."""
        number = next(number for number, roles in enumerate(self.groups) if role in roles)
        return part - part % len(self.groups) + number

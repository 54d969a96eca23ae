"""The captured logs of the workloads, with the parameters of their runs and the values that they hold."""

import json
from typing import NamedTuple

import projects

from strata.cell import parsing as values
from strata.cell.parsing import Value


class Captured(NamedTuple):
    """One captured log."""

    workload: str
    name: str
    lines: list[str]
    parameters: dict
    values: list[Value]

    def parse(self, lines: list[str] | None = None, **changed: object) -> list[Value] | None:
        """What the workload's parser returns for these lines and parameters; None if it refuses them."""
        try:
            parse = values.load_parser(self.workload)
            return parse(list(self.lines if lines is None else lines), self.parameters | changed)
        except values.BrokenLogError:
            return None


def _read() -> list[Captured]:
    found = []
    for path in sorted(projects.ROOT.glob("workloads/*/fixtures/expected.json")):
        for name, one in json.loads(path.read_text()).items():
            lines = path.with_name(f"{name}.log").read_text().splitlines()
            expected = [Value(*value) for value in one["values"]]
            found.append(Captured(path.parent.parent.name, name, lines, one["parameters"], expected))
    return found


LOGS = _read()
BY_NAME = {f"{one.workload}/{one.name}": one for one in LOGS}


def same(found: list[Value] | None, expected: list[Value]) -> bool:
    """Whether values are the expected ones, in their order, to twelve digits."""
    if found is None or [one._replace(value=0) for one in found] != [one._replace(value=0) for one in expected]:
        return False
    pairs = zip(found, expected, strict=True)
    return all(abs(one.value - other.value) <= 1e-12 * abs(other.value) for one, other in pairs)

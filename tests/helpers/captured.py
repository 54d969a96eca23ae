"""The captured logs of the workloads, with the parameters of their runs and the values that they hold.

`PYTHONPATH=. python tests/helpers/captured.py WORKLOAD LOG [NAME]` keeps the log of a cell as a fixture.  NAME is
`tiny` unless given.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import projects

from strata.measure import parsing
from strata.measure.parsing import Value


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
            parse = parsing.load_parser(self.workload)
            return parse(list(self.lines if lines is None else lines), self.parameters | changed)
        except parsing.BrokenLogError:
            return None


def _read() -> list[Captured]:
    found = []
    for path in sorted(projects.ROOT.glob("workloads/*/fixtures/expected.json")):
        for name, one in json.loads(path.read_text()).items():
            lines = path.with_name(f"{name}.log").read_text().splitlines()
            expected = [Value(*value) for value in one["values"]]
            found.append(
                Captured(path.parent.parent.name, name, lines, one["parameters"], expected)
            )
    return found


LOGS = _read()
BY_NAME = {f"{one.workload}/{one.name}": one for one in LOGS}


def same(found: list[Value] | None, expected: list[Value]) -> bool:
    """Whether values are the expected ones, in their order, to twelve digits."""
    if found is None or [one._replace(value=0) for one in found] != [
        one._replace(value=0) for one in expected
    ]:
        return False
    pairs = zip(found, expected, strict=True)
    return all(abs(one.value - other.value) <= 1e-12 * abs(other.value) for one, other in pairs)


def keep(workload: str, log: str, name: str = "tiny") -> None:
    """Keep the log of a cell, with the parameters in its record and the values that its parser finds now."""
    folder = projects.ROOT / "workloads" / workload / "fixtures"
    folder.mkdir(exist_ok=True)
    lines = Path(shutil.copy(log, folder / f"{name}.log")).read_text().splitlines()
    parameters = json.loads(Path(log).with_suffix(".json").read_text())["parameters"]
    found = parsing.load_parser(workload)(lines, parameters)
    table = folder / "expected.json"
    logs = json.loads(table.read_text()) if table.exists() else {}
    logs[name] = {"parameters": parameters, "values": found}
    parts = []
    for key, one in sorted(logs.items()):
        rows = ",\n    ".join(json.dumps(row, ensure_ascii=False) for row in one["values"])
        head = f' {json.dumps(key)}: {{\n  "parameters": {json.dumps(one["parameters"])},\n  "values": [\n    '
        parts.append(f"{head}{rows}\n  ]\n }}")
    table.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    print(*found, sep="\n")


if __name__ == "__main__":
    keep(*sys.argv[1:])

"""The captured logs of the workloads, with the parameters of their runs and their values.

`PYTHONPATH=. python tests/helpers/captured.py WORKLOAD LOG [NAME]` keeps the log of a cell as a
fixture.  NAME is `tiny` unless given.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import projects

from strata.measure import log_sections, parsing
from strata.measure.parsing import Value


class Captured(NamedTuple):
    """One captured log."""

    workload: str
    name: str
    lines: list[str]
    parameters: dict
    values: list[Value]

    def parse(self, lines: list[str] | None = None, **changed: object) -> list[Value] | None:
        """Parse lines, the log's own unless given, with changed parameters.

        Returns the values, or None if the workload's parser refuses the lines, or where the
        marker of a run in slices contradicts them.
        """
        given = list(self.lines if lines is None else lines)
        run = [line for line in given if not log_sections.LAP_MARKER.fullmatch(line.rstrip())]
        sliced = any(line.startswith(log_sections.SLICES) for line in run)
        if len(given) - len(run) != sliced:
            return None
        try:
            parse = parsing.load_parser(self.workload)
            return parse(run, self.parameters | changed)
        except parsing.BrokenLogError:
            return None


def _read() -> list[Captured]:
    """Read the captured logs of all workloads."""
    logs = []
    for path in sorted(projects.ROOT.glob("workloads/*/fixtures/expected.json")):
        for name, expected in json.loads(path.read_text()).items():
            lines = path.with_name(f"{name}.log").read_text().splitlines()
            values = [Value(*value) for value in expected["values"]]
            workload = path.parent.parent.name
            logs.append(Captured(workload, name, lines, expected["parameters"], values))
    return logs


LOGS = _read()
BY_NAME = {f"{log.workload}/{log.name}": log for log in LOGS}


def same(values: list[Value] | None, expected: list[Value]) -> bool:
    """Whether values are the expected ones, in their order, to twelve digits."""
    if values is None or len(values) != len(expected):
        return False
    for value, wanted in zip(values, expected, strict=True):
        if value._replace(value=0) != wanted._replace(value=0):
            return False
        if abs(value.value - wanted.value) > 1e-12 * abs(wanted.value):
            return False
    return True


def keep(workload: str, log: str, name: str = "tiny") -> None:
    """Keep the log of a cell, with its record's parameters and the values that it has now."""
    folder = projects.ROOT / "workloads" / workload / "fixtures"
    folder.mkdir(exist_ok=True)
    lines = Path(shutil.copy(log, folder / f"{name}.log")).read_text().splitlines()
    parameters = json.loads(Path(log).with_suffix(".json").read_text())["parameters"]
    values = parsing.load_parser(workload)(lines, parameters)
    table = folder / "expected.json"
    logs = json.loads(table.read_text()) if table.exists() else {}
    logs[name] = {"parameters": parameters, "values": values}
    entries = []
    for key, entry in sorted(logs.items()):
        rows = [json.dumps(row, ensure_ascii=False) for row in entry["values"]]
        head = f'  "parameters": {json.dumps(entry["parameters"])},\n  "values": ['
        entries.append(f" {json.dumps(key)}: {{\n{head}\n    " + ",\n    ".join(rows) + "\n  ]\n }")
    table.write_text("{\n" + ",\n".join(entries) + "\n}\n")
    print(*values, sep="\n")


if __name__ == "__main__":
    keep(*sys.argv[1:])

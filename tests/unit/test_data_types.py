"""The named shapes of data: they have the keys that the schemas have, and cost a program nothing."""

import json
import subprocess
import sys
import types

import projects
import pytest

from strata.util import data_types


def load():
    """The shapes as mypy sees them."""
    source = (projects.ROOT / "strata/util/data_types.py").read_text()
    found = types.ModuleType("shapes")
    exec(source.replace("TYPE_CHECKING = False", "TYPE_CHECKING = True"), found.__dict__)
    return found


PLAN, RECORD = "plan", "record"
WORKLOAD = (PLAN, "properties/workloads/additionalProperties")
CELL = (PLAN, f"{WORKLOAD[1]}/properties/cell")
# Where each shape stands in a schema; the others are of what no schema describes.
PLACES = {
    "Plan": (PLAN, ""),
    "HostFacts": (PLAN, "properties/machine"),
    "PlannedEnvironment": (PLAN, "properties/environments/additionalProperties"),
    "PlannedWorkload": WORKLOAD,
    "CellWork": CELL,
    "Step": (PLAN, "$defs/steps/items"),
    "Record": (RECORD, ""),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_shape_has_the_keys_of_its_schema(name):
    shape, (schema, place) = getattr(load(), name), PLACES[name]
    said = json.loads((projects.ROOT / f"schemas/{schema}.schema.json").read_text())
    for part in filter(None, place.split("/")):
        said = said[part]
    assert set(shape.__annotations__) == set(said["properties"])
    # The source is known once a plan is written.
    assert shape.__required_keys__ == set(said["required"]) - (
        {"source"} if name == "Plan" else set()
    )


def test_a_program_has_mappings_for_them():
    assert data_types.Plan is dict
    code = "import sys, strata.util.data_types; sys.exit('typing' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-S", "-c", code], cwd=projects.ROOT, check=False
        ).returncode
        == 0
    )

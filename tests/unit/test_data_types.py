"""The types of mappings have the keys of the schemas, and cost a program nothing."""

import json
import subprocess
import sys
import types

import projects
import pytest

from strata.util import data_types


def load_types():
    """Return the module as mypy sees it."""
    source = (projects.ROOT / "strata/util/data_types.py").read_text()
    module = types.ModuleType("data_types")
    exec(source.replace("TYPE_CHECKING = False", "TYPE_CHECKING = True"), module.__dict__)
    return module


PLAN, RECORD = "plan", "record"
WORKLOAD = (PLAN, "properties/workloads/additionalProperties")
CELL = (PLAN, f"{WORKLOAD[1]}/properties/cell")
# The place of each type in a schema; no schema describes the others.
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
def test_a_type_has_the_keys_of_its_schema(name):
    mapping = getattr(load_types(), name)
    schema_name, place = PLACES[name]
    schema = json.loads((projects.ROOT / f"schemas/{schema_name}.schema.json").read_text())
    for key in filter(None, place.split("/")):
        schema = schema[key]
    assert set(mapping.__annotations__) == set(schema["properties"])
    # A plan has its source once it is written.
    later = {"source"} if name == "Plan" else set()
    assert mapping.__required_keys__ == set(schema["required"]) - later


def test_at_run_time_the_types_are_dict_and_import_nothing():
    assert data_types.Plan is dict
    code = "import sys, strata.util.data_types; sys.exit('typing' in sys.modules)"
    subprocess.run([sys.executable, "-S", "-c", code], cwd=projects.ROOT, check=True)

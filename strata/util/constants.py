"""Constants that Python and R share, as JSON files in schemas/constants/."""

import functools
import json
import os

from strata.util import paths
from strata.util.data_types import Fields


@functools.cache
def read_constants(name: str) -> Fields:
    """Return the object in schemas/constants/NAME.json.  A cell that succeeds reads none."""
    path = os.path.join(paths.PROJECT, "schemas/constants", f"{name}.json")
    with open(path, encoding="utf-8") as file:
        constants: Fields = json.load(file)
    return constants


def result_path(name: str, **values: object) -> str:
    """Return the path of a results file, relative to the project.

    name: its key in schemas/constants/results.json.  values: those of the placeholders in its path.
    """
    return f"results/{read_constants('results')[name].format(**values)}"

"""Constants that Python and R share: JSON files in schemas/constants/."""

import functools
import json
import os

from strata.util import paths
from strata.util.data_types import Fields


@functools.cache
def read_constants(name: str) -> Fields:
    """Return the object in schemas/constants/NAME.json, read once for each process.

    All callers share the object: do not change it.  A cell that succeeds reads no constants.
    """
    path = os.path.join(paths.PROJECT, "schemas/constants", f"{name}.json")
    with open(path, encoding="utf-8") as file:
        constants: Fields = json.load(file)
    return constants


def get_result_path(name: str, **values: object) -> str:
    """Return the path of a results file, relative to the project.

    name: the file's key in schemas/constants/results.json.
    values: the values of the placeholders in its path, such as `workload`.
    Raises KeyError if the key is unknown, or a placeholder has no value.
    """
    return f"results/{read_constants('results')[name].format(**values)}"
